//===- CudaRuntimeTest.cpp - Plans on a fake driver -------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CudaRuntime.h"

#include "FakeCuda/FakeCuda.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace pisa;
using namespace pisa::test;

namespace {

constexpr const char ptx[] = ".version 8.7\n"
                             ".target sm_90a\n"
                             ".address_size 64\n"
                             ".visible .entry fill(.param .u64 a, .param .u64 "
                             "b, .param .u32 n, .param .f32 x)\n"
                             "{ ret; }\n"
                             ".visible .entry rest(.param .u64 a)\n"
                             "{ ret; }\n";

FakeCuda &getFake() {
  static FakeCuda *fake = [] {
    void *library = dlopen(PISA_FAKE_CUDA, RTLD_NOW);
    auto get = library ? dlsym(library, "getFakeCuda") : nullptr;
    if (!get) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    setenv("PISA_CUDA_DRIVER", PISA_FAKE_CUDA, /*overwrite=*/1);
    return reinterpret_cast<FakeCuda *(*)()>(get)();
  }();
  return *fake;
}

/// fill<<<rows>>>(q, scratch of 100 bytes + 16, n, x), then
/// rest<<<1, rows>>>(scratch of 4 * n bytes).
Plan makePlan() {
  Plan plan;
  plan.name = "test";
  plan.arguments = {{PlanArgument::Tensor, "q", "bf16", {-1, 64}},
                    {PlanArgument::Tensor, "k", "bf16", {-1, 64}},
                    {PlanArgument::I32, "n", "", {}},
                    {PlanArgument::F32, "x", "", {}}};
  plan.kernels = {{"fill", 256, 1000}, {"rest", 128, 0}};
  uint32_t q = plan.addArgument(PlanOp::Pointer, 0);
  uint32_t rows = plan.addArgument(PlanOp::Dim, 0, 0);
  uint32_t n = plan.addArgument(PlanOp::Scalar, 2);
  uint32_t x = plan.addArgument(PlanOp::Scalar, 3);
  uint32_t one = plan.addConstant(1);
  uint32_t first = plan.addScratch(plan.addConstant(100));
  uint32_t inside = plan.addBinary(PlanOp::Add, first, plan.addConstant(16));
  uint32_t bytes = plan.addBinary(PlanOp::Mul, n, plan.addConstant(4));
  uint32_t second = plan.addScratch(bytes);
  plan.addLaunch({0, {rows, one, one}, {{q, 8}, {inside, 8}, {n, 4}, {x, 4}}});
  plan.addLaunch({1, {one, rows, one}, {{second, 8}}});
  return plan;
}

std::unique_ptr<CudaExecutable> makeExecutable(Plan plan = makePlan(),
                                               std::string image = ptx) {
  auto executable = CudaExecutable::create(std::move(plan), std::move(image));
  EXPECT_TRUE(executable) << executable.getStatus().getMessage();
  return executable ? std::move(*executable) : nullptr;
}

template <typename T> T fromBytes(const std::string &bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof(T));
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(T)));
  return value;
}

class CudaRuntime : public testing::Test {
protected:
  void SetUp() override { clear(); }

  void TearDown() override {
    expectNothingLeft();
    clear();
  }

  void clear() {
    fake.numDevices = 2;
    fake.maxSharedBytes = 232448;
    fake.maxThreads = 1024;
    fake.staticSharedBytes = 0;
    fake.hasPools = 1;
    fake.isCapturing = false;
    fake.checkStatus = UINT64_MAX;
    fake.jitLog.clear();
    fake.failures.clear();
    fake.memory.clear();
    fake.launches.clear();
    fake.calls.clear();
    fake.attributes.clear();
    q = makeTensor(0x10000, 0, FakeMemory::Tensor);
    k = makeTensor(0x20000, 0, FakeMemory::Tensor);
  }

  void *makeTensor(cuda::Address address, int device, FakeMemory::Kind kind) {
    fake.memory[address] = {kind, device, 4096};
    return reinterpret_cast<void *>(address);
  }

  int countScratch() const {
    int count = 0;
    for (const auto &[address, memory] : fake.memory)
      count += memory.kind == FakeMemory::Scratch;
    return count;
  }

  void expectNothingLeft() const {
    for (int device = 0; device != FakeCuda::maxDevices; ++device)
      EXPECT_EQ(fake.numRetained[device], 0) << "device " << device;
    EXPECT_EQ(fake.numModules, 0);
    EXPECT_EQ(fake.numPools, 0);
    EXPECT_EQ(countScratch(), 0);
    EXPECT_EQ(fake.count("cuCtxPushCurrent"), fake.count("cuCtxPopCurrent"));
  }

