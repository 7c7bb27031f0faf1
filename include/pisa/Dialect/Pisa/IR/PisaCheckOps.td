//===- PisaCheckOps.td - Checks of inputs on GPUs ----------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_CHECK_OPS_TD
#define PISA_CHECK_OPS_TD

include "pisa/Dialect/Pisa/IR/PisaOpBase.td"

def Pisa_CheckStatus : MemRefRankOf<[I64], [1]>;

def Pisa_CheckRowsOp : Op<Pisa_Dialect, "check_rows", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "note the first list with an entry twice";
  let description = [{
    The one element of `status` becomes the least (unsigned) of what it was and of
    `2^31 (first_row + j) + block` for each list `j` of `lists` that names a block
    twice (entries below 0 are padding). `block` is the first entry that stands in
    the list already. Minima are atomic: the tiles of all lists share `status`, which
    begins as all ones, and what it ends as does not depend on their order.

    Example:

    ```mlir
    func.func @check(%lists: memref<1x1x64x4xi32>, %first: index,
                     %status: memref<1xi64>) {
      pisa.check_rows %lists first_row(%first) status(%status : memref<1xi64>)
          : memref<1x1x64x4xi32>
      return
    }
    ```
  }];
  let arguments = (ins MemRefRankOf<[I32], [4]>:$lists, Index:$first_row,
                       Pisa_CheckStatus:$status);
  let assemblyFormat = [{
    $lists `first_row` `(` $first_row `)` `status` `(` $status `:` type($status) `)`
    attr-dict `:` type($lists)
  }];
}

def Pisa_AwaitCheckOp : Op<Pisa_Dialect, "await_check", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "end the invocation if a check found something";
  let description = [{
    The host waits for the `check_rows` that came before and reads `status`. If that
    is not all ones, the invocation fails with the message of `check_indices`, and
    nothing after this op is done. Rows are numbered as those of lists of shape [B,
    kv_heads, query_blocks, n]. The host waits: not for graphs.

    Example:

    ```mlir
    func.func @await(%status: memref<1xi64>, %heads: index, %blocks: index) {
      pisa.await_check %status kv_heads(%heads) query_blocks(%blocks) : memref<1xi64>
      return
    }
    ```
  }];
  let arguments = (ins Pisa_CheckStatus:$status, Index:$kv_heads,
                       Index:$query_blocks);
  let assemblyFormat = [{
    $status `kv_heads` `(` $kv_heads `)` `query_blocks` `(` $query_blocks `)`
    attr-dict `:` type($status)
  }];
}

#endif // PISA_CHECK_OPS_TD
