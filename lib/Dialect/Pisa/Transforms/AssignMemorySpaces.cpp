//===- AssignMemorySpaces.cpp - Where a GPU task's buffers live -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/Transforms/Passes.h"
#include "pisa/Dialect/Pisa/Transforms/TaskMemory.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAASSIGNMEMORYSPACESPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

/// Rows of one matrix product, and the alignment of buffers.
static constexpr int64_t kMatrixRows = 16, kAlignment = 16;
/// Workgroup memory of a multiprocessor of sm_90, and what each task on it
/// loses.
static constexpr int64_t kMultiprocessorBytes = 233472, kReservedBytes = 1024;
/// Warps of the largest task.
static constexpr int64_t kMostWarps = 32;

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

static int64_t rowsOf(Value storage) {
  auto type = cast<MemRefType>(storage.getType());
  int64_t rows = type.getDimSize(0) * type.getDimSize(1);
  return llvm::alignTo(static_cast<uint64_t>(rows), kMatrixRows);
}

void pisa::createTaskBarrier(OpBuilder &b, Location loc) {
  Value all = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1));
  NVVM::SyncWarpOp::create(b, loc, all);
  gpu::BarrierOp::create(b, loc);
}

Value pisa::getStorage(Value buffer) {
  while (Operation *op = buffer.getDefiningOp()) {
    if (auto view = dyn_cast<memref::SubViewOp>(op))
      buffer = view.getSource();
    else if (auto turned = dyn_cast<memref::TransposeOp>(op))
      buffer = turned.getIn();
    else if (auto cast = dyn_cast<memref::CastOp>(op))
      buffer = cast.getSource();
    else
      break;
  }
  return buffer;
}

int64_t pisa::getScratchBytes(Operation *op, int64_t numWarps) {
  if (auto score = dyn_cast<ScoreBlockOp>(op))
    // One float32 a row and node.
    return rowsOf(getStorage(score.getQueries())) * score.getNodes() * 4;
  if (auto finish = dyn_cast<FinishAttentionOp>(op)) {
    auto o = cast<MemRefType>(finish.getO().getType());
    auto acc = cast<MemRefType>(getStorage(finish.getAcc()).getType());
    int64_t pitch = acc.getDimSize(2) + kMatrixRows / 2;
    int64_t rows = kMatrixRows * numWarps;
    // Rows of the output's type, and one float32 a row for lse.
    return llvm::alignTo(static_cast<uint64_t>(rows * pitch *
                                               o.getElementTypeBitWidth() / 8),
                         kAlignment) +
           rows * 4;
  }
  if (auto score = dyn_cast<ScoreEntriesOp>(op)) {
    auto q = cast<MemRefType>(score.getQ().getType());
    int64_t pitch =
        llvm::alignTo(static_cast<uint64_t>(q.getDimSize(3)), kMatrixRows) +
        kMatrixRows / 2;
    // The leaf's keys, the rows that each warp gathers, twice, and where from,
    // and their terms.
    int64_t warpRows = numWarps * kMatrixRows;
    int64_t rows = score.getParams().getBlockSize() + 2 * warpRows;
    return rows * pitch * q.getElementTypeBitWidth() / 8 + 5 * warpRows * 4;
  }
  if (auto attend = dyn_cast<AttendEntriesOp>(op)) {
    auto width = [](Value x) {
      int64_t dim = cast<MemRefType>(x.getType()).getDimSize(3);
      return static_cast<int64_t>(
          llvm::alignTo(static_cast<uint64_t>(dim), kMatrixRows));
    };
    auto q = cast<MemRefType>(attend.getQ().getType());
    int64_t depth = width(attend.getQ()), valueDim = width(attend.getV());
    int64_t pad = kMatrixRows / 2, warpRows = numWarps * kMatrixRows;
    // The block's keys and values, the rows that each warp gathers, twice, and
    // where from, and for 16 of them the weights' sums, the last keys seen and
    // where outputs go.
    int64_t elements =
        attend.getParams().getBlockSize() * (depth + valueDim + 2 * pad) +
        2 * warpRows * (std::max(depth, valueDim) + pad);
    return elements * q.getElementTypeBitWidth() / 8 + 7 * warpRows * 4;
  }
  if (auto select = dyn_cast<SelectTopkOp>(op)) {
    int64_t n = cast<MemRefType>(select.getNodes().getType()).getDimSize(3);
    return numWarps * llvm::alignTo(static_cast<uint64_t>(n), 32) * 4;
  }
  if (isa<UnionNodesOp>(op))
    // A bitmap, and the ones before each word.
    return 2 * kUnionWords * 4;
  return 0;
}