  RuntimeStatus run(CudaExecutable &executable, int64_t rows = 3,
                    int32_t n = 100, void *stream = nullptr) {
    int64_t qShape[] = {rows, 64}, kShape[] = {5, 64};
    ArgumentValue values[] = {ArgumentValue::tensor(q, qShape, nullptr),
                              ArgumentValue::tensor(k, kShape, nullptr),
                              ArgumentValue::scalar(uint64_t(n)),
                              ArgumentValue::scalar(1.5f)};
    return executable.run(values, 4, stream);
  }

  /// A run with something wrong; nothing may be left of it.
  void expectError(const std::string &expected, RuntimeStatus::Kind kind,
                   Plan plan = makePlan(), int64_t rows = 3, int32_t n = 100) {
    auto executable = makeExecutable(std::move(plan));
    RuntimeStatus status = run(*executable, rows, n);
    EXPECT_EQ(status.getKind(), kind);
    EXPECT_EQ(status.getMessage(), expected);
    EXPECT_EQ(countScratch(), 0);
    executable.reset();
    expectNothingLeft();
  }

  FakeCuda &fake = getFake();
  void *q, *k;
};

//===----------------------------------------------------------------------===//
// What the kernels get
//===----------------------------------------------------------------------===//

TEST_F(CudaRuntime, Runs) {
  auto executable = makeExecutable();
  auto *stream = reinterpret_cast<void *>(0x5555);
  RuntimeStatus status = run(*executable, 3, 100, stream);
  ASSERT_FALSE(status.failed()) << status.getMessage();
  ASSERT_EQ(fake.launches.size(), 2u);

  const FakeLaunch &first = fake.launches[0], &second = fake.launches[1];
  EXPECT_EQ(first.kernel, "fill");
  EXPECT_EQ(first.grid[0], 3u);
  EXPECT_EQ(first.grid[1], 1u);
  EXPECT_EQ(first.threads, 256u);
  EXPECT_EQ(first.sharedBytes, 1000u);
  EXPECT_EQ(static_cast<void *>(first.stream), stream);
  EXPECT_EQ(fromBytes<void *>(first.parameters.at(0)), q);
  EXPECT_EQ(fromBytes<int32_t>(first.parameters.at(2)), 100);
  EXPECT_EQ(fromBytes<float>(first.parameters.at(3)), 1.5f);
  EXPECT_EQ(second.kernel, "rest");
  EXPECT_EQ(second.grid[1], 3u);
  EXPECT_EQ(second.threads, 128u);

  auto inside = fromBytes<uint64_t>(first.parameters.at(1)) - 16;
  EXPECT_EQ(inside % 256, 0u);
  EXPECT_EQ(fromBytes<uint64_t>(second.parameters.at(0)), inside + 256);

  // One allocation, freed after the last launch.
  EXPECT_EQ(fake.count("cuMemAllocFromPoolAsync"), 1);
  EXPECT_EQ(countScratch(), 0);
  size_t calls = fake.calls.size();
  EXPECT_EQ(fake.calls[calls - 3], "cuLaunchKernel");
  EXPECT_EQ(fake.calls[calls - 2], "cuMemFreeAsync");

  // The next call only does what it must.
  fake.calls.clear();
  EXPECT_FALSE(run(*executable, 3, 0).failed());
  for (const char *function : {"cuModuleLoadDataEx", "cuModuleGetFunction",
                               "cuMemPoolCreate", "cuDevicePrimaryCtxRetain"})
    EXPECT_EQ(fake.count(function), 0) << function;
}

/// makePlan, then "fill" for each of the rows, with its number and the scratch
/// that all of them share.
Plan makeLoopPlan() {
  Plan plan = makePlan();
  uint32_t q = 0, rows = 1, x = 3, one = 4, scratch = plan.program.size() - 3;
  uint32_t row = plan.beginLoop(plan.addConstant(0), rows, one);
  plan.addLaunch(
      {0, {one, one, one}, {{q, 8}, {scratch, 8}, {row, 4}, {x, 4}}});
  plan.endLoop(row);
  return plan;
}

