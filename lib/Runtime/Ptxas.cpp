//===- Ptxas.cpp - Assembling PTX with ptxas --------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CudaRuntime.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

using namespace pisa;

namespace {

RuntimeStatus failure(std::string message) {
  return {RuntimeStatus::Failed, std::move(message)};
}

std::string getSystemError(int code) {
  return std::strerror(code); // glibc's is safe with threads for known codes
}

bool isExecutable(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

/// A folder for the files of one call, gone with it.
class TemporaryFolder {
public:
  TemporaryFolder() {
    const char *base = std::getenv("TMPDIR");
    path = std::string(base && *base ? base : "/tmp") + "/pisa-XXXXXX";
    if (!mkdtemp(path.data())) {
      error = errno;
      path.clear();
    }
  }
  ~TemporaryFolder() {
    if (path.empty())
      return;
    for (const char *file : {"in.ptx", "out.cubin", "log"})
      unlink(getFile(file).c_str());
    rmdir(path.c_str());
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string getFile(const char *name) const { return path + "/" + name; }
  int getError() const { return error; } // 0: there is a folder

private:
  std::string path;
  int error = 0;
};

bool writeFile(const std::string &path, const std::string &text) {
  FILE *file = std::fopen(path.c_str(), "wbe");
  if (!file)
    return false;
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

/// The file's contents; nothing if there is no such file.
std::string readFile(const std::string &path) {
  std::string text;
  FILE *file = std::fopen(path.c_str(), "rbe");
  if (!file)
    return text;
  char buffer[65536];
  while (size_t bytes = std::fread(buffer, 1, sizeof(buffer), file))
    text.append(buffer, bytes);
  std::fclose(file);
  return text;
}

/// Runs a program with its output in a file. Returns what is wrong, if
/// anything.
std::string runProgram(const std::vector<std::string> &command,
                       const std::string &log) {
  std::vector<char *> arguments;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (int code = posix_spawn_file_actions_init(&actions))
    return getSystemError(code);
  int code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                              "/dev/null", O_RDONLY, 0);
  if (!code)
    code = posix_spawn_file_actions_addopen(
        &actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT, 0600);
  if (!code)
    code = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO,
                                            STDERR_FILENO);
  pid_t child = 0;
  if (!code)
    code = posix_spawn(&child, arguments[0], &actions, /*attrp=*/nullptr,
                       arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code)
    return "cannot be run: " + getSystemError(code);
  int status = 0;
  pid_t waited;
  do
    waited = waitpid(child, &status, 0);
  while (waited < 0 && errno == EINTR);
  // Where the process ignores its children's ends, there is no status: what
  // was written then has to tell.
  if (waited < 0)
    return "";
  if (WIFSIGNALED(status))
    return "ended by signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0)
    return "failed with exit status " + std::to_string(WEXITSTATUS(status));
  return "";
}

} // namespace

std::optional<std::string> pisa::findPtxas() {
  if (const char *path = std::getenv("PISA_PTXAS"); path && *path) {
    if (isExecutable(path))
      return path;
    return std::nullopt;
  }
  const char *variable = std::getenv("PATH");
  std::string folders = variable ? variable : "";
  for (size_t begin = 0; begin < folders.size();) {
    size_t end = std::min(folders.find(':', begin), folders.size());
    std::string path = folders.substr(begin, end - begin) + "/ptxas";
    // An empty or relative folder depends on where we happen to run.
    if (path[0] == '/' && end != begin && isExecutable(path))
      return path;
    begin = end + 1;
  }
  return std::nullopt;
}

RuntimeOr<AssembledPtx>
pisa::assemblePtx(const std::string &ptx, const std::string &arch,
                  const std::vector<std::string> &options) {
  std::optional<std::string> ptxas = findPtxas();
  if (!ptxas) {
    const char *variable = std::getenv("PISA_PTXAS");
    return failure(variable && *variable
                       ? "no ptxas: PISA_PTXAS is '" + std::string(variable) +
                             "', which cannot be run"
                       : std::string("no ptxas: expected PISA_PTXAS to name "
                                     "it, or one on the PATH"));
  }
  TemporaryFolder folder;
  if (folder.getError())
    return failure("cannot make a temporary folder: " +
                   getSystemError(folder.getError()));
  std::string input = folder.getFile("in.ptx");
  std::string output = folder.getFile("out.cubin");
  std::string log = folder.getFile("log");
  if (!writeFile(input, ptx))
    return failure("cannot write " + input);
  std::vector<std::string> command = {*ptxas, "-arch=" + arch};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-o", output, input});
  std::string problem = runProgram(command, log);
  AssembledPtx result{readFile(output), readFile(log)};
  if (problem.empty() && result.cubin.empty())
    problem = "wrote nothing";
  if (!problem.empty())
    return failure(*ptxas + " " + problem +
                   (result.log.empty() ? "" : "\n" + result.log));
  return result;
}
