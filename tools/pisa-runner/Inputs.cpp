//===- Inputs.cpp - Files and numbers of the runner's command line -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <sys/resource.h>

using namespace pisa;
using npy::Array;

llvm::Error runner::parseInputs(const std::string &text,
                                std::map<std::string, std::string> &inputs) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    auto [name, value] = part.split('=');
    if (!part.contains('=')) {
      if (!part.ends_with(".npz"))
        return llvm::createStringError("expected --inputs to be name=file.npy, "
                                       "name=number or a .npz file, "
                                       "but got '" +
                                       part + "'");
      std::string error;
      auto members = npy::readNpz(part.str(), error);
      if (!members)
        return llvm::createStringError(error);
      for (auto &[member, array] : *members)
        if (!inputs.emplace(member, (part + ":" + member).str()).second)
          return llvm::createStringError("input '" + member +
                                         "' is given twice");
      continue;
    }
    if (name.empty() || value.empty())
      return llvm::createStringError("expected --inputs to be name=file.npy, "
                                     "name=number or a .npz file, but got '" +
                                     part + "'");
    if (!inputs.emplace(name.str(), value.str()).second)
      return llvm::createStringError("input '" + name + "' is given twice");
  }
  return llvm::Error::success();
}

llvm::Expected<Array> runner::readInput(const std::string &name,
                                        const std::string &value) {
  std::string error;
  auto [file, member] = llvm::StringRef(value).rsplit(':');
  if (file.ends_with(".npz")) {
    auto array = npy::readNpz(file.str(), member.str(), error);
    if (array)
      return *array;
  } else if (auto array = npy::readNpy(value, error)) {
    return *array;
  }
  return llvm::createStringError("input '" + name + "': " + error);
}

static bool isFloat(Array::Type type) {
  return type != Array::Type::I32 && type != Array::Type::I64;
}

llvm::Expected<Array> runner::convertInput(const std::string &name,
                                           const Array &array,
                                           Array::Type type) {
  if (array.type == type)
    return array;
  if (isFloat(type) && isFloat(array.type))
    return npy::fromDoubles(npy::toDoubles(array), array.shape, type);
  if (type == Array::Type::I32 && array.type == Array::Type::I64) {
    Array result;
    result.type = type;
    result.shape = array.shape;
    result.data.resize(array.numElements() * sizeof(int32_t));
    for (int64_t i = 0; i < array.numElements(); ++i) {
      int64_t wide;
      std::memcpy(&wide, array.data.data() + i * sizeof(wide), sizeof(wide));
      if (wide != static_cast<int32_t>(wide))
        return llvm::createStringError(
            "input '" + name +
            "': expected values that fit in int32, but "
            "got " +
            std::to_string(wide));
      int32_t narrow = static_cast<int32_t>(wide);
      std::memcpy(result.data.data() + i * sizeof(narrow), &narrow,
                  sizeof(narrow));
    }
    return result;
  }
  return llvm::createStringError("input '" + name + "': expected dtype " +
                                 npy::typeName(type) + ", but got " +
                                 npy::typeName(array.type));
}

llvm::Expected<std::vector<int64_t>>
runner::parseShape(const std::string &option, const std::string &text) {
  std::vector<int64_t> shape;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, 'x');
  for (llvm::StringRef part : parts) {
    int64_t value;
    if (part.getAsInteger(10, value) || value < 0 ||
        value > std::numeric_limits<int32_t>::max())
      return llvm::createStringError("expected --" + option +
                                     " to be numbers in [0, 2147483647] with x "
                                     "between them, but got '" +
                                     text + "'");
    shape.push_back(value);
  }
  return shape;
}

std::string runner::printShape(llvm::ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(
             llvm::map_range(shape,
                             [](int64_t size) { return std::to_string(size); }),
             ", ") +
         "]";
}

llvm::Error runner::writeOutput(const std::string &folder,
                                const std::string &name, const Array &array) {
  if (folder.empty())
    return llvm::Error::success();
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return llvm::createStringError("cannot create folder '" + folder +
                                   "': " + code.message());
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name + ".npy");
  std::string error;
  if (!npy::writeNpy(path.str().str(), array, error))
    return llvm::createStringError(error);
  return llvm::Error::success();
}

llvm::Error runner::writeText(const std::string &path,
                              const std::string &text) {
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  if (!code) {
    os << text;
    os.close();
    code = os.error();
    os.clear_error();
  }
  if (code)
    return llvm::createStringError("cannot write '" + path +
                                   "': " + code.message());
  return llvm::Error::success();
}

llvm::Expected<double>
runner::medianOf(int64_t runs,
                 llvm::function_ref<llvm::Expected<double>()> time) {
  std::vector<double> times;
  for (int64_t i = 0; i < std::max<int64_t>(runs, 1); ++i) {
    auto taken = time();
    if (!taken)
      return taken.takeError();
    times.push_back(*taken);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2,
                   times.end());
  return times[times.size() / 2];
}

llvm::Expected<double>
runner::medianMs(int64_t runs, llvm::function_ref<llvm::Error()> body) {
  return medianOf(runs, [&]() -> llvm::Expected<double> {
    auto begin = std::chrono::steady_clock::now();
    if (auto error = body())
      return error;
    std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    return taken.count();
  });
}

static size_t peakRss() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

llvm::Error runner::writeReport(const Options &options, llvm::StringRef name,
                                llvm::json::Array timings, int64_t scratchBytes,
                                llvm::json::Object where) {
  if (options.jsonFile.empty())
    return llvm::Error::success();
  llvm::json::Object report = std::move(where);
  report["op"] = name;
  report["target"] = options.target;
  report["phases"] = std::move(timings);
  report["scratch_bytes"] = scratchBytes;
  report["peak_rss_bytes"] = static_cast<int64_t>(peakRss());
  return writeText(
      options.jsonFile,
      llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report))));
}
