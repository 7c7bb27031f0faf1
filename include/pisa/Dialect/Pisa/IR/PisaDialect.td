//===- PisaDialect.td - The pisa dialect -------------------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_DIALECT_TD
#define PISA_DIALECT_TD

include "mlir/IR/OpBase.td"

def Pisa_Dialect : Dialect {
  let name = "pisa";
  let cppNamespace = "::mlir::pisa";
  let summary = "Pyramid top-k sparse attention";
  let description = [{
    Block-sparse attention whose blocks are chosen by a coarse-to-fine search in
    a pyramid of pooled keys. The semantics are those of docs/Spec.md; this
    dialect holds them at three levels:

    - **problem** (L1): `build_pyramid`, `route`, `attention` on whole tensors;
    - **phases** (L1.5): the steps that a strategy breaks a problem into, each
      tilable over its own iteration space;
    - **tiles** (L2, L3): the steps of one tile, on tensors and, after
      bufferization, on memrefs.

    Every op is in destination-passing style. An init is overwritten unless the
    op's description says that it is read. Symbols: B batch, Hq and Hkv query and
    kv heads, G = Hq / Hkv, Tq and Tk lengths (Tk is the capacity; `k_len` holds
    the length), D and Dv head dims, NQ = ceil(Tq / Q) query blocks, and the
    parameters C, g, K, W, R, A, Q of `#pisa.params`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 0;
}

#endif // PISA_DIALECT_TD
