//===- PisaOpBase.td - What all pisa ops share -------------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_OP_BASE_TD
#define PISA_OP_BASE_TD

include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "pisa/Dialect/Pisa/IR/PisaAttrs.td"
include "pisa/Dialect/Pisa/IR/PisaInterfaces.td"

// A ranked tensor, or after bufferization a strided memref.
class Pisa_Shaped<list<Type> elements, int rank, string what> :
    AnyTypeOf<[TensorRankOf<elements, [rank]>, MemRefRankOf<elements, [rank]>],
              "a rank-" # rank # " tensor or memref of " # what>;

def Pisa_Heads   : Pisa_Shaped<[F32, F16, BF16], 4, "f32, f16 or bf16">;
def Pisa_Atoms   : Pisa_Shaped<[F32, F16, BF16], 5, "f32, f16 or bf16">;
def Pisa_F32x1   : Pisa_Shaped<[F32], 1, "f32">;
def Pisa_F32x2   : Pisa_Shaped<[F32], 2, "f32">;
def Pisa_F32x3   : Pisa_Shaped<[F32], 3, "f32">;
def Pisa_F32x4   : Pisa_Shaped<[F32], 4, "f32">;
// Rows and columns of a task: float32, or the type of matrix operands.
def Pisa_Packed2 : Pisa_Shaped<[F32, F16, BF16], 2, "f32, f16 or bf16">;
def Pisa_Packed3 : Pisa_Shaped<[F32, F16, BF16], 3, "f32, f16 or bf16">;
def Pisa_I32x1   : Pisa_Shaped<[I32], 1, "i32">;
def Pisa_I32x2   : Pisa_Shaped<[I32], 2, "i32">;
def Pisa_I32x3   : Pisa_Shaped<[I32], 3, "i32">;
def Pisa_I32x4   : Pisa_Shaped<[I32], 4, "i32">;

// An op in destination-passing style. `firstInit` is the ODS number of the first
// init; all operands after it are inits.
class Pisa_Op<string mnemonic, int firstInit, list<Trait> traits = []> :
    Op<Pisa_Dialect, mnemonic, !listconcat(traits, [
      DestinationStyleOpInterface,
      DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
      DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
        ["reifyResultShapes"]>])> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasVerifier = 1;

  code dpsDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      unsigned first = getODSOperandIndexAndLength(}] # firstInit # [{).first;
      return ::mlir::MutableOperandRange(
          getOperation(), first, getOperation()->getNumOperands() - first);
    }
  }];
  let extraClassDeclaration = dpsDeclaration;
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
  }];
}

// Where the queries of an op stand. Shared wording of the operands `k_len`,
// `q_start`, `query_offset` and `query_length`:
//   k_len         [B]  keys of each sequence; the dimension of k is its capacity
//   q_start       [B]  absolute position of query 0; see each op for its absence
//   query_offset       index of the op's first query in its sequence; absent: 0
//   query_length       queries of the whole sequence, which clip a query block;
//                      absent: no clipping (always right for query_block = 1)

#endif // PISA_OP_BASE_TD