TEST_F(CudaRuntime, Loop) {
  auto executable = makeExecutable(makeLoopPlan());
  for (int64_t rows : {3, 1, 4}) {
    fake.launches.clear();
    RuntimeStatus status = run(*executable, rows);
    ASSERT_FALSE(status.failed()) << status.getMessage();
    ASSERT_EQ(fake.launches.size(), size_t(2 + rows));
    EXPECT_EQ(fake.launches[1].kernel, "rest");
    for (int64_t row = 0; row != rows; ++row) {
      const FakeLaunch &launch = fake.launches[2 + row];
      EXPECT_EQ(launch.kernel, "fill");
      EXPECT_EQ(fromBytes<int32_t>(launch.parameters.at(2)), row);
      EXPECT_EQ(launch.parameters.at(1), fake.launches[1].parameters.at(0));
    }
  }
}

TEST_F(CudaRuntime, LoopThatFails) {
  Plan plan = makeLoopPlan();
  plan.program[4].immediate = 0; // the step, and a grid
  expectError("expected a loop to have a positive step, but got 0 in "
              "instruction 15",
              RuntimeStatus::InvalidValue, plan);
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(CudaRuntime, NegativeScalars) {
  Plan plan = makePlan();
  plan.program.resize(plan.program.size() - 3); // without the second scratch
  uint32_t one = 4;
  plan.addLaunch({0, {one, one, one}, {{0, 8}, {0, 8}, {2, 4}, {3, 4}}});
  auto executable = makeExecutable(plan);
  ASSERT_FALSE(run(*executable, 3, -7).failed());
  EXPECT_EQ(fromBytes<int32_t>(fake.launches.at(0).parameters.at(2)), -7);
}

TEST_F(CudaRuntime, EmptyGridIsSkipped) {
  auto executable = makeExecutable();
  EXPECT_FALSE(run(*executable, 0).failed());
  // Nor is the driver asked for anything.
  EXPECT_TRUE(fake.calls.empty());

  // One of two kernels.
  Plan plan = makePlan();
  plan.program[plan.program.size() - 1].launch.grid[1] = 4;
  executable = makeExecutable(plan);
  q = nullptr;
  EXPECT_FALSE(run(*executable, 0).failed());
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].kernel, "rest");
}

TEST_F(CudaRuntime, NoScratchNoAllocation) {
  Plan plan = makePlan();
  plan.program.resize(5);
  plan.addLaunch({1, {4, 4, 4}, {{0, 8}}});
  fake.hasPools = 0;
  auto executable = makeExecutable(plan);
  EXPECT_FALSE(run(*executable).failed());
  EXPECT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.count("cuMemAllocFromPoolAsync"), 0);
}

TEST_F(CudaRuntime, SharedMemory) {
  Plan plan = makePlan();
  plan.kernels[0].sharedBytes = 48 << 10;
  ASSERT_FALSE(run(*makeExecutable(plan)).failed());
  EXPECT_EQ(fake.attributes, std::vector<std::string>{"fill 9 100"});
  fake.attributes.clear();
  plan.kernels[0].sharedBytes = (48 << 10) + 1;
  ASSERT_FALSE(run(*makeExecutable(plan)).failed());
  EXPECT_EQ(fake.attributes,
            (std::vector<std::string>{"fill 8 49153", "fill 9 100"}));
}

TEST_F(CudaRuntime, SeveralDevices) {
  auto executable = makeExecutable();
  ASSERT_FALSE(run(*executable).failed());
  q = makeTensor(0x30000, 1, FakeMemory::Tensor);
  k = makeTensor(0x40000, 1, FakeMemory::Tensor);
  ASSERT_FALSE(run(*executable).failed());
  ASSERT_EQ(fake.launches.size(), 4u);
  EXPECT_EQ(fake.launches[1].device, 0);
  EXPECT_EQ(fake.launches[3].device, 1);
  EXPECT_EQ(fake.numModules, 2);
  EXPECT_EQ(fake.numRetained[0], 1);
  EXPECT_EQ(fake.numRetained[1], 1);

  // Memory that moves by itself goes with the rest.
  q = makeTensor(0x50000, 0, FakeMemory::Managed);
  ASSERT_FALSE(run(*executable).failed());
  EXPECT_EQ(fake.launches.back().device, 1);
}

