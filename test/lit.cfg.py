# -*- Python -*-

import os
import shutil

import lit.formats

config.name = "pisa"
# ${...} and pipes as in bash, by lit's own shell.
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".c"]
# What has its own driver (unit, python), and what tests read.
config.excludes = ["unit", "python", "ptx", "gpu", "lib", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.pisa_obj_root, "test")

# The tools of this build come before those of LLVM, and both before the rest.
config.environment["PATH"] = os.pathsep.join(
    [config.pisa_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# A variable without $ ends at the next label, so that a check of one function
# cannot lean on another.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"

for tool in ("pisa-opt", "FileCheck", "not", "split-file"):
    if not shutil.which(tool, path=config.environment["PATH"]):
        lit_config.fatal(f"expected {tool} to be built or installed, but found none")

config.substitutions.append(("%python", config.python_executable))
config.substitutions.append(("%cc", config.pisa_c_compiler))
library_dir = os.path.dirname(config.pisa_library)
config.substitutions.append(
    (
        "%pisa_c_flags",
        f"-I{config.pisa_src_root}/include -I{config.dlpack_include_dir} -L{library_dir}"
        f" -lpisa -Wl,-rpath,{library_dir}"
        # A program that loads a sanitized library brings the sanitizers' runtime.
        + (" -fsanitize=address,undefined -fno-sanitize=vptr" if config.pisa_sanitize else "")
    )
)
if config.pisa_sanitize:  # as cmake/SanitizerOptions.cpp, for the programs that tests compile
    config.environment.setdefault("ASAN_OPTIONS", "allow_user_poisoning=0")
config.substitutions.append(("%pisa_library", config.pisa_library))
# A driver whose kernels do nothing; it says at the end what is left.
config.substitutions.append(
    (
        "%fake_cuda",
        f"env PISA_CUDA_DRIVER={config.pisa_fake_cuda} PISA_PTXAS=/none PISA_FAKE_CUDA_REPORT=1",
    )
)
config.substitutions.append(("%no_cuda", "env PISA_CUDA_DRIVER=/no/such/driver"))

if config.host_arch.lower() in ("x86_64", "amd64"):
    config.available_features.add("x86")
