//===- PisaInterfaces.td - Interfaces of the pisa dialect --*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_INTERFACES_TD
#define PISA_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Pisa_OpInterface : OpInterface<"PisaOpInterface"> {
  let description = [{
    What the shared code (effects, bufferization, tiling) must know of an op
    that its operand list does not say.
  }];
  let cppNamespace = "::mlir::pisa";
  let methods = [
    InterfaceMethod<"Whether the op reads the previous content of an init.",
      "bool", "readsInit", (ins "::mlir::OpOperand &":$init), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        How an operand maps onto the op's iteration space; meaningful for
        phases only.
      }],
      "::mlir::pisa::TileKind", "getTileKind", (ins "unsigned":$operandNumber),
      "", [{ return ::mlir::pisa::TileKind::Whole; }]>,
  ];
}

#endif // PISA_INTERFACES_TD