TEST_F(CudaRuntime, CurrentContextStays) {
  auto device = CudaDevice::get(1);
  ASSERT_TRUE(device);
  const CudaDriver &driver = (*device)->getDriver();
  cuda::Device current = -1;
  EXPECT_NE(driver.cuCtxGetDevice(&current), cuda::Success);
  ASSERT_FALSE(run(*makeExecutable()).failed());
  EXPECT_NE(driver.cuCtxGetDevice(&current), cuda::Success);

  CudaDevice::Scope scope(**device);
  ASSERT_FALSE(run(*makeExecutable()).failed());
  EXPECT_EQ(fake.launches.back().device, 0);
  fake.failures["cuLaunchKernel"] = 719;
  EXPECT_TRUE(run(*makeExecutable()).failed());
  EXPECT_EQ(driver.cuCtxGetDevice(&current), cuda::Success);
  EXPECT_EQ(current, 1);
  // The fixture counts pushes and pops while this scope is gone.
}

TEST_F(CudaRuntime, FirstRunIsCaptured) {
  auto executable = makeExecutable();
  fake.isCapturing = true;
  RuntimeStatus status = run(*executable);
  EXPECT_FALSE(status.failed()) << status.getMessage();
  // The thread's mode is as before.
  const CudaDriver &driver = **CudaDriver::get();
  cuda::CaptureMode mode{};
  driver.cuThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(int(mode), 0);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// rest<<<1>>>(status), a check of lists [B, 2, n, K], rest<<<1>>>(status).
Plan makeCheckedPlan() {
  Plan plan = makePlan();
  plan.program.resize(5);
  uint32_t one = 4;
  uint32_t status = plan.addScratch(plan.addConstant(8));
  uint32_t heads = plan.addConstant(2);
  plan.addLaunch({1, {one, one, one}, {{status, 8}}});
  plan.addCheck(status, heads, /*queryBlocks=*/2);
  plan.addLaunch({1, {one, one, one}, {{status, 8}}});
  return plan;
}

TEST_F(CudaRuntime, CheckPasses) {
  auto executable = makeExecutable(makeCheckedPlan());
  ASSERT_FALSE(run(*executable).failed());
  // The check waits for the first kernel; the second comes after it.
  std::vector<std::string> order;
  for (const std::string &call : fake.calls)
    if (call == "cuLaunchKernel" || call == "cuMemcpyDtoHAsync" ||
        call == "cuStreamSynchronize" || call == "cuMemFreeAsync")
      order.push_back(call);
  EXPECT_EQ(order,
            (std::vector<std::string>{"cuLaunchKernel", "cuMemcpyDtoHAsync",
                                      "cuStreamSynchronize", "cuLaunchKernel",
                                      "cuMemFreeAsync"}));
  // Plans without checks do not wait.
  fake.calls.clear();
  ASSERT_FALSE(run(*makeExecutable()).failed());
  EXPECT_EQ(fake.count("cuStreamSynchronize"), 0);
  EXPECT_EQ(fake.count("cuStreamIsCapturing"), 0);
}

TEST_F(CudaRuntime, CheckFails) {
  // List 5 of head 1 of sequence 3, of 100 a head; and the largest block.
  fake.checkStatus = uint64_t((3 * 2 + 1) * 100 + 5) << 31 | INT32_MAX;
  expectError("expected the entries of a list of blocks to be distinct, but "
              "block 2147483647 stands twice in the list of batch 3, kv head "
              "1, query block 5",
              RuntimeStatus::Failed, makeCheckedPlan());
  EXPECT_EQ(fake.launches.size(), 1u);
}

TEST_F(CudaRuntime, CheckOfNoLists) {
  fake.checkStatus = 0; // nobody has written it
  ASSERT_FALSE(run(*makeExecutable(makeCheckedPlan()), 3, /*n=*/0).failed());
}

TEST_F(CudaRuntime, CheckFindsAFailedKernel) {
  fake.failures["cuStreamSynchronize"] = 719;
  expectError("cannot read the result of a check on device 0 (Fake GPU, sm_90):"
              " CUDA_ERROR_LAUNCH_FAILED",
              RuntimeStatus::Failed, makeCheckedPlan());
}

TEST_F(CudaRuntime, CheckIsNotCaptured) {
  fake.isCapturing = true;
  expectError("expected calls that check their lists of blocks to be outside "
              "of the capture of a graph, but the stream is being captured: a "
              "check waits for the device",
              RuntimeStatus::Failed, makeCheckedPlan());
  EXPECT_TRUE(fake.launches.empty());
  fake.isCapturing = false;
  fake.failures["cuStreamIsCapturing"] = 719;
  expectError("cannot tell whether a stream is captured on device 0 (Fake GPU,"
              " sm_90): CUDA_ERROR_LAUNCH_FAILED",
              RuntimeStatus::Failed, makeCheckedPlan());
}

TEST_F(CudaRuntime, NoTensors) {
  Plan plan;
  plan.kernels = {{"rest", 32, 0}};
  uint32_t one = plan.addConstant(1);
  plan.addLaunch({0, {one, one, one}, {{one, 8}}});
  auto executable = makeExecutable(plan);
  ASSERT_FALSE(executable->run(nullptr, 0, nullptr).failed());
  EXPECT_EQ(fake.launches.back().device, 0);
  auto device = CudaDevice::get(1);
  ASSERT_TRUE(device);
  CudaDevice::Scope scope(**device);
  ASSERT_FALSE(executable->run(nullptr, 0, nullptr).failed());
  EXPECT_EQ(fake.launches.back().device, 1);
}

TEST_F(CudaRuntime, Threads) {
  auto executable = makeExecutable();
  std::vector<std::thread> threads;
  for (int i = 0; i != 4; ++i)
    threads.emplace_back([&] {
      for (int call = 0; call != 50; ++call)
        EXPECT_FALSE(run(*executable).failed());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fake.launches.size(), 400u);
  EXPECT_EQ(fake.count("cuModuleLoadDataEx"), 1);
  EXPECT_EQ(fake.count("cuDevicePrimaryCtxRetain"), 1);
  EXPECT_EQ(fake.count("cuMemPoolCreate"), 1);
}

TEST_F(CudaRuntime, LongPlans) {
  Plan plan = makePlan();
  PlanLaunch many{1, {4, 4, 4}, {}};
  for (int i = 0; i != 1000; ++i)
    plan.addConstant(i);
  for (uint32_t i = 0; i != 512; ++i)
    many.parameters.push_back({uint32_t(plan.program.size() - 1 - i), 8});
  plan.addLaunch(many);
  auto executable = makeExecutable(plan);
  ASSERT_FALSE(run(*executable).failed());
  ASSERT_EQ(fake.launches.size(), 3u);
  EXPECT_EQ(fromBytes<int64_t>(fake.launches[2].parameters.at(0)), 999);
}

TEST_F(CudaRuntime, DevicesAreShared) {
  auto first = CudaDevice::get(0), second = CudaDevice::get(0);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(fake.numRetained[0], 1);
  EXPECT_EQ((*first)->describe(), "device 0 (Fake GPU, sm_90)");
  EXPECT_EQ((*first)->getComputeCapability(), 90);
  EXPECT_EQ((*first)->getDriverVersion(), 13000);
  EXPECT_EQ((*first)->getMultiprocessorCount(), 132);
  EXPECT_EQ((*first)->getMaxSharedBytes(), 232448);
  EXPECT_EQ(*getCudaDeviceCount(), 2);
}

//===----------------------------------------------------------------------===//
// What goes wrong
//===----------------------------------------------------------------------===//

TEST_F(CudaRuntime, WrongPlan) {
  Plan plan = makePlan();
  plan.program.back().launch.kernel = 7;
  auto executable = CudaExecutable::create(plan, ptx);
  ASSERT_FALSE(executable);
  EXPECT_EQ(executable.getStatus().getKind(), RuntimeStatus::InvalidValue);
  EXPECT_EQ(executable.getStatus().getMessage(),
            "plan 'test': instruction 13 (launch): kernel 7 of 2");
}

TEST_F(CudaRuntime, WrongArguments) {
  auto executable = makeExecutable();
  EXPECT_EQ(executable->run(nullptr, 3, nullptr).getMessage(),
            "expected 4 arguments, but got 3");
  EXPECT_EQ(run(*executable, -1).getMessage(),
            "'q': expected dimension 0 to be at least 0, but got -1");
  char host[16];
  k = host;
  RuntimeStatus status = run(*executable);
  EXPECT_EQ(status.getKind(), RuntimeStatus::InvalidType);
  EXPECT_EQ(status.getMessage(), "'k': expected a tensor on a CUDA device, but "
                                 "its data is in host memory");
  k = makeTensor(0x40000, 1, FakeMemory::Tensor);
  status = run(*executable);
  EXPECT_EQ(status.getKind(), RuntimeStatus::InvalidType);
  EXPECT_EQ(status.getMessage(), "'k': expected a tensor on CUDA device 0, as "
                                 "'q' is, but it is on device 1");
  k = nullptr;
  status = run(*executable);
  EXPECT_EQ(status.getKind(), RuntimeStatus::InvalidValue);
  EXPECT_EQ(status.getMessage(),
            "'k': expected the address of its data, but got null");
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(CudaRuntime, WrongScratch) {
  expectError("expected 0 to 281474976710656 bytes of scratch memory, but got "
              "-40 in instruction 11",
              RuntimeStatus::InvalidValue, makePlan(), 3, -10);
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(CudaRuntime, WrongDevice) {
  auto executable = makeExecutable();
  EXPECT_EQ(executable->prepare(2).getMessage(),
            "expected a CUDA device of 0 to 1, but got 2");
  EXPECT_TRUE(executable->prepare(-1).failed());
  fake.numDevices = 0;
  EXPECT_EQ(executable->prepare(0).getMessage(), "no CUDA device");
}

TEST_F(CudaRuntime, DriverTooOldForPtx) {
  fake.failures["cuModuleLoadDataEx"] = cuda::UnsupportedPtxVersion;
  expectError("the CUDA driver (13.0) is too old for PTX of version 8.7 for "
              "sm_90a on device 0 (Fake GPU, sm_90): error 222",
              RuntimeStatus::Failed);
}

TEST_F(CudaRuntime, WrongArchitecture) {
  fake.failures["cuModuleLoadDataEx"] = cuda::InvalidPtx;
  fake.jitLog = "ptxas fatal : no";
  expectError("the CUDA driver (13.0) refused PTX of version 8.7 for sm_90a on "
              "device 0 (Fake GPU, sm_90): CUDA_ERROR_INVALID_PTX\n"
              "ptxas fatal : no",
              RuntimeStatus::Failed);
  fake.failures["cuModuleLoadDataEx"] = cuda::NoBinaryForGpu;
  fake.jitLog.clear();
  auto executable = makeExecutable(makePlan(), "\x7f"
                                               "ELF" +
                                                   std::string(100, ' '));
  EXPECT_EQ(run(*executable).getMessage(),
            "the CUDA driver (13.0) refused machine code on device 0 (Fake "
            "GPU, sm_90): error 209");
}

TEST_F(CudaRuntime, NoImage) {
  for (const char *image : {"", "\x7f"
                                "ELF"}) {
    RuntimeStatus status = run(*makeExecutable(makePlan(), image));
    EXPECT_EQ(status.getKind(), RuntimeStatus::InvalidValue);
    EXPECT_EQ(status.getMessage(), "expected PTX or a cubin, but got " +
                                       std::to_string(std::strlen(image)) +
                                       " bytes");
  }
}

TEST_F(CudaRuntime, OutOfMemory) {
  fake.failures["cuModuleLoadDataEx"] = cuda::OutOfMemory;
  expectError("cannot load PTX of version 8.7 for sm_90a on device 0 (Fake "
              "GPU, sm_90): CUDA_ERROR_OUT_OF_MEMORY (out of memory)",
              RuntimeStatus::OutOfMemory);
  fake.failures = {{"cuMemAllocFromPoolAsync", cuda::OutOfMemory}};
  expectError("cannot allocate 768 bytes of scratch memory on device 0 (Fake "
              "GPU, sm_90): CUDA_ERROR_OUT_OF_MEMORY (out of memory)",
              RuntimeStatus::OutOfMemory);
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(CudaRuntime, LaunchFails) {
  fake.failures["cuLaunchKernel"] = 719;
  expectError("cannot launch kernel 'fill' on device 0 (Fake GPU, sm_90) with "
              "a grid of 3 x 1 x 1, 256 threads and 1000 bytes of dynamic "
              "shared memory: CUDA_ERROR_LAUNCH_FAILED",
              RuntimeStatus::Failed);
}

TEST_F(CudaRuntime, NoPools) {
  fake.hasPools = 0;
  expectError("device 0 (Fake GPU, sm_90): expected it to have memory pools, "
              "for scratch memory",
              RuntimeStatus::Unsupported);
}

TEST_F(CudaRuntime, TooMuchSharedMemory) {
  Plan plan = makePlan();
  plan.kernels[1].sharedBytes = 232400;
  fake.staticSharedBytes = 49;
  expectError("kernel 'rest' on device 0 (Fake GPU, sm_90) needs 232449 bytes "
              "of shared memory, but a block can have 232448",
              RuntimeStatus::Failed, plan);
  fake.staticSharedBytes = 48;
  EXPECT_FALSE(run(*makeExecutable(plan)).failed());
}

TEST_F(CudaRuntime, TooManyThreads) {
  fake.maxThreads = 128;
  expectError("kernel 'fill' on device 0 (Fake GPU, sm_90): expected at most "
              "128 threads, which its registers allow, but got 256",
              RuntimeStatus::Failed);
}

TEST_F(CudaRuntime, NoSuchKernel) {
  Plan plan = makePlan();
  plan.kernels[1].name = "other";
  expectError("cannot find kernel 'other' on device 0 (Fake GPU, sm_90): "
              "error 500",
              RuntimeStatus::Failed, plan);
}

// Whatever fails: an error that says so, and nothing is left.
TEST_F(CudaRuntime, EachFunctionFails) {
  auto expectFailure = [&](const std::string &function, Plan plan) {
    clear();
    fake.failures[function] = 999;
    auto executable = makeExecutable(plan);
    RuntimeStatus status = run(*executable);
    EXPECT_EQ(status.getKind(), RuntimeStatus::Failed) << function;
    EXPECT_NE(status.getMessage().find(": error 999"), std::string::npos)
        << function << ": " << status.getMessage();
    // It recovers as soon as the driver does.
    fake.failures.clear();
    for (auto it = fake.memory.begin(); it != fake.memory.end();)
      it = it->second.kind == FakeMemory::Scratch ? fake.memory.erase(it)
                                                  : std::next(it);
    EXPECT_FALSE(run(*executable).failed()) << function;
    executable.reset();
    expectNothingLeft();
  };
  Plan plan = makePlan();
  plan.kernels[0].sharedBytes = 100000;
  for (const char *function :
       {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
        "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
        "cuPointerGetAttributes", "cuModuleLoadDataEx", "cuModuleGetFunction",
        "cuFuncGetAttribute", "cuFuncSetAttribute", "cuMemPoolCreate",
        "cuMemPoolSetAttribute", "cuMemAllocFromPoolAsync", "cuLaunchKernel",
        "cuMemFreeAsync"})
    expectFailure(function, plan);
}

TEST_F(CudaRuntime, ContextCannotBeUsed) {
  auto executable = makeExecutable();
  ASSERT_FALSE(executable->prepare(0).failed());
  fake.calls.clear();
  fake.failures["cuCtxPushCurrent"] = 999;
  EXPECT_EQ(run(*executable).getMessage(),
            "cannot use device 0 (Fake GPU, sm_90): error 999");
  EXPECT_EQ(fake.count("cuCtxPopCurrent"), 0);
  fake.failures.clear();
  fake.calls.clear();
}

//===----------------------------------------------------------------------===//
// Without a driver: each in a process of its own
//===----------------------------------------------------------------------===//

using CudaDriverDeathTest = testing::Test;

[[noreturn]] void reportDriver() {
  RuntimeOr<const CudaDriver *> driver = CudaDriver::get();
  std::fprintf(stderr, "[%s]\n", driver.getStatus().getMessage().c_str());
  // The same answer again.
  bool same = driver.getStatus().getMessage() ==
              CudaDevice::get(0).getStatus().getMessage();
  std::_Exit(!driver && same ? 0 : 1);
}

void expectNoDriver(void (*spoil)(), const char *message) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        getFake();
        spoil();
        reportDriver();
      },
      testing::ExitedWithCode(0), message);
}

TEST(CudaDriverDeathTest, NoLibrary) {
  expectNoDriver([] { setenv("PISA_CUDA_DRIVER", "libnowhere.so.1", 1); },
                 "\\[no CUDA driver: libnowhere.so.1 could not be loaded "
                 "\\(libnowhere.so.1: cannot open");
}

TEST(CudaDriverDeathTest, NotADriver) {
  expectNoDriver([] { setenv("PISA_CUDA_DRIVER", "libz.so.1", 1); },
                 "\\[no CUDA driver: libz.so.1 is none\\]");
}

TEST(CudaDriverDeathTest, LacksAFunction) {
  expectNoDriver([] { setenv(PISA_FAKE_CUDA_LACKS, "cuMemPoolCreate", 1); },
                 "\\[the CUDA driver lacks cuMemPoolCreate\\]");
}

TEST(CudaDriverDeathTest, NoDevice) {
  expectNoDriver([] { getFake().failures["cuInit"] = cuda::NoDevice; },
                 "\\[no CUDA device: CUDA_ERROR_NO_DEVICE\\]");
}

TEST(CudaDriverDeathTest, CannotInitialize) {
  expectNoDriver([] { getFake().failures["cuInit"] = 803; },
                 "\\[cannot initialize CUDA: error 803\\]");
}

TEST(CudaDriverDeathTest, NoVersion) {
  expectNoDriver([] { getFake().failures["cuDriverGetVersion"] = 999; },
                 "\\[cannot get the CUDA driver's version: error 999\\]");
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

/// A folder for temporary files, and variables that are as before afterwards.
class Ptxas : public testing::Test {
protected:
  Ptxas() {
    char text[] = "/tmp/pisa-test-XXXXXX";
    folder = mkdtemp(text);
    for (const char *name : {"PISA_PTXAS", "TMPDIR", "PATH"})
      if (const char *value = std::getenv(name))
        saved[name] = value;
    temporary = folder + "/tmp";
    mkdir(temporary.c_str(), 0700);
    setenv("TMPDIR", temporary.c_str(), 1);
    unsetenv("PISA_PTXAS");
  }

  ~Ptxas() override {
    EXPECT_EQ(rmdir(temporary.c_str()), 0) << "temporary files are left";
    unlink((folder + "/ptxas").c_str());
    rmdir(folder.c_str());
    for (const char *name : {"PISA_PTXAS", "TMPDIR", "PATH"})
      if (auto it = saved.find(name); it != saved.end())
        setenv(name, it->second.c_str(), 1);
      else
        unsetenv(name);
  }

  void writeProgram(const char *script) {
    std::string path = folder + "/ptxas";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    chmod(path.c_str(), 0700);
  }

  std::string folder, temporary;
  std::map<std::string, std::string> saved;
};

TEST_F(Ptxas, IsFound) {
  writeProgram("exit 0\n");
  setenv("PATH", (":relative:/nowhere:" + folder).c_str(), 1);
  EXPECT_EQ(findPtxas(), folder + "/ptxas");
  setenv("PISA_PTXAS", "/bin/sh", 1);
  EXPECT_EQ(findPtxas(), "/bin/sh");
  setenv("PISA_PTXAS", "/nowhere/ptxas", 1);
  EXPECT_EQ(findPtxas(), std::nullopt);
  EXPECT_EQ(assemblePtx(ptx, "sm_90a").getStatus().getMessage(),
            "no ptxas: PISA_PTXAS is '/nowhere/ptxas', which cannot be run");
  unsetenv("PISA_PTXAS");
  setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(assemblePtx(ptx, "sm_90a").getStatus().getMessage(),
            "no ptxas: expected PISA_PTXAS to name it, or one on the PATH");
}

TEST_F(Ptxas, Assembles) {
  // -arch=sm_90a --fast -o out in
  writeProgram("echo \"$1 $2\"; echo warning >&2; cat \"$5\" > \"$4\"\n");
  setenv("PISA_PTXAS", (folder + "/ptxas").c_str(), 1);
  RuntimeOr<AssembledPtx> result = assemblePtx(ptx, "sm_90a", {"--fast"});
  ASSERT_TRUE(result) << result.getStatus().getMessage();
  EXPECT_EQ(result->cubin, ptx);
  EXPECT_EQ(result->log, "-arch=sm_90a --fast\nwarning\n");
}

TEST_F(Ptxas, Fails) {
  std::string path = folder + "/ptxas";
  setenv("PISA_PTXAS", path.c_str(), 1);
  auto getError = [&](const char *script) {
    writeProgram(script);
    return assemblePtx(ptx, "sm_90a").getStatus().getMessage();
  };
  EXPECT_EQ(getError("echo 'line 3: error' >&2; echo x > \"$3\"; exit 3\n"),
            path + " failed with exit status 3\nline 3: error\n");
  EXPECT_EQ(getError("exit 0\n"), path + " wrote nothing");
  EXPECT_EQ(getError("kill -9 $$\n"), path + " ended by signal 9");
}

TEST_F(Ptxas, NoTemporaryFolder) {
  writeProgram("exit 0\n");
  setenv("PISA_PTXAS", (folder + "/ptxas").c_str(), 1);
  setenv("TMPDIR", "/nowhere", 1);
  EXPECT_EQ(assemblePtx(ptx, "sm_90a").getStatus().getMessage(),
            "cannot make a temporary folder: No such file or directory");
}

TEST_F(Ptxas, Real) {
  if (!findPtxas())
    GTEST_SKIP() << "no ptxas";
  RuntimeOr<AssembledPtx> result = assemblePtx(ptx, "sm_90a");
  ASSERT_TRUE(result) << result.getStatus().getMessage();
  EXPECT_EQ(result->cubin.substr(1, 3), "ELF");
  result = assemblePtx("nonsense", "sm_90a");
  ASSERT_FALSE(result);
  EXPECT_NE(result.getStatus().getMessage().find("ptxas fatal"),
            std::string::npos)
      << result.getStatus().getMessage();
}

} // namespace
