//===- LayoutTest.cpp - Strided arguments of compiled functions -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuFixture.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <numeric>

using namespace pisa;
using namespace pisa::test;

namespace {

/// An array in the middle of poison, with strides of its own.
class View {
public:
  /// Strides in elements; the storage reaches from `before` elements in front
  /// of the first to `after` behind the last.
  View(const Array &array, std::vector<int64_t> strides, int64_t before = 0,
       int64_t after = 0)
      : type(array.type), shape(array.shape), strides(std::move(strides)),
        first(before) {
    int64_t last = first;
    for (size_t i = 0; i < shape.size(); ++i)
      last += this->strides[i] * (shape[i] - 1);
    storage.assign((last + 1 + after) * size(), 0xff);
    visit([&](int64_t from, int64_t to) {
      std::memcpy(&storage[to * size()], &array.data[from * size()], size());
    });
  }

  CpuArgument argument() {
    CpuArgument argument = CpuArgument::array(&storage[first * size()], shape);
    argument.strides.assign(strides.begin(), strides.end());
    return argument;
  }

  /// The elements, contiguous.
  Array read() const {
    Array array;
    array.type = type;
    array.shape = shape;
    array.data.resize(array.numElements() * size());
    visit([&](int64_t to, int64_t from) {
      std::memcpy(&array.data[to * size()], &storage[from * size()], size());
    });
    return array;
  }

  /// All that is not an element is still poison.
  void expectPoisonAround(const char *what) const {
    std::vector<uint8_t> rest = storage;
    visit([&](int64_t, int64_t at) {
      std::fill_n(&rest[at * size()], size(), 0xff);
    });
    for (size_t i = 0; i < rest.size(); ++i)
      ASSERT_EQ(int(rest[i]), 0xff)
          << what << ": written at element " << int64_t(i / size()) - first;
  }

private:
  int64_t size() const { return npy::elementSize(type); }
  void visit(llvm::function_ref<void(int64_t, int64_t)> each) const {
    std::vector<int64_t> index(shape.size(), 0);
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1),
                                    std::multiplies<int64_t>());
    for (int64_t i = 0; i < count; ++i) {
      int64_t left = i, at = first;
      for (size_t d = shape.size(); d-- > 0; left /= shape[d])
        at += left % shape[d] * strides[d];
      each(i, at);
    }
  }

  Type type;
  std::vector<int64_t> shape, strides;
  int64_t first;
  std::vector<uint8_t> storage;
};

/// Strides of [B, H, T, D] stored as [B, T, H, D].
std::vector<int64_t> transposed(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 3;)
    strides[i] = strides[i + 1] * shape[i + 1];
  int64_t row = shape.size() > 3 ? strides[3] * shape[3] : 1;
  strides[1] = row;
  strides[2] = row * shape[1];
  strides[0] = strides[2] * shape[2];
  return strides;
}

/// Contiguous strides with `gap` elements more after each of the outer
/// dimensions.
std::vector<int64_t> gapped(const std::vector<int64_t> &shape, int64_t gap) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * shape[i + 1] + gap;
  return strides;
}

/// The functions of a problem with all their arguments, in the order of
/// pisa::printModule.
class Layout : public testing::TestWithParam<Type> {
protected:
  static constexpr int64_t kHeads = 6, kKvHeads = 2, kDim = 16, kValueDim = 24;

  OpProblem makeProblem(int64_t batch, int64_t queries, int64_t keys,
                        int64_t heads = kHeads, int64_t kvHeads = kKvHeads) {
    OpProblem problem =
        test::makeProblem(GetParam(), heads, kvHeads, queries, keys, kDim);
    problem.shape.batch = batch;
    problem.shape.valueDim = kValueDim;
    problem.shape.kLen.assign(batch, keys);
    problem.shape.params.rerank = 8; // so that there are atoms
    problem.wantScores = problem.wantOpenSums = true;
    return problem;
  }

