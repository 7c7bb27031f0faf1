//===- PisaAttrs.td - Attributes of the pisa dialect -------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_ATTRS_TD
#define PISA_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "pisa/Dialect/Pisa/IR/PisaDialect.td"

class Pisa_Attr<string name, string mnemonic_> : AttrDef<Pisa_Dialect, name> {
  let mnemonic = mnemonic_;
}

def Pisa_ParamsAttr : Pisa_Attr<"Params", "params"> {
  let summary = "the parameters of the method, shared by all ops of a problem";
  let description = [{
    The table of docs/Spec.md, "Names". One attribute holds them all, so that
    the ops of one problem cannot disagree. Parameters at their default are not
    printed.

    Constraints (`params-1` ... in docs/Spec.md):
    - `params-1`: `block_size`, `topk`, `beam` and `query_block` in [1, 4096],
      `fanout` in [2, 64], `sink_blocks` and `local_blocks` in [0, 4096],
      `leaf_atoms` in [1, 256];
    - `params-2`: `local_blocks` >= 1 when `causal`;
    - `params-3`: `topk` >= the forced count,
      `sink_blocks + local_blocks + ceil((query_block - 1) / block_size)`;
    - `params-4`: `beam` >= `topk`;
    - `params-5`: `rerank` is 0 or in [`topk`, `fanout * beam`];
    - `params-6`: `leaf_atoms` divides `block_size` when `rerank` is given;
    - `params-7`: `summary_dtype` is f32, f16 or bf16.

    Example:

    ```mlir
    #pisa.params<topk = 16, beam = 64, rerank = 32>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "64", "C, keys in a leaf block">:$block_size,
    DefaultValuedParameter<"int64_t", "2", "g, children of a node">:$fanout,
    DefaultValuedParameter<"int64_t", "16",
      "K, leaf blocks that a query attends to, forced ones included">:$topk,
    OptionalParameter<"std::optional<int64_t>",
      "W, nodes kept per level above the leaves; absent: topk">:$beam,
    OptionalParameter<"std::optional<int64_t>",
      "R, leaves that get the exact score; absent: all; 0: none">:$rerank,
    DefaultValuedParameter<"int64_t", "4",
      "A, sub-blocks of a leaf in the pre-score">:$leaf_atoms,
    DefaultValuedParameter<"int64_t", "1",
      "Q, adjacent queries that share one selection">:$query_block,
    DefaultValuedParameter<"int64_t", "1", "forced first leaves">:$sink_blocks,
    DefaultValuedParameter<"int64_t", "2",
      "forced leaves that end with the current one">:$local_blocks,
    DefaultValuedParameter<"bool", "true", "mask keys after the query">:$causal,
    OptionalParameter<"::mlir::Type",
      "storage of summaries; absent: the keys' type if 16-bit, else f32">:$summary_dtype
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// W with its default applied.
    int64_t getBeamWidth() const { return getBeam().value_or(getTopk()); }
    /// Leaves a query can reach through the kept nodes of level 2: g * W.
    int64_t getMaxCandidates() const { return getFanout() * getBeamWidth(); }
    /// The largest number of leaves that can be forced for one selection.
    int64_t getForcedCount() const;
    /// How summaries of keys of type `keyType` are stored.
    ::mlir::Type getSummaryType(::mlir::Type keyType) const;
    /// True if routing needs the pre-score's atoms.
    bool usesPreScore() const { return getRerank().has_value(); }
  }];
}

def Pisa_LoweringConfigAttr : Pisa_Attr<"LoweringConfig", "lowering_config"> {
  let summary = "how a problem is tiled; written by pisa-set-lowering-config";
  let description = [{
    Policy as data: only `pisa-set-lowering-config` writes it, later passes read
    it, and the pass that consumed it last deletes it.

    - `query_tile`: queries of one task (a multiple of `query_block`);
    - `leaf_tile`: leaves that one task of the pyramid pools;
    - `row_tile`: rows (queries times the heads of a group) that the inner loops
      hold in registers;
    - `column_tile`: keys that the inner loops hold in registers;
    - `key_tile`: keys of a block that a task of attention by tiles of queries holds
      at a time, a divisor of C; 0: all of them;
    - `gather`: entries that one task of leaf scoring gathers for its leaf; 0: leaves
      are scored by tiles of queries;
    - `chunk`: queries whose attention is computed at a time, key block by key block,
      as one partial output for each chosen block, which are then merged: the
      partial outputs of a chunk bound the scratch; 0: attention by tiles of
      queries;
    - `compact`: whether upper routing gathers the union of a task's candidates and
      scores that, instead of the blocks of nodes that hold them;
    - `operand_type`: the 16-bit type of matrix operands (f16 or bf16) where the
      target multiplies matrices; absent: rows and columns are float32.

    Example:

    ```mlir
    #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>
    ```
  }];
  let parameters = (ins
    "int64_t":$query_tile, "int64_t":$leaf_tile, "int64_t":$row_tile,
    "int64_t":$column_tile,
    DefaultValuedParameter<"int64_t", "0", "keys of a block held at a time">:$key_tile,
    DefaultValuedParameter<"int64_t", "0", "entries gathered for a leaf">:$gather,
    DefaultValuedParameter<"int64_t", "0", "queries attended key block by key block">:$chunk,
    DefaultValuedParameter<"bool", "false", "whether candidates are gathered">:$compact,
    OptionalParameter<"::mlir::Type", "type of matrix operands">:$operand_type);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // PISA_ATTRS_TD