std::optional<ByteRange> pisa::getWorkgroupRange(Value buffer) {
  auto view = getStorage(buffer).getDefiningOp<memref::ViewOp>();
  // Places of a pipeline are chosen at run time: the pipeline orders them.
  APInt offset;
  if (!view || !matchPattern(view.getByteShift(), m_ConstantInt(&offset)))
    return std::nullopt;
  auto type = cast<MemRefType>(view.getType());
  int64_t begin = offset.getSExtValue();
  int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  return ByteRange{begin, begin + bytes};
}

std::optional<ByteRange> pisa::getScratchRange(Operation *op) {
  auto offset = op->getAttrOfType<IntegerAttr>(kScratchAttr);
  if (!offset)
    return std::nullopt;
  int64_t numWarps = op->getParentOfType<scf::ForallOp>()
                         ->getAttrOfType<IntegerAttr>(kNumWarpsAttr)
                         .getInt();
  return ByteRange{offset.getInt(),
                   offset.getInt() + getScratchBytes(op, numWarps)};
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// A buffer or scratch that wants workgroup memory while its users run.
struct Wanted {
  Operation *op; ///< a memref.alloc, or the tile op whose scratch it is
  int64_t bytes;
  int64_t first, last; ///< positions in the task of its users
  int64_t offset = 0;
};

/// How a buffer is laid out in memory.
struct Storage {
  SmallVector<int64_t> shape; ///< static
  bool turned = false;        ///< the buffer is a transposed view
};

/// An upper bound of a buffer's dynamic size.
FailureOr<int64_t> getUpperBound(Value size) {
  if (auto min = size.getDefiningOp<affine::AffineMinOp>()) {
    std::optional<int64_t> bound;
    for (AffineExpr result : min.getMap().getResults())
      if (auto constant = dyn_cast<AffineConstantExpr>(result))
        bound =
            std::min(bound.value_or(constant.getValue()), constant.getValue());
    if (bound)
      return *bound;
  }
  return failure();
}

struct AssignMemorySpaces
    : pisa::impl::PisaAssignMemorySpacesPassBase<AssignMemorySpaces> {
  using PisaAssignMemorySpacesPassBase::PisaAssignMemorySpacesPassBase;

  void runOnOperation() override {
    WalkResult result =
        getOperation()->walk<WalkOrder::PreOrder>([&](scf::ForallOp task) {
          return failed(assign(task)) ? WalkResult::interrupt()
                                      : WalkResult::skip();
        });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static bool isAccumulator(Value buffer) {
    return llvm::any_of(buffer.getUses(), [](OpOperand &use) {
      auto attend = dyn_cast<AttendBlockOp>(use.getOwner());
      return attend && attend.isDpsInit(&use);
    });
  }

  /// Storage of matrix operands: rows of 16-bit elements whose pitch is 16
  /// bytes more than a multiple of 32, so that the eight rows that ldmatrix
  /// reads at once lie in different banks.
  FailureOr<Storage> getStorageOf(memref::AllocOp alloc, bool fragment) {
    MemRefType type = alloc.getType();
    Storage storage;
    auto sizes = alloc.getDynamicSizes().begin();
    for (int64_t size : type.getShape()) {
      if (ShapedType::isDynamic(size)) {
        FailureOr<int64_t> bound = getUpperBound(*sizes++);
        if (failed(bound))
          return alloc.emitOpError(
              "expected a size with a constant upper bound in a task");
        size = *bound;
      }
      storage.shape.push_back(size);
    }
    auto has = [&](auto match) {
      return llvm::any_of(alloc->getUses(), match);
    };
    bool queries = has([](OpOperand &use) {
      auto pack = dyn_cast<PackQueriesOp>(use.getOwner());
      return pack && pack.isDpsInit(&use);
    });
    if (queries || fragment) {
      // Whole matrices of rows.
      int64_t rows = storage.shape[1];
      storage.shape[0] =
          llvm::alignTo(static_cast<uint64_t>(storage.shape[0] * rows),
                        kMatrixRows) /
          rows;
    }
    if (type.getElementType().isF32() || fragment ||
        !isa<FloatType>(type.getElementType()))
      return storage;
    storage.turned = has([](OpOperand &use) {
      if (auto pack = dyn_cast<PackColumnsOp>(use.getOwner()))
        return pack.getColumns() == use.get();
      if (auto pack = dyn_cast<PackAtomsOp>(use.getOwner()))
        return pack.getColumns() == use.get();
      return false;
    });
    if (storage.turned)
      std::swap(storage.shape[0], storage.shape[1]);
    storage.shape.back() += kMatrixRows / 2;
    return storage;
  }

  /// A task that climbs the whole pyramid has few others beside it.
  int64_t getNumWarps(scf::ForallOp task) {
    bool climbs = task.walk([](Operation *op) {
                        return isa<PoolNodesOp, PlaceEntriesOp>(op)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      })
                      .wasInterrupted();
    return climbs ? kMostWarps : numWarps;
  }

  /// Tasks that shall share a multiprocessor: as many as the registers of their
  /// fragments and their workgroup memory leave room for; 0: no matter.
  static int64_t getMinBlocks(scf::ForallOp task, int64_t numWarps,
                              int64_t sharedBytes) {
    auto dim = [](Value x, unsigned i) {
      return cast<MemRefType>(x.getType()).getDimSize(i);
    };
    int64_t valueDim = 0, depth = 0;
    task.walk([&](Operation *op) {
      if (auto attend = dyn_cast<AttendBlockOp>(op))
        valueDim = dim(attend.getAcc(), 2);
      if (auto attend = dyn_cast<AttendEntriesOp>(op))
        valueDim = dim(attend.getV(), 3);
      if (auto score = dyn_cast<ScoreBlockOp>(op))
        depth = dim(score.getQueries(), 2);
      if (auto score = dyn_cast<ScoreEntriesOp>(op))
        depth = dim(score.getQ(), 3);
    });
    int64_t warps = 0;
    if (valueDim)
      warps = valueDim > 128 ? 8 : 12;
    else if (depth)
      warps = depth > 128 ? 12 : 16;
    int64_t room = kMultiprocessorBytes / (sharedBytes + kReservedBytes);
    return std::min(warps / numWarps, std::max<int64_t>(room, 1));
  }

  LogicalResult assign(scf::ForallOp task) {
    // Positions of the ops of the task's body, for lifetimes.
    Block *body = task.getBody();
    llvm::DenseMap<Operation *, int64_t> position;
    for (auto [i, op] : llvm::enumerate(*body))
      position[&op] = i;
    auto positionOf = [&](Operation *op) {
      return position.lookup(body->findAncestorOpInBlock(*op));
    };

    SmallVector<Wanted> wanted;
    SmallVector<memref::AllocOp> allocs;
    task.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    llvm::DenseMap<Operation *, Storage> storages;
    ImplicitLocOpBuilder b(task.getLoc(), task);
    auto *context = task.getContext();
    auto privateSpace = gpu::AddressSpaceAttr::get(
        context, gpu::GPUDialect::getPrivateAddressSpace());

    // Accumulators first: scratch depends on their storage.
    for (memref::AllocOp alloc : allocs) {
      bool fragment = isAccumulator(alloc);
      FailureOr<Storage> storage = getStorageOf(alloc, fragment);
      if (failed(storage))
        return failure();
      storages[alloc] = *storage;
      if (!fragment)
        continue;
      b.setInsertionPoint(alloc);
      Value root = memref::AllocaOp::create(
          b, MemRefType::get(storage->shape, alloc.getType().getElementType(),
                             MemRefLayoutAttrInterface(), privateSpace));
      replace(b, alloc, root, *storage);
    }
    for (memref::AllocOp alloc : allocs) {
      if (!storages.count(alloc) || isErased.contains(alloc))
        continue;
      const Storage &storage = storages[alloc];
      int64_t bytes = ShapedType::getNumElements(storage.shape) *
                      alloc.getType().getElementTypeBitWidth() / 8;
      Wanted w{alloc, bytes, positionOf(alloc), 0};
      w.first = std::numeric_limits<int64_t>::max();
      SmallVector<Value> aliases = {alloc.getResult()};
      while (!aliases.empty())
        for (Operation *user : aliases.pop_back_val().getUsers()) {
          w.first = std::min(w.first, positionOf(user));
          w.last = std::max(w.last, positionOf(user));
          if (isa<ViewLikeOpInterface>(user))
            llvm::append_range(aliases, user->getResults());
        }
      wanted.push_back(w);
    }

    auto workgroupSpace = gpu::AddressSpaceAttr::get(
        context, gpu::GPUDialect::getWorkgroupAddressSpace());
    // Scratch needs the storage of queries: views before offsets.
    llvm::DenseMap<Operation *, memref::ViewOp> views;
    b.setInsertionPointToStart(body);
    Value arena = gpu::DynamicSharedMemoryOp::create(
        b, MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                           MemRefLayoutAttrInterface(), workgroupSpace));
    for (Wanted &w : wanted) {
      auto alloc = cast<memref::AllocOp>(w.op);
      b.setInsertionPoint(alloc);
      Value zero = arith::ConstantIndexOp::create(b, 0);
      auto view = memref::ViewOp::create(
          b,
          MemRefType::get(storages[alloc].shape,
                          alloc.getType().getElementType(),
                          MemRefLayoutAttrInterface(), workgroupSpace),
          arena, zero, ValueRange{});
      w.op = view;
      views[view] = view;
      replace(b, alloc, view, storages[alloc]);
    }
    // Fewer warps want less scratch.
    int64_t numWarps = getNumWarps(task), total = 0;
    size_t numBuffers = wanted.size();
    for (;; numWarps /= 2) {
      wanted.truncate(numBuffers);
      task.walk([&](Operation *op) {
        if (int64_t bytes = getScratchBytes(op, numWarps))
          wanted.push_back({op, bytes, positionOf(op), positionOf(op)});
      });
      total = place(wanted);
      if (total <= maxSharedBytes || numWarps == 1)
        break;
    }
    if (total > maxSharedBytes)
      return task.emitOpError()
             << "not implemented for NVPTX: a task needs " << total
             << " bytes of workgroup memory, but there are " << maxSharedBytes
             << "; a smaller 'block_size', 'beam' or head dimension needs less";
    for (Wanted &w : wanted) {
      if (!views.contains(w.op)) {
        w.op->setAttr(kScratchAttr, b.getI64IntegerAttr(w.offset));
        continue;
      }
      b.setInsertionPoint(w.op);
      views[w.op].getByteShiftMutable().assign(
          arith::ConstantIndexOp::create(b, w.offset));
    }
    if (int64_t minBlocks = getMinBlocks(task, numWarps, total))
      task->setAttr(kMinBlocksAttr, b.getIndexAttr(minBlocks));
    task->setAttr(kNumWarpsAttr, b.getI64IntegerAttr(numWarps));
    task->setAttr(kSharedBytesAttr, b.getI64IntegerAttr(total));
    if (total == 0)
      arena.getDefiningOp()->erase();
    return success();
  }

  /// First fit, in the order of the largest first; returns the total.
  static int64_t place(SmallVectorImpl<Wanted> &wanted) {
    SmallVector<Wanted *> order;
    for (Wanted &w : wanted) {
      w.offset = 0;
      order.push_back(&w);
    }
    llvm::stable_sort(order,
                      [](Wanted *x, Wanted *y) { return x->bytes > y->bytes; });
    int64_t total = 0;
    SmallVector<Wanted *> placed;
    for (Wanted *w : order) {
      bool moved = true;
      while (moved) {
        moved = false;
        for (Wanted *other : placed)
          if (w->first <= other->last && other->first <= w->last &&
              w->offset < other->offset + other->bytes &&
              other->offset < w->offset + w->bytes) {
            w->offset = llvm::alignTo(
                static_cast<uint64_t>(other->offset + other->bytes),
                kAlignment);
            moved = true;
          }
      }
      placed.push_back(w);
      total = std::max(total, w->offset + w->bytes);
    }
    return llvm::alignTo(static_cast<uint64_t>(total), kAlignment);
  }

  /// Replaces a buffer by the part of its storage that it names.
  void replace(ImplicitLocOpBuilder &b, memref::AllocOp alloc, Value storage,
               const Storage &layout) {
    MemRefType type = alloc.getType();
    int64_t rank = type.getRank();
    SmallVector<OpFoldResult> sizes;
    auto dynamic = alloc.getDynamicSizes().begin();
    for (int64_t size : type.getShape()) {
      if (ShapedType::isDynamic(size))
        sizes.push_back(Value(*dynamic++));
      else
        sizes.push_back(b.getIndexAttr(size));
    }
    if (layout.turned)
      std::swap(sizes[0], sizes[1]);
    SmallVector<OpFoldResult> zeros(rank, b.getIndexAttr(0));
    SmallVector<OpFoldResult> ones(rank, b.getIndexAttr(1));
    Value buffer = storage;
    if (getConstantIntValues(sizes).value_or(SmallVector<int64_t>{}) !=
        layout.shape)
      buffer = memref::SubViewOp::create(b, storage, zeros, sizes, ones);
    if (layout.turned)
      buffer = memref::TransposeOp::create(
          b, buffer,
          AffineMapAttr::get(AffineMap::getPermutationMap(
              ArrayRef<unsigned>{1, 0}, b.getContext())));
    // Users are views and ops that take any layout; views get new types.
    replaceAndRetype(alloc.getResult(), buffer);
    isErased.insert(alloc);
    alloc.erase();
  }

  static void replaceAndRetype(Value from, Value to) {
    for (OpOperand &use : llvm::make_early_inc_range(from.getUses())) {
      auto view = dyn_cast<memref::SubViewOp>(use.getOwner());
      if (!view) {
        use.set(to);
        continue;
      }
      OpBuilder b(view);
      Value again = memref::SubViewOp::create(
          b, view.getLoc(), to, view.getMixedOffsets(), view.getMixedSizes(),
          view.getMixedStrides());
      replaceAndRetype(view.getResult(), again);
      view.erase();
    }
  }

  llvm::DenseSet<Operation *> isErased;
};
} // namespace
