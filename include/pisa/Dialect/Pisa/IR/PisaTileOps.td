//===- PisaTileOps.td - Tile ops ---------------------------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TILE_OPS_TD
#define PISA_TILE_OPS_TD

include "pisa/Dialect/Pisa/IR/PisaOpBase.td"

// Tile ops work on the queries of one task: one sequence, one kv head, nq query
// blocks. Inside a task
//   queries  [nq, M, D]  row r of block j is query j Q + r / G, head r % G of the
//                        group; M is Q G rounded up, rows past the real ones are
//                        zero
//   columns  [D, Cols]   a block of keys, summaries or atoms, transposed
//   bias     [Cols]      f32, log2 of the keys a column stands for, -inf for none
// Scores are in base 2. Float32 queries are multiplied by scale log2(e) when they
// are packed. Where the target multiplies matrices of 16-bit operands, queries,
// columns and values are of that type: queries stay as they are, and scores are
// multiplied by the op's `scale` times log2(e) instead. D is then rounded up with
// zeros. Columns whose source is wider than the operand type are their high part
// and the rest, one above the other: [parts D, Cols].
// Column c * nodes + n of a block is child c of the block's node n, so that the
// log-sum-exp over children is elementwise across nodes.
class Pisa_TileOp<string mnemonic, int firstInit, list<Trait> traits = []> :
    Pisa_Op<mnemonic, firstInit, !listconcat(traits, [
      DeclareOpInterfaceMethods<Pisa_OpInterface>])>;

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

