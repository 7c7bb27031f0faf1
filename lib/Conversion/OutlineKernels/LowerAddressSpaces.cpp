//===- LowerAddressSpaces.cpp - Address spaces as numbers -------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISALOWERADDRESSSPACESPASS
#include "pisa/Conversion/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;

/// Shared memory in PTX.
static constexpr int64_t kShared = 3;
static constexpr StringLiteral kArena = "pisa_shared";

/// The task's memory as a buffer: a descriptor of the global's address.
static Value getArena(gpu::DynamicSharedMemoryOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kShared);
  Type i64 = b.getI64Type(), one = LLVM::LLVMArrayType::get(i64, 1);
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {pointer, pointer, i64, one, one});
  Value address = LLVM::AddressOfOp::create(b, pointer, kArena);
  Value zero = LLVM::ConstantOp::create(b, i64, b.getI64IntegerAttr(0));
  Value unit = LLVM::ConstantOp::create(b, i64, b.getI64IntegerAttr(1));
  Value descriptor = LLVM::PoisonOp::create(b, type);
  auto insert = [&](Value value, ArrayRef<int64_t> position) {
    descriptor = LLVM::InsertValueOp::create(b, descriptor, value, position);
  };
  insert(address, 0);
  insert(address, 1);
  insert(zero, 2);
  // Nobody asks for its size.
  insert(zero, {3, 0});
  insert(unit, {4, 0});
  auto memref = MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                                MemRefLayoutAttrInterface(),
                                b.getI64IntegerAttr(kShared));
  return UnrealizedConversionCastOp::create(b, memref, descriptor).getResult(0);
}

namespace {
struct LowerAddressSpaces
    : pisa::impl::PisaLowerAddressSpacesPassBase<LowerAddressSpaces> {
  void runOnOperation() override {
    gpu::GPUModuleOp kernels = getOperation();
    OpBuilder b(&getContext());
    auto shared = b.getI64IntegerAttr(kShared);
    SmallVector<gpu::DynamicSharedMemoryOp> arenas;
    kernels.walk([&](gpu::DynamicSharedMemoryOp op) { arenas.push_back(op); });
    if (!arenas.empty()) {
      b.setInsertionPointToStart(kernels.getBody());
      auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
      // Without a value it is defined elsewhere: by the launch.
      LLVM::GlobalOp::create(b, kernels.getLoc(), bytes, /*isConstant=*/false,
                             LLVM::Linkage::External, kArena, Attribute(),
                             /*alignment=*/128, kShared);
    }
    for (gpu::DynamicSharedMemoryOp op : arenas) {
      Value arena = getArena(op);
      op.getResult().replaceAllUsesWith(arena);
      op.erase();
    }
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](MemRefType type) -> std::optional<Type> {
      auto space =
          dyn_cast_if_present<gpu::AddressSpaceAttr>(type.getMemorySpace());
      if (!space)
        return std::nullopt;
      MemRefType::Builder builder(type);
      return space.getValue() == gpu::AddressSpace::Workgroup
                 ? MemRefType(builder.setMemorySpace(shared))
                 : MemRefType(builder.setMemorySpace(Attribute()));
    });
    replacer.recursivelyReplaceElementsIn(kernels, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