  /// One module for each number of heads.
  CpuModule *getModule(const OpProblem &problem) {
    // Never destroyed: an engine still uses LLVM's static data when it goes.
    static auto &cache =
        *new std::map<std::string, std::unique_ptr<CpuModule>>();
    std::string text = printModule(problem, problem.shape.params.topk);
    std::unique_ptr<CpuModule> &entry = cache[text];
    if (entry)
      return entry.get();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &getContext());
    if (!module) {
      ADD_FAILURE() << "not parsed:\n" << text;
      return nullptr;
    }
    auto compiled = compileForCpu(*module, CompileOptions());
    if (!compiled) {
      ADD_FAILURE() << llvm::toString(compiled.takeError());
      return nullptr;
    }
    entry = std::move(*compiled);
    return entry.get();
  }

  using MakeView =
      llvm::function_ref<View(const char *name, const Array &array)>;

  /// Runs all functions on views of the data; the outputs go back into `c`.
  void run(CpuCase &c, MakeView makeView) {
    c.buffers.indices = {};
    allocateOutputs(c.problem, c.buffers);
    CpuModule *module = getModule(c.problem);
    if (!module)
      return;
    OpBuffers &b = c.buffers;
    View q = makeView("q", b.q), k = makeView("k", b.k), v = makeView("v", b.v);
    View pyramid = makeView("pyramid", b.pyramid);
    View openSums = makeView("open_sums", b.openSums);
    View atoms = makeView("atoms", b.atoms);
    View outlier = makeView("outlier", b.outlier);
    View indices = makeView("indices", b.indices);
    View count = makeView("count", b.count);
    View scores = makeView("scores", b.scores);
    View out = makeView("out", b.out), lse = makeView("lse", b.lse);
    CpuArgument kLen = CpuArgument::array(b.kLen.data.data(), b.kLen.shape);
    CpuArgument scale = CpuArgument::scalar(c.problem.shape.scale);

    Invocation invocation(getPool());
    auto call = [&](const char *function,
                    llvm::ArrayRef<CpuArgument> arguments) {
      EXPECT_EQ(takeText(module->call(function, arguments, invocation)), "");
    };
    call("build_pyramid",
         {k.argument(), kLen, pyramid.argument(), openSums.argument(),
          atoms.argument(), outlier.argument()});
    call("route", {q.argument(), k.argument(), pyramid.argument(),
                   atoms.argument(), outlier.argument(), kLen, scale,
                   indices.argument(), count.argument(), scores.argument()});
    call("attention",
         {q.argument(), k.argument(), v.argument(), indices.argument(), kLen,
          scale, out.argument(), lse.argument()});

    struct {
      const char *name;
      const View &view;
      Array &array;
    } outputs[] = {{"pyramid", pyramid, b.pyramid},
                   {"open sums", openSums, b.openSums},
                   {"atoms", atoms, b.atoms},
                   {"outlier", outlier, b.outlier},
                   {"indices", indices, b.indices},
                   {"count", count, b.count},
                   {"scores", scores, b.scores},
                   {"out", out, b.out},
                   {"lse", lse, b.lse}};
    for (auto &output : outputs) {
      output.view.expectPoisonAround(output.name);
      output.array = output.view.read();
    }
  }

  void expectSameAsContiguous(const CpuCase &data, MakeView makeView) {
    CpuCase want = data, got = data;
    run(want, [](const char *, const Array &array) {
      return View(array, gapped(array.shape, 0));
    });
    expectGood(verifyPyramid(want.problem, want.buffers));
    expectGood(verifyRoute(want.problem, want.buffers));
    expectGood(verifyAttention(want.problem, want.buffers));
    run(got, makeView);
    expectSameOutputs(got.buffers, want.buffers);
    expectSameBits("scores", got.buffers.scores, want.buffers.scores);
    expectSameBits("pyramid", got.buffers.pyramid, want.buffers.pyramid);
    expectSameBits("open sums", got.buffers.openSums, want.buffers.openSums);
    expectSameBits("atoms", got.buffers.atoms, want.buffers.atoms);
    expectSameBits("outlier", got.buffers.outlier, want.buffers.outlier);
  }
};

INSTANTIATE_TEST_SUITE_P(Types, Layout,
                         testing::Values(Type::F32, Type::BF16, Type::F16),
                         [](const auto &info) {
                           return std::string(npy::typeName(info.param));
                         });

TEST_P(Layout, TransposedStorage) {
  // [B, T, H, D], inputs and outputs.
  CpuCase data(makeProblem(2, 200, 700), 2);
  expectSameAsContiguous(data, [](const char *, const Array &array) {
    // Unit stride in the last dimension is asked of lse, outlier and count too.
    return View(array, array.shape.size() > 3 ? transposed(array.shape)
                                              : gapped(array.shape, 0));
  });
}

TEST_P(Layout, InsideLargerBuffers) {
  // Rows, heads and batches apart from each other, and poison in the gaps.
  for (int64_t gap : {1, 7, 64}) {
    SCOPED_TRACE("gap " + std::to_string(gap));
    CpuCase data(makeProblem(2, 130, 577), 3);
    expectSameAsContiguous(data, [&](const char *, const Array &array) {
      return View(array, gapped(array.shape, gap), /*before=*/gap + 2,
                  /*after=*/gap * 3);
    });
  }
}

