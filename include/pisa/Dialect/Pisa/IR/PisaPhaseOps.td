//===- PisaPhaseOps.td - Phase ops -------------------------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_PHASE_OPS_TD
#define PISA_PHASE_OPS_TD

include "pisa/Dialect/Pisa/IR/PisaOpBase.td"

// A step of a problem on whole tensors, tilable over its iteration space.
// `kinds` says for each ODS operand how it maps onto that space (TileKind).
// `domain` is the kind of the operand whose leading dimensions are the space.
class Pisa_PhaseOp<string mnemonic, int firstInit, list<string> kinds,
                   list<Trait> traits = []> :
    Pisa_Op<mnemonic, firstInit, !listconcat(traits, [
      DeclareOpInterfaceMethods<Pisa_OpInterface, ["getTileKind"]>,
      DeclareOpInterfaceMethods<TilingInterface, [
        "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
        "getResultTilePosition", "generateResultTileValue",
        "getIterationDomainTileFromResultTile"]>])> {
  code kindsDeclaration = [{
    static constexpr ::mlir::pisa::TileKind tileKinds[] = {}] #
      !interleave(!foreach(k, kinds, "::mlir::pisa::TileKind::" # k), ", ") # [{};
  }];
  let extraClassDeclaration = dpsDeclaration # kindsDeclaration;
  let extraClassDefinition = [{
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::SideEffects::EffectInstance<
            ::mlir::MemoryEffects::Effect>> &effects) {
      ::mlir::pisa::detail::getEffects(getOperation(), effects);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &b, ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      return ::mlir::pisa::detail::reifyResultShapes(getOperation(), b, shapes);
    }
    ::mlir::pisa::TileKind $cppClass::getTileKind(unsigned operandNumber) {
      for (unsigned i = 0; i < std::size(tileKinds); ++i) {
        auto [first, length] = getODSOperandIndexAndLength(i);
        if (operandNumber >= first && operandNumber < first + length)
          return tileKinds[i];
      }
      return ::mlir::pisa::TileKind::Whole;
    }
    ::llvm::SmallVector<::mlir::utils::IteratorType>
    $cppClass::getLoopIteratorTypes() {
      return ::mlir::pisa::detail::getLoopIteratorTypes(getOperation());
    }
    ::llvm::SmallVector<::mlir::Range>
    $cppClass::getIterationDomain(::mlir::OpBuilder &b) {
      return ::mlir::pisa::detail::getIterationDomain(getOperation(), b);
    }
    ::mlir::FailureOr<::mlir::TilingResult> $cppClass::getTiledImplementation(
        ::mlir::OpBuilder &b, ::mlir::ArrayRef<::mlir::OpFoldResult> offsets,
        ::mlir::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::mlir::pisa::detail::getTiledImplementation(getOperation(), b,
                                                          offsets, sizes);
    }
    ::llvm::LogicalResult $cppClass::getResultTilePosition(
        ::mlir::OpBuilder &b, unsigned resultNumber,
        ::mlir::ArrayRef<::mlir::OpFoldResult> offsets,
        ::mlir::ArrayRef<::mlir::OpFoldResult> sizes,
        ::mlir::SmallVector<::mlir::OpFoldResult> &resultOffsets,
        ::mlir::SmallVector<::mlir::OpFoldResult> &resultSizes) {
      return ::mlir::pisa::detail::getResultTilePosition(
          getOperation(), b, resultNumber, offsets, sizes, resultOffsets,
          resultSizes);
    }
    ::llvm::LogicalResult $cppClass::getIterationDomainTileFromResultTile(
        ::mlir::OpBuilder &b, unsigned resultNumber,
        ::mlir::ArrayRef<::mlir::OpFoldResult> offsets,
        ::mlir::ArrayRef<::mlir::OpFoldResult> sizes,
        ::mlir::SmallVectorImpl<::mlir::OpFoldResult> &domainOffsets,
        ::mlir::SmallVectorImpl<::mlir::OpFoldResult> &domainSizes) {
      return ::mlir::pisa::detail::getDomainTileFromResultTile(
          getOperation(), resultNumber, offsets, sizes, domainOffsets,
          domainSizes);
    }
    ::mlir::FailureOr<::mlir::TilingResult> $cppClass::generateResultTileValue(
        ::mlir::OpBuilder &b, unsigned resultNumber,
        ::mlir::ArrayRef<::mlir::OpFoldResult> offsets,
        ::mlir::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::mlir::pisa::detail::generateResultTileValue(
          getOperation(), b, resultNumber, offsets, sizes);
    }
  }];
}

