//===- Function.cpp - What a function of a module takes ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Compiler/Function.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

std::optional<unsigned> pisa::getOutputArgument(mlir::Value value) {
  while (true) {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
      return argument.getArgNumber();
    auto result = llvm::cast<mlir::OpResult>(value);
    auto dpsOp =
        llvm::dyn_cast<mlir::DestinationStyleOpInterface>(result.getOwner());
    if (!dpsOp)
      return std::nullopt;
    value = dpsOp.getTiedOpOperand(result)->get();
  }
}

llvm::Error pisa::checkShapes(mlir::func::FuncOp func,
                              llvm::ArrayRef<llvm::ArrayRef<int64_t>> sizes) {
  auto isDynamic = [](mlir::Type type) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    return tensor && !tensor.hasStaticShape();
  };
  if (llvm::none_of(func.getArgumentTypes(), isDynamic))
    return llvm::Error::success();
  // Types of other ops do not follow from those of their operands alone.
  for (mlir::Operation &op : func.getBody().front().without_terminator())
    if (!llvm::isa<mlir::DestinationStyleOpInterface>(op) &&
        llvm::any_of(op.getResultTypes(), llvm::IsaPred<mlir::TensorType>))
      return llvm::createStringError(
          "expected static shapes in @" + func.getName().str() +
          ": sizes through '" + op.getName().getStringRef().str() +
          "' cannot be checked");
  mlir::OwningOpRef<mlir::func::FuncOp> copy(func.clone());
  auto &body = copy->getBody().front();
  llvm::SmallVector<mlir::Type> types;
  for (auto [value, shape] : llvm::zip(body.getArguments(), sizes)) {
    if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(value.getType()))
      value.setType(tensor.clone(shape));
    types.push_back(value.getType());
  }
  for (mlir::Operation &op : body.without_terminator()) {
    auto dpsOp = llvm::dyn_cast<mlir::DestinationStyleOpInterface>(op);
    if (!dpsOp)
      continue;
    for (mlir::OpResult result : op.getResults())
      result.setType(dpsOp.getTiedOpOperand(result)->get().getType());
  }
  copy->setFunctionType(mlir::FunctionType::get(
      func.getContext(), types, body.getTerminator()->getOperandTypes()));
  if (mlir::failed(mlir::verify(*copy)))
    return llvm::createStringError(
        "the shapes of the inputs do not fit together");
  return llvm::Error::success();
}