def Pisa_PackQueriesOp : Pisa_TileOp<"pack_queries", 2> {
  let summary = "queries of a task as float32 rows, scaled to base 2";
  let description = [{
    `packed` receives [nq, M, D]: row r of block j is query j Q + r / G, head
    r % G; rows past the last query are zero. Float32 rows are multiplied by scale
    log2(e).

    Example:

    ```mlir
    func.func @pack(%q: tensor<1x2x64x64xbf16>, %scale: f32,
                    %init: tensor<64x2x64xf32>) -> tensor<64x2x64xf32> {
      %0 = pisa.pack_queries ins(%q : tensor<1x2x64x64xbf16>) scale(%scale)
             outs(%init : tensor<64x2x64xf32>) {query_block = 1 : i64}
             -> tensor<64x2x64xf32>
      return %0 : tensor<64x2x64xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$query_block, Pisa_Heads:$q, F32:$scale,
                       Pisa_Packed3:$packed);
  let assemblyFormat = [{
    `ins` `(` $q `:` type($q) `)` `scale` `(` $scale `)`
    `outs` `(` $packed `:` type($packed) `)` attr-dict (`->` type($results)^)?
  }];
}

def Pisa_PackColumnsOp : Pisa_TileOp<"pack_columns", 6> {
  let summary = "one block of rows of a source as float32 columns with a bias";
  let description = [{
    Block `block` has `nodes` nodes of `group` rows each. Its child c of node n is
    row r = (block nodes + n) group + c of the source, counted from `row_base`,
    and becomes column c nodes + n; it stands for clamp(k_len - r p, 0, p) keys,
    p = `keys_per_row`: the bias is log2 of that. A row that stands for no key is
    not read; its column is zero and its bias -inf, as are those past
    `group * nodes`. Keys are the case nodes = 1, group = C, p = 1.

    With `listed`, node n of the block is `listed`[block nodes + n] instead of block
    nodes + n; it is absent if that is negative or past the list's end.

    Example:

    ```mlir
    func.func @pack(%k: tensor<1x1x256x64xbf16>, %n: tensor<1xi32>, %base: index,
                    %b: index, %p: index, %c: tensor<64x64xf32>,
                    %w: tensor<64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
      %0:2 = pisa.pack_columns ins(%k : tensor<1x1x256x64xbf16>)
               k_len(%n : tensor<1xi32>) row_base(%base) block(%b)
               keys_per_row(%p)
               outs(%c, %w : tensor<64x64xf32>, tensor<64xf32>)
               {group = 64 : i64, nodes = 1 : i64}
               -> tensor<64x64xf32>, tensor<64xf32>
      return %0#0, %0#1 : tensor<64x64xf32>, tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$group, I64Attr:$nodes, Pisa_Heads:$source,
    Pisa_I32x1:$k_len, Index:$row_base, Index:$block, Index:$keys_per_row,
    Optional<Pisa_I32x1>:$listed, Pisa_Packed2:$columns, Pisa_F32x1:$bias);
  let assemblyFormat = [{
    `ins` `(` $source `:` type($source) `)` `k_len` `(` $k_len `:` type($k_len) `)`
    `row_base` `(` $row_base `)` `block` `(` $block `)`
    `keys_per_row` `(` $keys_per_row `)`
    (`listed` `(` $listed^ `:` type($listed) `)`)?
    `outs` `(` $columns `,` $bias `:` type($columns) `,` type($bias) `)`
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_PackAtomsOp : Pisa_TileOp<"pack_atoms", 5> {
  let summary = "the pre-score atoms of a block of leaves as columns with a bias";
  let description = [{
    Block `block` has `nodes` leaves of A + 1 atoms each: the means of A
    sub-blocks without the outlier key, and the outlier key, read from `k`. Atom c
    of leaf n becomes column c nodes + n with bias log2(count); an atom without
    keys is not read, its column is zero and its bias -inf.

    Example:

    ```mlir
    func.func @pack(%k: tensor<1x1x256x64xf32>, %a: tensor<1x1x4x4x64xf32>,
                    %far: tensor<1x1x4xi32>, %n: tensor<1xi32>, %b: index,
                    %c: tensor<64x80xf32>, %w: tensor<80xf32>)
        -> (tensor<64x80xf32>, tensor<80xf32>) {
      %0:2 = pisa.pack_atoms ins(%k, %a, %far : tensor<1x1x256x64xf32>,
               tensor<1x1x4x4x64xf32>, tensor<1x1x4xi32>)
               k_len(%n : tensor<1xi32>) block(%b)
               outs(%c, %w : tensor<64x80xf32>, tensor<80xf32>)
               {block_size = 64 : i64, nodes = 16 : i64}
               -> tensor<64x80xf32>, tensor<80xf32>
      return %0#0, %0#1 : tensor<64x80xf32>, tensor<80xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$block_size, I64Attr:$nodes, Pisa_Heads:$k,
    Pisa_Atoms:$atoms, Pisa_I32x3:$outlier, Pisa_I32x1:$k_len, Index:$block,
    Pisa_Packed2:$columns, Pisa_F32x1:$bias);
  let assemblyFormat = [{
    `ins` `(` $k `,` $atoms `,` $outlier `:` type($k) `,` type($atoms) `,`
    type($outlier) `)` `k_len` `(` $k_len `:` type($k_len) `)`
    `block` `(` $block `)`
    `outs` `(` $columns `,` $bias `:` type($columns) `,` type($bias) `)`
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_PackValuesOp : Pisa_TileOp<"pack_values", 3> {
  let summary = "the values of one leaf as float32 rows";
  let description = [{
    Row r of `packed` [C, Dv] receives value block C + r of `v`; rows at and past
    `k_len` are not read and become zero, so that whatever lies there reaches no
    output (0 times NaN is NaN).

    Example:

    ```mlir
    func.func @pack(%v: tensor<1x1x256x64xbf16>, %n: tensor<1xi32>, %b: index,
                    %init: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = pisa.pack_values ins(%v : tensor<1x1x256x64xbf16>)
             k_len(%n : tensor<1xi32>) block(%b)
             outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
      return %0 : tensor<64x64xf32>
    }
    ```
  }];
  let arguments = (ins Pisa_Heads:$v, Pisa_I32x1:$k_len, Index:$block,
                       Pisa_Packed2:$packed);
  let assemblyFormat = [{
    `ins` `(` $v `:` type($v) `)` `k_len` `(` $k_len `:` type($k_len) `)`
    `block` `(` $block `)` `outs` `(` $packed `:` type($packed) `)`
    attr-dict (`->` type($results)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

def Pisa_NextBlockOp : Op<Pisa_Dialect, "next_block", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "the next block that any list of a task names";
  let description = [{
    The smallest e / divisor over the entries e >= 0 of all lists that is greater
    than `after`, if it is below `limit`; otherwise `limit`. A loop from -1 to
    `limit` by this op visits the union of the lists once, in ascending order, with
    no memory.

    Example:

    ```mlir
    func.func @next(%lists: tensor<1x1x64x16xi32>, %after: index, %limit: index)
        -> index {
      %0 = pisa.next_block %lists after %after limit %limit
             {divisor = 1 : i64} : tensor<1x1x64x16xi32>
      return %0 : index
    }
    ```
  }];
  let arguments = (ins I64Attr:$divisor, Pisa_I32x4:$lists, Index:$after,
                       Index:$limit);
  let results = (outs Index:$block);
  let assemblyFormat = [{
    $lists `after` $after `limit` $limit attr-dict `:` type($lists)
  }];
  let hasVerifier = 1;
}

def Pisa_ExpandNodesOp : Pisa_TileOp<"expand_nodes", 6,
    [AttrSizedOperandSegments]> {
  let summary = "the visible children of listed nodes";
  let description = [{
    `children` receives, for each query block, the children at `level` - 1 of its
    nodes at `level` that exist below `k_len` and, if causal, start at or before
    the block's last position; ascending, padded with -1. Positions are those of
    `route_upper`.

    Example:

    ```mlir
    func.func @expand(%nodes: tensor<1x1x64x4xi32>, %n: tensor<1xi32>,
                      %start: tensor<1xi32>, %first: index, %level: index,
                      %init: tensor<1x1x64x8xi32>) -> tensor<1x1x64x8xi32> {
      %0 = pisa.expand_nodes #pisa.params<topk = 4>
             ins(%nodes : tensor<1x1x64x4xi32>) k_len(%n : tensor<1xi32>)
             q_start(%start : tensor<1xi32>) query_offset(%first) level(%level)
             outs(%init : tensor<1x1x64x8xi32>) -> tensor<1x1x64x8xi32>
      return %0 : tensor<1x1x64x8xi32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, Pisa_I32x4:$nodes,
    Pisa_I32x1:$k_len, Optional<Pisa_I32x1>:$q_start, Index:$query_offset,
    Optional<Index>:$query_length, Index:$level, Pisa_I32x4:$children);
  let assemblyFormat = [{
    $params `ins` `(` $nodes `:` type($nodes) `)`
    `k_len` `(` $k_len `:` type($k_len) `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    `query_offset` `(` $query_offset `)`
    (`query_length` `(` $query_length^ `)`)? `level` `(` $level `)`
    `outs` `(` $children `:` type($children) `)`
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_UnionNodesOp : Pisa_TileOp<"union_nodes", 2> {
  let summary = "the union of a task's lists, and each entry's place in it";
  let description = [{
    `nodes` receives the distinct entries e of all lists with 0 <= e < `limit`,
    ascending, padded with -1, and `count` their number, which `nodes` must hold.
    `places` receives for each such entry its place in `nodes`, and -1 for the
    others: lists of places name the rows of a gather as lists of nodes name the
    rows of a level.

    Example:

    ```mlir
    func.func @unite(%lists: tensor<1x1x16x8xi32>, %limit: index,
                     %u: tensor<128xi32>, %c: tensor<1xi32>,
                     %p: tensor<1x1x16x8xi32>)
        -> (tensor<128xi32>, tensor<1xi32>, tensor<1x1x16x8xi32>) {
      %0:3 = pisa.union_nodes ins(%lists : tensor<1x1x16x8xi32>) limit(%limit)
               outs(%u, %c, %p : tensor<128xi32>, tensor<1xi32>,
                    tensor<1x1x16x8xi32>)
               -> tensor<128xi32>, tensor<1xi32>, tensor<1x1x16x8xi32>
      return %0#0, %0#1, %0#2
          : tensor<128xi32>, tensor<1xi32>, tensor<1x1x16x8xi32>
    }
    ```
  }];
  let arguments = (ins Pisa_I32x4:$lists, Index:$limit, Pisa_I32x1:$nodes,
                       Pisa_I32x1:$count, Pisa_I32x4:$places);
  let assemblyFormat = [{
    `ins` `(` $lists `:` type($lists) `)` `limit` `(` $limit `)`
    `outs` `(` $nodes `,` $count `,` $places `:` type($nodes) `,` type($count) `,`
    type($places) `)` attr-dict (`->` type($results)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

def Pisa_ScoreBlockOp : Pisa_TileOp<"score_block", 7> {
  let summary = "score the listed nodes of one block of columns";
  let description = [{
    For each query block j and each entry e of its list with e / nodes = `block`:
    the sum over its real rows of the natural log of the sum over the columns of
    node e % nodes of 2^(row . column + bias). The other scores stay: `scores` is
    read. A list of at most `limit` entries may be skipped: its scores are
    unspecified. `num_queries` counts the
    queries of the task, `heads` is G; `row_tile` rows are held at a time.

    If the largest exponent of a row is not finite it is that row's term: an empty
    node gives -inf, an infinite dot product infinity, NaN stays NaN.

    Example:

    ```mlir
    func.func @score(%q: tensor<64x2x64xf32>, %c: tensor<64x64xf32>,
                     %w: tensor<64xf32>, %lists: tensor<1x1x64x8xi32>, %b: index,
                     %n: index, %s: tensor<1x1x64x8xf32>)
        -> tensor<1x1x64x8xf32> {
      %0 = pisa.score_block ins(%q, %c, %w, %lists : tensor<64x2x64xf32>,
             tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
             block(%b) num_queries(%n) outs(%s : tensor<1x1x64x8xf32>)
             {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64,
              limit = 4 : i64, nodes = 1 : i64, query_block = 1 : i64,
              row_tile = 2 : i64} -> tensor<1x1x64x8xf32>
      return %0 : tensor<1x1x64x8xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$query_block, I64Attr:$heads, I64Attr:$group,
    I64Attr:$nodes, I64Attr:$limit, I64Attr:$row_tile, I64Attr:$column_tile,
    Pisa_Packed3:$queries, Pisa_Packed2:$columns, Pisa_F32x1:$bias,
    Pisa_I32x4:$lists, Index:$block, Index:$num_queries, Optional<F32>:$scale,
    Pisa_F32x4:$scores);
  let assemblyFormat = [{
    `ins` `(` $queries `,` $columns `,` $bias `,` $lists `:` type($queries) `,`
    type($columns) `,` type($bias) `,` type($lists) `)`
    `block` `(` $block `)` `num_queries` `(` $num_queries `)`
    (`scale` `(` $scale^ `)`)? `outs` `(` $scores `:` type($scores) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = dpsDeclaration # [{
    bool readsInit(::mlir::OpOperand &) { return true; }
  }];
}

def Pisa_AttendBlockOp : Pisa_TileOp<"attend_block", 9,
    [AttrSizedOperandSegments]> {
  let summary = "one online-softmax step over the keys of one leaf";
  let description = [{
    For each query block whose list names `block`, and each of its rows with
    s_c = row . column_c + bias_c, masked to -inf where key block C + c lies after
    the row's query (causal):

    ```
    m' = max(m, max_c s_c)
    p_c = 2^(s_c - m'),  a = 2^(m - m')        (0 where m' is -inf)
    l' = a l + sum_c p_c,  acc' = a acc + sum_c p_c value_c
    ```

    A task without room for a whole block attends to its parts one after the other:
    with P rows of `values`, a divisor of C, the columns are the keys from
    `part` P of the block on.

    The step is associative, so leaves may come in any order; all implementations
    go in ascending order, which makes a row's bits independent of its
    neighbours. All inits are read; the first step finds m = -inf, l = 0, acc = 0.

    Example:

    ```mlir
    func.func @step(%q: tensor<64x2x64xf32>, %c: tensor<64x64xf32>,
                    %w: tensor<64xf32>, %v: tensor<64x64xf32>,
                    %lists: tensor<1x1x64x4xi32>, %start: tensor<1xi32>,
                    %first: index, %b: index, %acc: tensor<64x2x64xf32>,
                    %m: tensor<64x2xf32>, %l: tensor<64x2xf32>)
        -> (tensor<64x2x64xf32>, tensor<64x2xf32>, tensor<64x2xf32>) {
      %0:3 = pisa.attend_block #pisa.params<topk = 4>
               ins(%q, %c, %w, %v, %lists : tensor<64x2x64xf32>,
                   tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>,
                   tensor<1x1x64x4xi32>)
               block(%b) q_start(%start : tensor<1xi32>) query_offset(%first)
               outs(%acc, %m, %l : tensor<64x2x64xf32>, tensor<64x2xf32>,
                    tensor<64x2xf32>)
               {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
               -> tensor<64x2x64xf32>, tensor<64x2xf32>, tensor<64x2xf32>
      return %0#0, %0#1, %0#2
          : tensor<64x2x64xf32>, tensor<64x2xf32>, tensor<64x2xf32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, I64Attr:$heads,
    I64Attr:$row_tile, I64Attr:$column_tile, DefaultValuedAttr<I64Attr, "0">:$part,
    Pisa_Packed3:$queries, Pisa_Packed2:$columns, Pisa_F32x1:$bias, Pisa_Packed2:$values,
    Pisa_I32x4:$lists, Index:$block, Optional<Pisa_I32x1>:$q_start,
    Index:$query_offset, Optional<F32>:$scale,
    Pisa_F32x3:$acc, Pisa_F32x2:$max, Pisa_F32x2:$sum);
  let assemblyFormat = [{
    $params `ins` `(` $queries `,` $columns `,` $bias `,` $values `,` $lists `:`
    type($queries) `,` type($columns) `,` type($bias) `,` type($values) `,`
    type($lists) `)` `block` `(` $block `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    `query_offset` `(` $query_offset `)` (`scale` `(` $scale^ `)`)?
    `outs` `(` $acc `,` $max `,` $sum `:` type($acc) `,` type($max) `,` type($sum)
    `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = dpsDeclaration # [{
    bool readsInit(::mlir::OpOperand &) { return true; }
    /// P: keys of the block that `columns` and `values` hold.
    int64_t getNumKeys() {
      return ::llvm::cast<::mlir::ShapedType>(getValues().getType())
          .getDimSize(0);
    }
    /// The first of them, counted from the block's first.
    int64_t getFirstKey() { return getPart() * getNumKeys(); }
  }];
}

def Pisa_FinishAttentionOp : Pisa_TileOp<"finish_attention", 3> {
  let summary = "normalise the rows of a task into outputs";
  let description = [{
    Output acc / l, rounded to o's type, and lse = (m + log2 l) ln 2; a row with
    m = -inf gives 0 and -inf. Rows are those of `pack_queries`.

    Example:

    ```mlir
    func.func @finish(%acc: tensor<64x2x64xf32>, %m: tensor<64x2xf32>,
                      %l: tensor<64x2xf32>, %init: tensor<1x2x64x64xbf16>)
        -> tensor<1x2x64x64xbf16> {
      %0 = pisa.finish_attention ins(%acc, %m, %l : tensor<64x2x64xf32>,
             tensor<64x2xf32>, tensor<64x2xf32>)
             outs(%init : tensor<1x2x64x64xbf16>) {query_block = 1 : i64}
             -> tensor<1x2x64x64xbf16>
      return %0 : tensor<1x2x64x64xbf16>
    }
    ```
  }];
  let arguments = (ins I64Attr:$query_block, Pisa_F32x3:$acc, Pisa_F32x2:$max,
    Pisa_F32x2:$sum, Pisa_Heads:$o, Optional<Pisa_F32x3>:$lse);
  let assemblyFormat = [{
    `ins` `(` $acc `,` $max `,` $sum `:` type($acc) `,` type($max) `,` type($sum)
    `)` `outs` `(` $o `:` type($o) `)` (`lse` `(` $lse^ `:` type($lse) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

#endif // PISA_TILE_OPS_TD