TEST_P(Layout, FusedProjections) {
  // q, k and v out of one [B, T, Hq D + Hkv D + Hkv Dv].
  CpuCase data(makeProblem(2, 300, 300), 4);
  constexpr int64_t width = kHeads * kDim + kKvHeads * (kDim + kValueDim);
  expectSameAsContiguous(data, [&](const char *name, const Array &array) {
    int64_t first = *name == 'q'   ? 0
                    : *name == 'k' ? kHeads * kDim
                                   : (kHeads + kKvHeads) * kDim;
    if (std::strlen(name) > 1)
      return View(array, gapped(array.shape, 0));
    return View(array, {300 * width, array.shape[3], width, 1}, first);
  });
}

TEST_P(Layout, ShortenedKeys) {
  // k and v are views [:, :, :-128], whose last rows are another's.
  CpuCase data(makeProblem(3, 64, 513), 5);
  expectSameAsContiguous(data, [](const char *name, const Array &array) {
    bool keys = std::strcmp(name, "k") == 0 || std::strcmp(name, "v") == 0;
    if (!keys)
      return View(array, gapped(array.shape, 0));
    int64_t dim = array.shape[3], rows = array.shape[2] + 128;
    return View(array, {array.shape[1] * rows * dim, rows * dim, dim, 1}, 0,
                128 * dim);
  });
}

TEST_P(Layout, ExpandedBatch) {
  // All sequences of the batch, and all kv heads, read the same keys.
  CpuCase data(makeProblem(3, 100, 577), 6);
  for (bool heads : {false, true}) {
    for (Array *array : {&data.buffers.k, &data.buffers.v}) {
      int64_t bytes =
          array->shape[2] * array->shape[3] * npy::elementSize(array->type);
      for (int64_t b = 0; b < 3; ++b)
        for (int64_t h = 0; h < kKvHeads; ++h)
          std::memmove(array->data.data() + (b * kKvHeads + h) * bytes,
                       array->data.data() + (heads ? 0 : h) * bytes, bytes);
    }
    expectSameAsContiguous(data, [&](const char *name, const Array &array) {
      std::vector<int64_t> strides = gapped(array.shape, 0);
      if (std::strcmp(name, "k") == 0 || std::strcmp(name, "v") == 0) {
        strides[0] = 0;
        if (heads)
          strides[1] = 0;
      }
      return View(array, strides);
    });
  }
}

TEST_P(Layout, ExpandedQueries) {
  // One query for all heads.
  CpuCase data(makeProblem(2, 100, 577), 7);
  Array &q = data.buffers.q;
  int64_t bytes = 100 * kDim * npy::elementSize(q.type);
  for (int64_t bh = 1; bh < 2 * kHeads; ++bh)
    std::memcpy(q.data.data() + bh * bytes, q.data.data(), bytes);
  expectSameAsContiguous(data, [&](const char *name, const Array &array) {
    if (std::strcmp(name, "q") == 0)
      return View(array, {0, 0, kDim, 1});
    return View(array, gapped(array.shape, 0));
  });
}

TEST_P(Layout, OddStridesOfOneElement) {
  // The stride of a dimension of size 1 means nothing.
  for (int64_t odd : {int64_t(0), int64_t(3), int64_t(-5), int64_t(1) << 40,
                      std::numeric_limits<int64_t>::max()}) {
    SCOPED_TRACE("stride " + std::to_string(odd));
    // One head too, in one type: it is another module.
    bool one = GetParam() == Type::F32;
    CpuCase data(makeProblem(1, 1, 577, one ? 1 : kHeads, one ? 1 : kKvHeads),
                 8);
    expectSameAsContiguous(data, [&](const char *, const Array &array) {
      std::vector<int64_t> strides = gapped(array.shape, 0);
      for (size_t i = 0; i + 1 < strides.size(); ++i)
        if (array.shape[i] == 1)
          strides[i] = odd;
      return View(array, strides);
    });
  }
}

TEST_P(Layout, ReversedRows) {
  // Heads backwards in memory.
  CpuCase data(makeProblem(2, 70, 300), 9);
  expectSameAsContiguous(data, [&](const char *, const Array &array) {
    std::vector<int64_t> strides = gapped(array.shape, 0);
    int64_t heads = array.shape[1];
    int64_t before = strides[1] * (heads - 1);
    strides[1] = -strides[1];
    return View(array, strides, before, before);
  });
}

} // namespace