// A phase that pisa-decompose-tiles breaks into tile ops.
class Pisa_AggregatePhaseOp<string mnemonic, int firstInit, list<string> kinds,
                            list<Trait> traits = []> :
    Pisa_PhaseOp<mnemonic, firstInit, kinds, !listconcat(traits, [
      DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>])>;

//===----------------------------------------------------------------------===//
// Pyramid
//===----------------------------------------------------------------------===//

def Pisa_PoolLeavesOp : Pisa_PhaseOp<"pool_leaves", 3,
    ["KeyValue", "Batch", "Offset", "Item", "Item", "Item"],
    [AttrSizedOperandSegments]> {
  let summary = "sum the keys of each leaf, and find its pre-score atoms";
  let description = [{
    Iteration space: (B, Hkv, leaves). Row i of `sums` receives the float32 sum,
    in index order, of the keys of leaf `leaf_offset + i` below `k_len` (zero
    without keys). `atoms` and `outlier`: see `build_pyramid`.

    Example:

    ```mlir
    func.func @pool(%k: tensor<1x2x256x64xf32>, %n: tensor<1xi32>, %first: index,
                    %init: tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32> {
      %0 = pisa.pool_leaves #pisa.params<topk = 4>
             ins(%k : tensor<1x2x256x64xf32>) k_len(%n : tensor<1xi32>)
             leaf_offset(%first)
             outs(%init : tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
      return %0 : tensor<1x2x4x64xf32>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params, Pisa_Heads:$k, Pisa_I32x1:$k_len,
    Index:$leaf_offset,
    Pisa_F32x4:$sums, Optional<Pisa_Atoms>:$atoms, Optional<Pisa_I32x3>:$outlier);
  let assemblyFormat = [{
    $params `ins` `(` $k `:` type($k) `)` `k_len` `(` $k_len `:` type($k_len) `)`
    `leaf_offset` `(` $leaf_offset `)`
    `outs` `(` $sums `:` type($sums) `)`
    (`atoms` `(` $atoms^ `:` type($atoms) `)`)?
    (`outlier` `(` $outlier^ `:` type($outlier) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_PoolNodesOp : Pisa_PhaseOp<"pool_nodes", 3,
    ["KeyValue", "KeyValue", "Batch", "KeyValue", "KeyValue", "KeyValue"]> {
  let summary = "sum the levels above the leaves and write all summaries";
  let description = [{
    Iteration space: (B, Hkv). From the leaf sums, the sums of the levels above, and
    each node's summary sum / count, rounded once, to `pyramid`. `sums` is scratch
    for all of them, in the rows of the packed pyramid; it may have more. `open_sums`: see
    `build_pyramid`. `k` gives the capacity; its keys are not read.

    Example:

    ```mlir
    func.func @pool(%k: tensor<1x2x256x64xbf16>, %leaves: tensor<1x2x4x64xf32>,
                    %n: tensor<1xi32>, %sums: tensor<1x2x7x64xf32>,
                    %init: tensor<1x2x7x64xbf16>) -> tensor<1x2x7x64xbf16> {
      %0:2 = pisa.pool_nodes #pisa.params<topk = 4>
               ins(%k, %leaves : tensor<1x2x256x64xbf16>, tensor<1x2x4x64xf32>)
               k_len(%n : tensor<1xi32>)
               outs(%sums, %init : tensor<1x2x7x64xf32>, tensor<1x2x7x64xbf16>)
               -> tensor<1x2x7x64xf32>, tensor<1x2x7x64xbf16>
      return %0#1 : tensor<1x2x7x64xbf16>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params, Pisa_Heads:$k, Pisa_F32x4:$leaf_sums,
    Pisa_I32x1:$k_len,
    Pisa_F32x4:$sums, Pisa_Heads:$pyramid, Optional<Pisa_F32x4>:$open_sums);
  let assemblyFormat = [{
    $params `ins` `(` $k `,` $leaf_sums `:` type($k) `,` type($leaf_sums) `)`
    `k_len` `(` $k_len `:` type($k_len) `)`
    `outs` `(` $sums `,` $pyramid `:` type($sums) `,` type($pyramid) `)`
    (`open_sums` `(` $open_sums^ `:` type($open_sums) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

def Pisa_RouteUpperOp : Pisa_AggregatePhaseOp<"route_upper", 8,
    ["Query", "KeyValue", "Batch", "Batch", "Offset", "Whole", "Whole", "Whole",
     "Item"],
    [AttrSizedOperandSegments]> {
  let summary = "search the pyramid down to the candidate leaves";
  let description = [{
    Iteration space: (B, Hkv, NQ). `leaves` receives, for each query block, the
    children of the nodes kept at level 2 that start at or before the block's
    last position (all children if not causal), ascending, padded with -1: at
    most g W of them (docs/Spec.md section 2).

    Positions: query i of the tensor stands at `q_start + query_offset + i`;
    without `q_start` there is no position (non-causal only). `query_length`
    clips the last query block. `capacity_leaves` is ceil(Tk / C), from which the
    pyramid's offsets follow.

    Example:

    ```mlir
    func.func @upper(%q: tensor<1x4x256x64xf32>, %pyr: tensor<1x2x7x64xf32>,
                     %n: tensor<1xi32>, %start: tensor<1xi32>, %first: index,
                     %leaves: index, %scale: f32, %init: tensor<1x2x256x8xi32>)
        -> tensor<1x2x256x8xi32> {
      %0 = pisa.route_upper #pisa.params<topk = 4>
             ins(%q, %pyr : tensor<1x4x256x64xf32>, tensor<1x2x7x64xf32>)
             k_len(%n : tensor<1xi32>) q_start(%start : tensor<1xi32>)
             query_offset(%first) capacity_leaves(%leaves) scale(%scale)
             outs(%init : tensor<1x2x256x8xi32>) -> tensor<1x2x256x8xi32>
      return %0 : tensor<1x2x256x8xi32>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params, Pisa_Heads:$q, Pisa_Heads:$pyramid,
    Pisa_I32x1:$k_len, Optional<Pisa_I32x1>:$q_start,
    Index:$query_offset, Optional<Index>:$query_length, Index:$capacity_leaves,
    F32:$scale, Pisa_I32x4:$leaves);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $pyramid `:` type($q) `,` type($pyramid) `)`
    `k_len` `(` $k_len `:` type($k_len) `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    `query_offset` `(` $query_offset `)`
    (`query_length` `(` $query_length^ `)`)?
    `capacity_leaves` `(` $capacity_leaves `)`
    `scale` `(` $scale `)` `outs` `(` $leaves `:` type($leaves) `)`
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_ScoreBlocksOp : Pisa_AggregatePhaseOp<"score_blocks", 5,
    ["Query", "KeyValue", "Item", "Batch", "Whole", "Item"]> {
  let summary = "exact score of each listed leaf";
  let description = [{
    Iteration space: (B, Hkv, NQ). `scores` receives for each entry of `leaves`
    the sum over the heads of the group and the queries of the block of
    log sum over the leaf's keys of exp(scale q . key). Lists are ascending and
    padded with -1. The scores of a list of at most `limit` entries are
    unspecified: nothing is dropped from it. So are those of padding.

    Example:

    ```mlir
    func.func @score(%q: tensor<1x4x256x64xf32>, %k: tensor<1x2x256x64xf32>,
                     %leaves: tensor<1x2x256x8xi32>, %n: tensor<1xi32>, %scale: f32,
                     %init: tensor<1x2x256x8xf32>) -> tensor<1x2x256x8xf32> {
      %0 = pisa.score_blocks #pisa.params<topk = 4>
             ins(%q, %k, %leaves : tensor<1x4x256x64xf32>, tensor<1x2x256x64xf32>,
                 tensor<1x2x256x8xi32>) k_len(%n : tensor<1xi32>) scale(%scale)
             outs(%init : tensor<1x2x256x8xf32>) {limit = 4 : i64}
             -> tensor<1x2x256x8xf32>
      return %0 : tensor<1x2x256x8xf32>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params, I64Attr:$limit, Pisa_Heads:$q, Pisa_Heads:$k,
    Pisa_I32x4:$leaves, Pisa_I32x1:$k_len, F32:$scale, Pisa_F32x4:$scores);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $k `,` $leaves `:` type($q) `,` type($k) `,`
    type($leaves) `)` `k_len` `(` $k_len `:` type($k_len) `)`
    `scale` `(` $scale `)` `outs` `(` $scores `:` type($scores) `)`
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_CountEntriesOp : Pisa_PhaseOp<"count_entries", 5,
    ["Item", "Offset", "Batch", "Batch", "Whole", "KeyValue"],
    [AttrSizedOperandSegments]> {
  let summary = "how many lists name each block";
  let description = [{
    Iteration space: (B, Hkv, NQ). Adds to `counts` [B, Hkv, leaves] one for each
    entry of `lists` that names the leaf; lists of at most `limit` entries count for
    nothing. With `k_len` (and, if causal, `q_start`) neither do entries that are
    forced (`select_topk`): whoever keeps them anyway needs no score of them. List 0
    is number `list_offset` of the sequence's. `counts` is read and written by all
    tiles: its sums are atomic.

    Example:

    ```mlir
    func.func @count(%lists: tensor<1x2x256x8xi32>, %first: index,
                     %n: tensor<1xi32>, %start: tensor<1xi32>,
                     %init: tensor<1x2x4xi32>) -> tensor<1x2x4xi32> {
      %0 = pisa.count_entries #pisa.params<topk = 4>
             ins(%lists : tensor<1x2x256x8xi32>) list_offset(%first)
             k_len(%n : tensor<1xi32>) q_start(%start : tensor<1xi32>)
             outs(%init : tensor<1x2x4xi32>)
             {limit = 4 : i64} -> tensor<1x2x4xi32>
      return %0 : tensor<1x2x4xi32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, I64Attr:$limit,
                       Pisa_I32x4:$lists, Index:$list_offset,
                       Optional<Pisa_I32x1>:$k_len, Optional<Pisa_I32x1>:$q_start,
                       Optional<Index>:$query_length, Pisa_I32x3:$counts);
  let assemblyFormat = [{
    $params `ins` `(` $lists `:` type($lists) `)` `list_offset` `(` $list_offset `)`
    (`k_len` `(` $k_len^ `:` type($k_len) `)`)?
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    (`query_length` `(` $query_length^ `)`)?
    `outs` `(` $counts `:` type($counts) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = dpsDeclaration # kindsDeclaration # [{
    bool readsInit(::mlir::OpOperand &) { return true; }
  }];
}

def Pisa_PlaceEntriesOp : Pisa_PhaseOp<"place_entries", 1,
    ["KeyValue", "KeyValue", "KeyValue", "KeyValue"]> {
  let summary = "where the entries of each block go, and who works on them";
  let description = [{
    Iteration space: (B, Hkv). From the `counts` of the blocks: `rows` [B, Hkv,
    leaves + 1] receives the exclusive sums, and so does `cursors` [B, Hkv, leaves],
    which `list_entries` moves. `items` [B, Hkv, items, 2] receives the work: pairs
    of a block and its first entry, at most `gather` entries each; the rest of it is
    -1. There are at most leaves + entries / gather of them.

    Example:

    ```mlir
    func.func @place(%counts: tensor<1x2x4xi32>, %r: tensor<1x2x5xi32>,
                     %c: tensor<1x2x4xi32>, %i: tensor<1x2x20x2xi32>)
        -> tensor<1x2x20x2xi32> {
      %0:3 = pisa.place_entries #pisa.params<topk = 4>
               ins(%counts : tensor<1x2x4xi32>)
               outs(%r, %c, %i : tensor<1x2x5xi32>, tensor<1x2x4xi32>,
                    tensor<1x2x20x2xi32>) {gather = 128 : i64}
               -> tensor<1x2x5xi32>, tensor<1x2x4xi32>, tensor<1x2x20x2xi32>
      return %0#2 : tensor<1x2x20x2xi32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, I64Attr:$gather,
                       Pisa_I32x3:$counts, Pisa_I32x3:$rows,
                       Pisa_I32x3:$cursors, Pisa_I32x4:$items);
  let assemblyFormat = [{
    $params `ins` `(` $counts `:` type($counts) `)`
    `outs` `(` $rows `,` $cursors `,` $items `:` type($rows) `,` type($cursors) `,`
    type($items) `)` attr-dict (`->` type($results)^)?
  }];
}

def Pisa_ListEntriesOp : Pisa_PhaseOp<"list_entries", 5,
    ["Item", "Offset", "Batch", "Batch", "Whole", "KeyValue", "KeyValue"],
    [AttrSizedOperandSegments]> {
  let summary = "the entries of all lists by block";
  let description = [{
    Iteration space: (B, Hkv, NQ). Writes for each entry of `lists` that
    `count_entries` counted its number, list n + place in the list (n: width of the
    lists), to the next place of its block in `entries`, and moves the block's
    cursor. The order within a block is not defined: what works on the entries must
    not depend on it. `cursors` and `entries` are written by all tiles.

    Example:

    ```mlir
    func.func @list(%lists: tensor<1x2x256x8xi32>, %first: index,
                    %c: tensor<1x2x4xi32>, %e: tensor<1x2x2048xi32>)
        -> tensor<1x2x2048xi32> {
      %0:2 = pisa.list_entries #pisa.params<topk = 4>
               ins(%lists : tensor<1x2x256x8xi32>) list_offset(%first)
               outs(%c, %e : tensor<1x2x4xi32>, tensor<1x2x2048xi32>)
               {limit = 4 : i64} -> tensor<1x2x4xi32>, tensor<1x2x2048xi32>
      return %0#1 : tensor<1x2x2048xi32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, I64Attr:$limit,
                       Pisa_I32x4:$lists, Index:$list_offset,
                       Optional<Pisa_I32x1>:$k_len, Optional<Pisa_I32x1>:$q_start,
                       Optional<Index>:$query_length,
                       Pisa_I32x3:$cursors, Pisa_I32x3:$entries);
  let assemblyFormat = [{
    $params `ins` `(` $lists `:` type($lists) `)` `list_offset` `(` $list_offset `)`
    (`k_len` `(` $k_len^ `:` type($k_len) `)`)?
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    (`query_length` `(` $query_length^ `)`)?
    `outs` `(` $cursors `,` $entries `:` type($cursors) `,` type($entries) `)`
    attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = dpsDeclaration # kindsDeclaration # [{
    bool readsInit(::mlir::OpOperand &) { return true; }
  }];
}

def Pisa_ScoreEntriesOp : Pisa_PhaseOp<"score_entries", 7,
    ["Heads", "KeyValue", "KeyValue", "KeyValue", "Item", "Batch", "Whole",
     "KeyValue"]> {
  let summary = "exact score of each listed leaf, by leaf";
  let description = [{
    Iteration space: (B, Hkv, items). The strategy in which a task holds the keys of
    one leaf and gathers the queries that listed it: scores as `score_blocks` gives
    them, of the entries of an item, to the places of `scores` [B, Hkv, NQ, n] that
    they came from. Other places stay.

    Example:

    ```mlir
    func.func @score(%q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>,
                     %rows: tensor<1x2x5xi32>, %e: tensor<1x2x2048xi32>,
                     %items: tensor<1x2x20x2xi32>, %n: tensor<1xi32>, %scale: f32,
                     %init: tensor<1x2x256x8xf32>) -> tensor<1x2x256x8xf32> {
      %0 = pisa.score_entries #pisa.params<topk = 4>
             ins(%q, %k, %rows, %e, %items : tensor<1x4x256x64xbf16>,
                 tensor<1x2x256x64xbf16>, tensor<1x2x5xi32>, tensor<1x2x2048xi32>,
                 tensor<1x2x20x2xi32>) k_len(%n : tensor<1xi32>) scale(%scale)
             outs(%init : tensor<1x2x256x8xf32>) {gather = 128 : i64}
             -> tensor<1x2x256x8xf32>
      return %0 : tensor<1x2x256x8xf32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, I64Attr:$gather,
    Pisa_Heads:$q, Pisa_Heads:$k, Pisa_I32x3:$rows, Pisa_I32x3:$entries,
    Pisa_I32x4:$items, Pisa_I32x1:$k_len, F32:$scale, Pisa_F32x4:$scores);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $k `,` $rows `,` $entries `,` $items `:` type($q) `,`
    type($k) `,` type($rows) `,` type($entries) `,` type($items) `)`
    `k_len` `(` $k_len `:` type($k_len) `)` `scale` `(` $scale `)`
    `outs` `(` $scores `:` type($scores) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = dpsDeclaration # kindsDeclaration # [{
    bool readsInit(::mlir::OpOperand &) { return true; }
  }];
}

def Pisa_PrescoreBlocksOp : Pisa_AggregatePhaseOp<"prescore_blocks", 7,
    ["Query", "KeyValue", "KeyValue", "KeyValue", "Item", "Batch", "Whole",
     "Item"]> {
  let summary = "approximate score of each listed leaf, from its atoms";
  let description = [{
    As `score_blocks`, but a leaf stands for its atoms: the sum over heads and
    queries of log sum over atoms a of count(a) exp(scale q . mean(a)), where the
    atoms are the means of A sub-blocks without the outlier key, and the outlier
    key itself (docs/Spec.md section 2).

    Example:

    ```mlir
    func.func @prescore(%q: tensor<1x4x256x64xf32>, %k: tensor<1x2x256x64xf32>,
                        %atoms: tensor<1x2x4x4x64xf32>, %far: tensor<1x2x4xi32>,
                        %leaves: tensor<1x2x256x8xi32>, %n: tensor<1xi32>,
                        %scale: f32, %init: tensor<1x2x256x8xf32>)
        -> tensor<1x2x256x8xf32> {
      %0 = pisa.prescore_blocks #pisa.params<topk = 4, rerank = 4>
             ins(%q, %k, %atoms, %far, %leaves : tensor<1x4x256x64xf32>,
                 tensor<1x2x256x64xf32>, tensor<1x2x4x4x64xf32>,
                 tensor<1x2x4xi32>, tensor<1x2x256x8xi32>)
             k_len(%n : tensor<1xi32>) scale(%scale)
             outs(%init : tensor<1x2x256x8xf32>) {limit = 4 : i64}
             -> tensor<1x2x256x8xf32>
      return %0 : tensor<1x2x256x8xf32>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params, I64Attr:$limit, Pisa_Heads:$q, Pisa_Heads:$k,
    Pisa_Atoms:$atoms, Pisa_I32x3:$outlier, Pisa_I32x4:$leaves,
    Pisa_I32x1:$k_len, F32:$scale, Pisa_F32x4:$scores);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $k `,` $atoms `,` $outlier `,` $leaves `:` type($q)
    `,` type($k) `,` type($atoms) `,` type($outlier) `,` type($leaves) `)`
    `k_len` `(` $k_len `:` type($k_len) `)`
    `scale` `(` $scale `)` `outs` `(` $scores `:` type($scores) `)`
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_SelectTopkOp : Pisa_PhaseOp<"select_topk", 7,
    ["Item", "Item", "Batch", "Batch", "Offset", "Whole", "Whole",
     "Item", "Item", "Item"],
    [AttrSizedOperandSegments]> {
  let summary = "keep the forced nodes and the best of the others";
  let description = [{
    Iteration space: (B, Hkv, NQ). `nodes` lists candidates at `level` (absent: 1,
    the leaves), ascending and padded with -1; `kept` receives, ascending and
    padded with -1, all of them where they fit its width, otherwise the forced
    ones and the best others by `scores`: higher first, then the lower index,
    NaN after -inf, -0 equal to +0 (docs/Spec.md section 2). `count` receives how
    many are kept, `kept_scores` their scores (-inf in padding).

    Forced leaves are the first `sink_blocks` and, for each query of the block,
    its own and the `local_blocks` - 1 before it; forced nodes are their
    ancestors. Positions are those of `route_upper`.

    Example:

    ```mlir
    func.func @topk(%nodes: tensor<1x2x256x8xi32>, %s: tensor<1x2x256x8xf32>,
                    %n: tensor<1xi32>, %start: tensor<1xi32>, %first: index,
                    %init: tensor<1x2x256x4xi32>) -> tensor<1x2x256x4xi32> {
      %0 = pisa.select_topk #pisa.params<topk = 4>
             ins(%nodes, %s : tensor<1x2x256x8xi32>, tensor<1x2x256x8xf32>)
             k_len(%n : tensor<1xi32>) q_start(%start : tensor<1xi32>)
             query_offset(%first) outs(%init : tensor<1x2x256x4xi32>) -> tensor<1x2x256x4xi32>
      return %0 : tensor<1x2x256x4xi32>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params, Pisa_I32x4:$nodes, Pisa_F32x4:$scores,
    Pisa_I32x1:$k_len, Optional<Pisa_I32x1>:$q_start,
    Index:$query_offset, Optional<Index>:$query_length,
    Optional<Index>:$level,
    Pisa_I32x4:$kept, Optional<Pisa_I32x3>:$count,
    Optional<Pisa_F32x4>:$kept_scores);
  let assemblyFormat = [{
    $params `ins` `(` $nodes `,` $scores `:` type($nodes) `,` type($scores) `)`
    `k_len` `(` $k_len `:` type($k_len) `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    `query_offset` `(` $query_offset `)`
    (`query_length` `(` $query_length^ `)`)?
    (`level` `(` $level^ `)`)?
    `outs` `(` $kept `:` type($kept) `)`
    (`count` `(` $count^ `:` type($count) `)`)?
    (`kept_scores` `(` $kept_scores^ `:` type($kept_scores) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Pisa_AttendTilesOp : Pisa_AggregatePhaseOp<"attend_tiles", 8,
    ["Query", "KeyValue", "KeyValue", "Item", "Batch", "Batch", "Offset", "Whole",
     "Query", "Query"],
    [AttrSizedOperandSegments]> {
  let summary = "attention over given blocks, by tiles of queries";
  let description = [{
    Iteration space: (B, Hkv, NQ). The strategy in which one task holds a tile of
    queries and visits each block of the union of their lists once. Semantics of
    `attention`; positions are those of `route_upper`.

    Example:

    ```mlir
    func.func @attend(%q: tensor<1x4x256x64xf32>, %k: tensor<1x2x256x64xf32>,
                      %v: tensor<1x2x256x64xf32>, %idx: tensor<1x2x256x4xi32>,
                      %n: tensor<1xi32>, %start: tensor<1xi32>, %first: index, %scale: f32,
                      %init: tensor<1x4x256x64xf32>) -> tensor<1x4x256x64xf32> {
      %0 = pisa.attend_tiles #pisa.params<topk = 4>
             ins(%q, %k, %v, %idx : tensor<1x4x256x64xf32>, tensor<1x2x256x64xf32>,
                 tensor<1x2x256x64xf32>, tensor<1x2x256x4xi32>)
             k_len(%n : tensor<1xi32>) q_start(%start : tensor<1xi32>)
             query_offset(%first) scale(%scale) outs(%init : tensor<1x4x256x64xf32>)
             -> tensor<1x4x256x64xf32>
      return %0 : tensor<1x4x256x64xf32>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params, Pisa_Heads:$q, Pisa_Heads:$k, Pisa_Heads:$v,
    Pisa_I32x4:$indices, Pisa_I32x1:$k_len, Optional<Pisa_I32x1>:$q_start,
    Index:$query_offset, F32:$scale,
    Pisa_Heads:$o, Optional<Pisa_F32x3>:$lse);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $k `,` $v `,` $indices `:` type($q) `,` type($k) `,`
    type($v) `,` type($indices) `)`
    `k_len` `(` $k_len `:` type($k_len) `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    `query_offset` `(` $query_offset `)`
    `scale` `(` $scale `)`
    `outs` `(` $o `:` type($o) `)` (`lse` `(` $lse^ `:` type($lse) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_AttendEntriesOp : Pisa_PhaseOp<"attend_entries", 10,
    ["Heads", "KeyValue", "KeyValue", "KeyValue", "KeyValue", "Item", "Batch",
     "Batch", "Whole", "Whole", "KeyValue", "KeyValue"]> {
  let summary = "attention of each listed query to one block, by block";
  let description = [{
    Iteration space: (B, Hkv, items). The strategy in which a task holds one block of
    keys and values and gathers the queries that chose it. Row r = i G + h of an
    entry (query i of the list's query block, head h of the group) is attention over
    this block alone: row e Q G + r of `partial` [B, Hkv, entries Q G, Dv] receives
    the normalised output of entry e and `partial_lse` [B, Hkv, entries Q G] the log2
    of its weights' sum, 0 and -inf where the row sees no key. Rows of other entries
    stay. `merge_entries` adds them up. Entries are numbered as `list_entries` does
    in lists of K; list 0 starts at query `query_offset` of the sequence's.

    Example:

    ```mlir
    func.func @attend(%q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>,
                      %v: tensor<1x2x256x64xbf16>, %rows: tensor<1x2x5xi32>,
                      %e: tensor<1x2x1024xi32>, %items: tensor<1x2x12x2xi32>,
                      %n: tensor<1xi32>, %start: tensor<1xi32>, %first: index,
                      %scale: f32, %o: tensor<1x2x2048x64xbf16>,
                      %lse: tensor<1x2x2048xf32>)
        -> (tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>) {
      %0:2 = pisa.attend_entries #pisa.params<topk = 4>
             ins(%q, %k, %v, %rows, %e, %items : tensor<1x4x256x64xbf16>,
                 tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>,
                 tensor<1x2x5xi32>, tensor<1x2x1024xi32>, tensor<1x2x12x2xi32>)
             k_len(%n : tensor<1xi32>) q_start(%start : tensor<1xi32>)
             query_offset(%first) scale(%scale)
             outs(%o, %lse : tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>)
             {gather = 128 : i64}
             -> tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>
      return %0#0, %0#1 : tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, I64Attr:$gather,
    Pisa_Heads:$q, Pisa_Heads:$k, Pisa_Heads:$v, Pisa_I32x3:$rows,
    Pisa_I32x3:$entries, Pisa_I32x4:$items, Pisa_I32x1:$k_len,
    Optional<Pisa_I32x1>:$q_start, Index:$query_offset, F32:$scale,
    Pisa_Heads:$partial, Pisa_F32x3:$partial_lse);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $k `,` $v `,` $rows `,` $entries `,` $items `:`
    type($q) `,` type($k) `,` type($v) `,` type($rows) `,` type($entries) `,`
    type($items) `)` `k_len` `(` $k_len `:` type($k_len) `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    `query_offset` `(` $query_offset `)` `scale` `(` $scale `)`
    `outs` `(` $partial `,` $partial_lse `:` type($partial) `,`
    type($partial_lse) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = dpsDeclaration # kindsDeclaration # [{
    bool readsInit(::mlir::OpOperand &) { return true; }
  }];
}

def Pisa_MergeEntriesOp : Pisa_PhaseOp<"merge_entries", 4,
    ["Item", "KeyValue", "KeyValue", "Offset", "Query", "Query"]> {
  let summary = "attention over given blocks, from its parts";
  let description = [{
    Iteration space: (B, Hkv, NQ). Adds up what `attend_entries` left, in the order
    of each list: with m the largest `partial_lse` of a row's entries and
    w_i = 2^(lse_i - m), `o` receives sum_i w_i o_i / sum_i w_i and `lse` the natural
    log of the sum of all weights, m ln 2 + ln sum_i w_i; 0 and -inf for rows that
    see no key. `query_offset` is the first query of the tile, counted from that of
    the first list.

    Example:

    ```mlir
    func.func @merge(%lists: tensor<1x2x256x4xi32>, %p: tensor<1x2x2048x64xbf16>,
                     %l: tensor<1x2x2048xf32>, %first: index,
                     %o: tensor<1x4x256x64xbf16>, %lse: tensor<1x4x256xf32>)
        -> (tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>) {
      %0:2 = pisa.merge_entries #pisa.params<topk = 4>
             ins(%lists, %p, %l : tensor<1x2x256x4xi32>, tensor<1x2x2048x64xbf16>,
                 tensor<1x2x2048xf32>) query_offset(%first)
             outs(%o : tensor<1x4x256x64xbf16>) lse(%lse : tensor<1x4x256xf32>)
             -> tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>
      return %0#0, %0#1 : tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>
    }
    ```
  }];
  let arguments = (ins Pisa_ParamsAttr:$params, Pisa_I32x4:$lists,
    Pisa_Heads:$partial, Pisa_F32x3:$partial_lse, Index:$query_offset,
    Pisa_Heads:$o, Optional<Pisa_F32x3>:$lse);
  let assemblyFormat = [{
    $params `ins` `(` $lists `,` $partial `,` $partial_lse `:` type($lists) `,`
    type($partial) `,` type($partial_lse) `)` `query_offset` `(` $query_offset `)`
    `outs` `(` $o `:` type($o) `)` (`lse` `(` $lse^ `:` type($lse) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_CheckIndicesOp : Op<Pisa_Dialect, "check_indices", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "report lists with an entry twice";
  let description = [{
    Reports to the runtime each list of `indices` that names a block twice
    (entries below 0 are padding). The invocation then fails with a message that
    names the batch, head and row; on GPUs always the first one. Inserted by the
    pipeline option `check-inputs`.

    Example:

    ```mlir
    func.func @check(%idx: tensor<1x2x256x4xi32>) {
      pisa.check_indices %idx : tensor<1x2x256x4xi32>
      return
    }
    ```
  }];
  let arguments = (ins Pisa_I32x4:$indices);
  let assemblyFormat = "$indices attr-dict `:` type($indices)";
}

#endif // PISA_PHASE_OPS_TD
