//===- PisaOps.td - Problem-level ops ----------------------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_OPS_TD
#define PISA_OPS_TD

include "pisa/Dialect/Pisa/IR/PisaOpBase.td"

// A whole problem: decomposed into phases by its strategy.
class Pisa_ProblemOp<string mnemonic, int firstInit> :
    Pisa_Op<mnemonic, firstInit, [
      AttrSizedOperandSegments,
      DeclareOpInterfaceMethods<Pisa_OpInterface>,
      DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>]>;

def Pisa_BuildPyramidOp : Pisa_ProblemOp<"build_pyramid", 4> {
  let summary = "pool keys into a pyramid of block means";
  let description = [{
    Level 1 holds one summary per leaf of C keys, level l + 1 one per g nodes of
    level l, the top level is one node. A leaf's sum is the float32 sum of its
    keys in index order, a node's sum the float32 sum of its children's sums in
    index order; a summary is sum / count, rounded once to the pyramid's element
    type (docs/Spec.md section 1). Levels are packed one after the other, level 1
    first; the offsets follow from the capacity Tk (`PyramidLayout`). A node that
    lies partly past `k_len` is written with the keys it has; the row of a node
    without keys is zero. Keys at and past `k_len` are never read.

    `open_sums` receives, for each level l, in row l - 1, the float32 sum of the
    parts already complete of the node that is still open at `k_len` (keys for
    level 1, complete children above); zero where no node is open. It is what
    appending continues from.

    `atoms` and `outlier` serve the pre-score (docs/Spec.md section 2): per leaf
    the means of A sub-blocks without the outlier key (zero for an empty one),
    and the absolute index of the key farthest from the leaf's mean, -1 for a
    leaf without keys.

    Constraints:
    - `build-1`: `k` is [B, Hkv, Tk, D] with Tk < 2^31, `k_len` [B], `pyramid`
      [B, Hkv, nodes(Tk), D] with nodes(Tk) of `PyramidLayout`;
    - `build-2`: D is a static multiple of 8, at most 256; Hkv is static;
    - `build-3`: `pyramid` and `atoms` have the summary type of `params`;
    - `build-4`: `open_sums` is [B, Hkv, levels(Tk), D];
    - `build-5`: `atoms` and `outlier` are given together, as [B, Hkv, leaves, A,
      D] of the summary type and [B, Hkv, leaves], and A divides C;

    Example:

    ```mlir
    func.func @build(%k: tensor<1x2x256x64xbf16>, %n: tensor<1xi32>,
                     %init: tensor<1x2x7x64xbf16>) -> tensor<1x2x7x64xbf16> {
      %0 = pisa.build_pyramid #pisa.params<topk = 4>
             ins(%k : tensor<1x2x256x64xbf16>) k_len(%n : tensor<1xi32>)
             outs(%init : tensor<1x2x7x64xbf16>) -> tensor<1x2x7x64xbf16>
      return %0 : tensor<1x2x7x64xbf16>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params,
    Pisa_Heads:$k, Pisa_I32x1:$k_len, Optional<Pisa_I32x1>:$cu_seqlens_k,
    Optional<Pisa_I32x2>:$page_table,
    Pisa_Heads:$pyramid, Optional<Pisa_F32x4>:$open_sums,
    Optional<Pisa_Atoms>:$atoms, Optional<Pisa_I32x3>:$outlier);
  let assemblyFormat = [{
    $params `ins` `(` $k `:` type($k) `)` `k_len` `(` $k_len `:` type($k_len) `)`
    (`cu_seqlens_k` `(` $cu_seqlens_k^ `:` type($cu_seqlens_k) `)`)?
    (`page_table` `(` $page_table^ `:` type($page_table) `)`)?
    `outs` `(` $pyramid `:` type($pyramid) `)`
    (`open_sums` `(` $open_sums^ `:` type($open_sums) `)`)?
    (`atoms` `(` $atoms^ `:` type($atoms) `)`)?
    (`outlier` `(` $outlier^ `:` type($outlier) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_RouteOp : Pisa_ProblemOp<"route", 11> {
  let summary = "choose K key blocks for each query by a search in the pyramid";
  let description = [{
    One selection per kv head and block of Q queries (docs/Spec.md section 2).
    From the root down, the nodes kept at a level are expanded to their children;
    the best W of them stay, forced ones included, by
    score(node) = sum over heads of log sum over children c of
    count(c) exp(scale q . summary(c)). The leaves that remain are ranked by their
    exact score, after a cut by the pre-score where `rerank` is given.

    `indices` receives the selected leaves in ascending order, padded with -1.
    `count` receives how many there are, `scores` the float32 score of each (the
    exact one; the pre-score where `rerank = 0`; -inf in padding).

    `q_start` absent: causal, k_len - Tq; otherwise there is no position and
    nothing is forced. No gradient flows through a selection.

    Constraints:
    - `route-1`: `q` is [B, Hq, Tq, D], `k` [B, Hkv, Tk, D] with Tk < 2^31,
      `pyramid` [B, Hkv, nodes(Tk), D], `k_len` and `q_start` [B]; B, Hkv and D
      agree, `q` and `k` share one element type;
    - `route-2`: D is a static multiple of 8, at most 256; Hq and Hkv are static
      and Hkv divides Hq;
    - `route-3`: `pyramid` and `atoms` have the summary type of `params`;
    - `route-4`: `indices` is [B, Hkv, NQ, K] with NQ = ceil(Tq / Q); `count`
      [B, Hkv, NQ]; `scores` like `indices`;
    - `route-5`: `atoms` and `outlier` are given together, shaped as by
      `build_pyramid`, and exactly when `params` has `rerank`;
    - `route-6`: `cu_seqlens_q` and `cu_seqlens_k` are given together and hold
      as many entries;
    - `route-7`: dense layout, causal, no `q_start`: Tq <= Tk where both are
      static, or Tk = 0.

    Example:

    ```mlir
    func.func @route(%q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>,
                     %pyr: tensor<1x2x7x64xbf16>, %n: tensor<1xi32>, %scale: f32,
                     %init: tensor<1x2x256x4xi32>) -> tensor<1x2x256x4xi32> {
      %0 = pisa.route #pisa.params<topk = 4>
             ins(%q, %k, %pyr : tensor<1x4x256x64xbf16>, tensor<1x2x256x64xbf16>,
                 tensor<1x2x7x64xbf16>) k_len(%n : tensor<1xi32>) scale(%scale)
             outs(%init : tensor<1x2x256x4xi32>) -> tensor<1x2x256x4xi32>
      return %0 : tensor<1x2x256x4xi32>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params,
    Pisa_Heads:$q, Pisa_Heads:$k, Pisa_Heads:$pyramid,
    Optional<Pisa_Atoms>:$atoms, Optional<Pisa_I32x3>:$outlier,
    Pisa_I32x1:$k_len, Optional<Pisa_I32x1>:$q_start,
    Optional<Pisa_I32x1>:$cu_seqlens_q, Optional<Pisa_I32x1>:$cu_seqlens_k,
    Optional<Pisa_I32x2>:$page_table, F32:$scale,
    Pisa_I32x4:$indices, Optional<Pisa_I32x3>:$count,
    Optional<Pisa_F32x4>:$scores);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $k `,` $pyramid `:` type($q) `,` type($k) `,`
    type($pyramid) `)`
    (`atoms` `(` $atoms^ `,` $outlier `:` type($atoms) `,` type($outlier) `)`)?
    `k_len` `(` $k_len `:` type($k_len) `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    (`cu_seqlens_q` `(` $cu_seqlens_q^ `:` type($cu_seqlens_q) `)`)?
    (`cu_seqlens_k` `(` $cu_seqlens_k^ `:` type($cu_seqlens_k) `)`)?
    (`page_table` `(` $page_table^ `:` type($page_table) `)`)?
    `scale` `(` $scale `)`
    `outs` `(` $indices `:` type($indices) `)`
    (`count` `(` $count^ `:` type($count) `)`)?
    (`scores` `(` $scores^ `:` type($scores) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

def Pisa_AttentionOp : Pisa_ProblemOp<"attention", 10> {
  let summary = "softmax attention over the keys of given blocks";
  let description = [{
    Softmax attention of each query over the keys of the blocks that its list
    names, causal per key, float32 accumulation (docs/Spec.md section 3). Any
    list is accepted, also one that `route` did not make: an entry that is -1,
    out of range or wholly in the future contributes nothing, wherever it
    stands. The entries of a list must be distinct (checked by the pipeline
    option `check-inputs`); otherwise the row's value is unspecified but finite.
    A row without a visible key gives 0 and lse -inf.

    `o` receives the output in q's type, `lse` the natural log-sum-exp.

    Constraints:
    - `attention-1`: `q` is [B, Hq, Tq, D], `k` [B, Hkv, Tk, D] with Tk < 2^31,
      `v` [B, Hkv, Tk, Dv], `k_len` and `q_start` [B]; B, Hkv, Tk and D agree, one
      element type;
    - `attention-2`: D and Dv are static multiples of 8, at most 256; Hq and Hkv
      are static and Hkv divides Hq;
    - `attention-3`: `indices` is [B, Hkv, NQ, any static width >= 1];
    - `attention-4`: `o` is [B, Hq, Tq, Dv] of q's type; `lse` [B, Hq, Tq];
    - `attention-5`: `cu_seqlens_q` and `cu_seqlens_k` are given together and
      hold as many entries;
    - `attention-6`: dense layout, causal, no `q_start`: Tq <= Tk where both are
      static, or Tk = 0.

    Example:

    ```mlir
    func.func @attention(%q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>,
                         %v: tensor<1x2x256x64xbf16>, %idx: tensor<1x2x256x4xi32>,
                         %n: tensor<1xi32>, %scale: f32,
                         %init: tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16> {
      %0 = pisa.attention #pisa.params<topk = 4>
             ins(%q, %k, %v, %idx : tensor<1x4x256x64xbf16>,
                 tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>,
                 tensor<1x2x256x4xi32>) k_len(%n : tensor<1xi32>) scale(%scale)
             outs(%init : tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16>
      return %0 : tensor<1x4x256x64xbf16>
    }
    ```
  }];
  let arguments = (ins
    Pisa_ParamsAttr:$params,
    Pisa_Heads:$q, Pisa_Heads:$k, Pisa_Heads:$v, Pisa_I32x4:$indices,
    Pisa_I32x1:$k_len, Optional<Pisa_I32x1>:$q_start,
    Optional<Pisa_I32x1>:$cu_seqlens_q, Optional<Pisa_I32x1>:$cu_seqlens_k,
    Optional<Pisa_I32x2>:$page_table, F32:$scale,
    Pisa_Heads:$o, Optional<Pisa_F32x3>:$lse);
  let assemblyFormat = [{
    $params `ins` `(` $q `,` $k `,` $v `,` $indices `:` type($q) `,` type($k) `,`
    type($v) `,` type($indices) `)`
    `k_len` `(` $k_len `:` type($k_len) `)`
    (`q_start` `(` $q_start^ `:` type($q_start) `)`)?
    (`cu_seqlens_q` `(` $cu_seqlens_q^ `:` type($cu_seqlens_q) `)`)?
    (`cu_seqlens_k` `(` $cu_seqlens_k^ `:` type($cu_seqlens_k) `)`)?
    (`page_table` `(` $page_table^ `:` type($page_table) `)`)?
    `scale` `(` $scale `)`
    `outs` `(` $o `:` type($o) `)` (`lse` `(` $lse^ `:` type($lse) `)`)?
    attr-dict (`->` type($results)^)?
  }];
}

include "pisa/Dialect/Pisa/IR/PisaPhaseOps.td"
include "pisa/Dialect/Pisa/IR/PisaTileOps.td"
include "pisa/Dialect/Pisa/IR/PisaCheckOps.td"

#endif // PISA_OPS_TD
