//===- PlanBuilder.cpp - A host function as a plan --------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Target/NvptxTarget.h"

#include "pisa/Dialect/Pisa/IR/Pisa.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ::pisa;

namespace {

/// A buffer as kernels take it: address, sizes and strides (its offset is in
/// the address).
struct Descriptor {
  uint32_t address = 0;
  SmallVector<uint32_t> sizes, strides;
};

std::string nameOf(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

class PlanBuilder {
public:
  explicit PlanBuilder(func::FuncOp func) : func(func) {}

  FailureOr<Plan> build() {
    plan.name = func.getName().str();
    for (auto [i, argument] : llvm::enumerate(func.getArguments()))
      if (failed(addArgument(i, argument)))
        return failure();
    if (!func.getBody().hasOneBlock())
      return func.emitOpError("expected one block to make a plan of");
    if (failed(visit(func.getBody().front())))
      return failure();
    if (std::string error = plan.verify(); !error.empty())
      return func.emitOpError("expected a valid plan, but ") << error;
    return plan;
  }

private:
  LogicalResult addArgument(unsigned i, BlockArgument argument) {
    PlanArgument description;
    description.name = "argument " + std::to_string(i);
    if (auto name = func.getArgAttrOfType<StringAttr>(i, "pisa.name"))
      description.name = name.str();
    Type type = argument.getType();
    if (auto memref = dyn_cast<MemRefType>(type)) {
      description.kind = PlanArgument::Tensor;
      description.elementType = nameOf(memref.getElementType());
      Descriptor buffer;
      buffer.address = plan.addArgument(PlanOp::Pointer, i);
      for (int64_t d = 0; d < memref.getRank(); ++d) {
        description.shape.push_back(
            memref.isDynamicDim(d) ? -1 : memref.getDimSize(d));
        buffer.sizes.push_back(plan.addArgument(PlanOp::Dim, i, d));
        buffer.strides.push_back(plan.addArgument(PlanOp::Stride, i, d));
      }
      buffers[argument] = buffer;
    } else {
      if (type.isF32())
        description.kind = PlanArgument::F32;
      else if (type.isInteger(32))
        description.kind = PlanArgument::I32;
      else if (type.isIndex() || type.isInteger(64))
        description.kind = PlanArgument::I64;
      else
        return func.emitOpError("expected tensors, f32, i32, i64 and index "
                                "arguments on GPUs, but got ")
               << type;
      registers[argument] = plan.addArgument(PlanOp::Scalar, i);
    }
    plan.arguments.push_back(description);
    return success();
  }

  uint32_t constant(int64_t value) {
    auto [it, isNew] = constants.try_emplace(value, 0);
    if (isNew)
      it->second = plan.addConstant(value);
    return it->second;
  }

  static std::optional<PlanOp> getBinary(Operation *op) {
    return llvm::TypeSwitch<Operation *, std::optional<PlanOp>>(op)
        .Case([](arith::AddIOp) { return PlanOp::Add; })
        .Case([](arith::SubIOp) { return PlanOp::Sub; })
        .Case([](arith::MulIOp) { return PlanOp::Mul; })
        .Case([](arith::DivSIOp) { return PlanOp::DivS; })
        .Case([](arith::DivUIOp) { return PlanOp::DivU; })
        .Case([](arith::FloorDivSIOp) { return PlanOp::FloorDivS; })
        .Case([](arith::CeilDivSIOp) { return PlanOp::CeilDivS; })
        .Case([](arith::RemSIOp) { return PlanOp::RemS; })
        .Case([](arith::RemUIOp) { return PlanOp::RemU; })
        .Case([](arith::MinSIOp) { return PlanOp::MinS; })
        .Case([](arith::MaxSIOp) { return PlanOp::MaxS; })
        .Case([](arith::AndIOp) { return PlanOp::And; })
        .Case([](arith::OrIOp) { return PlanOp::Or; })
        .Case([](arith::XOrIOp) { return PlanOp::Xor; })
        .Case([](arith::ShLIOp) { return PlanOp::Shl; })
        .Default([](Operation *) { return std::nullopt; });
  }

  static PlanPredicate getPredicate(arith::CmpIPredicate predicate) {
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return PlanPredicate::Eq;
    case arith::CmpIPredicate::ne:
      return PlanPredicate::Ne;
    case arith::CmpIPredicate::slt:
      return PlanPredicate::SLt;
    case arith::CmpIPredicate::sle:
      return PlanPredicate::SLe;
    case arith::CmpIPredicate::sgt:
      return PlanPredicate::SGt;
    case arith::CmpIPredicate::sge:
      return PlanPredicate::SGe;
    case arith::CmpIPredicate::ult:
      return PlanPredicate::ULt;
    case arith::CmpIPredicate::ule:
      return PlanPredicate::ULe;
    case arith::CmpIPredicate::ugt:
      return PlanPredicate::UGt;
    case arith::CmpIPredicate::uge:
      return PlanPredicate::UGe;
    }
    llvm_unreachable("covered switch");
  }

  LogicalResult visit(Block &block) {
    for (Operation &op : block)
      if (failed(visit(op)))
        return failure();
    return success();
  }

  LogicalResult addLoop(scf::ForOp loop) {
    if (loop.getNumResults() != 0)
      return loop.emitOpError("expected a loop on the host to carry no values, "
                              "but it carries ")
             << loop.getNumResults();
    uint32_t counter = plan.beginLoop(registers.lookup(loop.getLowerBound()),
                                      registers.lookup(loop.getUpperBound()),
                                      registers.lookup(loop.getStep()));
    registers[loop.getInductionVar()] = counter;
    ++depth;
    if (failed(visit(*loop.getBody())))
      return failure();
    --depth;
    plan.endLoop(counter);
    // What the loop defined is gone.
    for (auto [value, reg] : llvm::make_early_inc_range(constants))
      if (reg > counter)
        constants.erase(value);
    return success();
  }

  /// Part of a buffer: another address, the sizes of the part.
  LogicalResult addSubview(memref::SubViewOp view) {
    const Descriptor source = buffers.lookup(view.getSource());
    int64_t bytes = view.getType().getElementTypeBitWidth() / 8;
    llvm::SmallBitVector dropped = view.getDroppedDims();
    auto reg = [&](OpFoldResult value) {
      if (auto attribute = dyn_cast<Attribute>(value))
        return constant(cast<IntegerAttr>(attribute).getInt());
      return registers.lookup(cast<Value>(value));
    };
    Descriptor part;
    uint32_t offset = constant(0);
    for (auto [i, first, size, step] :
         llvm::enumerate(view.getMixedOffsets(), view.getMixedSizes(),
                         view.getMixedStrides())) {
      uint32_t moved =
          plan.addBinary(PlanOp::Mul, reg(first), source.strides[i]);
      offset = plan.addBinary(PlanOp::Add, offset, moved);
      if (dropped.test(i))
        continue;
      part.sizes.push_back(reg(size));
      part.strides.push_back(
          plan.addBinary(PlanOp::Mul, source.strides[i], reg(step)));
    }
    part.address =
        plan.addBinary(PlanOp::Add, source.address,
                       plan.addBinary(PlanOp::Mul, offset, constant(bytes)));
    buffers[view] = part;
    return success();
  }

  LogicalResult visit(Operation &op) {
    if (auto value = dyn_cast<arith::ConstantOp>(op)) {
      if (auto number = dyn_cast<IntegerAttr>(value.getValue())) {
        // A comparison is 1, not -1.
        APInt bits = number.getValue();
        registers[value] =
            constant(number.getType().isInteger(1) ? bits.getZExtValue()
                                                   : bits.getSExtValue());
        return success();
      }
      if (auto number = dyn_cast<FloatAttr>(value.getValue()))
        if (number.getType().isF32()) {
          APInt bits = number.getValue().bitcastToAPInt();
          registers[value] = constant(bits.getZExtValue());
          return success();
        }
    }
    if (std::optional<PlanOp> binary = getBinary(&op)) {
      registers[op.getResult(0)] =
          plan.addBinary(*binary, registers.lookup(op.getOperand(0)),
                         registers.lookup(op.getOperand(1)));
      return success();
    }
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      registers[compare] = plan.addCompare(getPredicate(compare.getPredicate()),
                                           registers.lookup(compare.getLhs()),
                                           registers.lookup(compare.getRhs()));
      return success();
    }
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      registers[select] =
          plan.addSelect(registers.lookup(select.getCondition()),
                         registers.lookup(select.getTrueValue()),
                         registers.lookup(select.getFalseValue()));
      return success();
    }
    // All integers are kept sign-extended; sizes fit in the narrower type.
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
      registers[op.getResult(0)] = registers.lookup(op.getOperand(0));
      return success();
    }
    if (auto dim = dyn_cast<memref::DimOp>(op))
      if (std::optional<int64_t> i = dim.getConstantIndex()) {
        registers[dim] = buffers[dim.getSource()].sizes[*i];
        return success();
      }
    if (auto cast = dyn_cast<memref::CastOp>(op)) {
      buffers[cast] = buffers[cast.getSource()];
      return success();
    }
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return addScratch(alloc);
    if (auto view = dyn_cast<memref::SubViewOp>(op))
      return addSubview(view);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return addLoop(loop);
    if (isa<scf::YieldOp>(op) && op.getNumOperands() == 0)
      return success();
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      return addLaunch(launch);
    if (auto check = dyn_cast<mlir::pisa::AwaitCheckOp>(op)) {
      plan.addCheck(buffers[check.getStatus()].address,
                    registers.lookup(check.getKvHeads()),
                    registers.lookup(check.getQueryBlocks()));
      return success();
    }
    if (isa<func::ReturnOp>(op) && op.getNumOperands() == 0)
      return success();
    return op.emitOpError(
        "does not belong on the host: expected sizes, scratch, "
        "launches and loops of them");
  }

  LogicalResult addScratch(memref::AllocOp alloc) {
    if (depth > 0)
      return alloc.emitOpError(
          "expected scratch to be allocated outside of loops on the host");
    MemRefType type = alloc.getType();
    Descriptor buffer;
    auto dynamic = alloc.getDynamicSizes().begin();
    for (int64_t size : type.getShape())
      buffer.sizes.push_back(ShapedType::isDynamic(size)
                                 ? registers.lookup(*dynamic++)
                                 : constant(size));
    uint32_t count = constant(1);
    buffer.strides.resize(buffer.sizes.size());
    for (size_t d = buffer.sizes.size(); d-- > 0;) {
      buffer.strides[d] = count;
      count = plan.addBinary(PlanOp::Mul, count, buffer.sizes[d]);
    }
    uint32_t bytes = plan.addBinary(
        PlanOp::Mul, count, constant(type.getElementTypeBitWidth() / 8));
    buffer.address = plan.addScratch(bytes);
    buffers[alloc] = buffer;
    return success();
  }

  LogicalResult addLaunch(gpu::LaunchFuncOp launch) {
    APInt threads, shared;
    if (!matchPattern(launch.getBlockSizeX(), m_ConstantInt(&threads)) ||
        !matchPattern(launch.getDynamicSharedMemorySize(),
                      m_ConstantInt(&shared)))
      return launch.emitOpError("expected constant threads and shared memory");
    std::string name = launch.getKernelName().str();
    auto [it, isNew] = kernels.try_emplace(name, plan.kernels.size());
    if (isNew)
      plan.kernels.push_back({name,
                              static_cast<uint32_t>(threads.getZExtValue()),
                              static_cast<uint32_t>(shared.getZExtValue())});
    PlanLaunch result;
    result.kernel = it->second;
    result.grid = {registers.lookup(launch.getGridSizeX()),
                   registers.lookup(launch.getGridSizeY()),
                   registers.lookup(launch.getGridSizeZ())};
    for (Value operand : launch.getKernelOperands()) {
      if (auto type = dyn_cast<MemRefType>(operand.getType())) {
        // A descriptor: allocated and aligned pointer, offset, sizes, strides.
        auto it = buffers.find(operand);
        if (it == buffers.end())
          return launch.emitOpError(
              "expected arguments and scratch as buffers");
        const Descriptor &buffer = it->second;
        result.parameters.push_back({buffer.address, 8});
        result.parameters.push_back({buffer.address, 8});
        result.parameters.push_back({constant(0), 8});
        for (ArrayRef<uint32_t> list :
             {ArrayRef(buffer.sizes), ArrayRef(buffer.strides)})
          for (uint32_t reg : list)
            result.parameters.push_back({reg, 8});
        continue;
      }
      uint32_t bytes = operand.getType().isIndex()
                           ? 8
                           : operand.getType().getIntOrFloatBitWidth() / 8;
      result.parameters.push_back({registers.lookup(operand), bytes});
    }
    plan.addLaunch(std::move(result));
    return success();
  }

  func::FuncOp func;
  Plan plan;
  llvm::DenseMap<Value, uint32_t> registers;
  llvm::DenseMap<Value, Descriptor> buffers;
  llvm::DenseMap<int64_t, uint32_t> constants;
  llvm::StringMap<uint32_t> kernels;
  unsigned depth = 0; ///< loops around what is visited
};

} // namespace

namespace pisa {
FailureOr<Plan> buildPlan(func::FuncOp func) {
  return PlanBuilder(func).build();
}
} // namespace pisa
