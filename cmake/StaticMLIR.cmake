# Links Debian's MLIR statically.
#
# Every static MLIR library that Debian ships names the shared `LLVM` or `MLIR`
# library in its link interface. A process that holds a static MLIR and the
# shared one has two TypeID worlds and fails in obscure ways, so the shared
# libraries are taken out of every interface and replaced by one target that
# names LLVM's static components.

set(LLVM_LINK_LLVM_DYLIB OFF)
set(MLIR_LINK_MLIR_DYLIB OFF)

llvm_map_components_to_libnames(PISA_LLVM_LIBS
  core support asmparser bitreader bitwriter irreader linker ipo passes target
  targetparser orcjit perfjitevents executionengine mc codegen instrumentation
  coroutines frontendopenmp frontendoffloading frontendatomic X86 NVPTX)

add_library(PisaStaticLLVM INTERFACE)
target_link_libraries(PisaStaticLLVM INTERFACE ${PISA_LLVM_LIBS})

find_library(PISA_ZLIB_STATIC NAMES libz.a REQUIRED)
find_library(PISA_ZSTD_STATIC NAMES libzstd.a REQUIRED)

foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "STATIC_LIBRARY")
    continue()
  endif()
  get_target_property(libs ${target} INTERFACE_LINK_LIBRARIES)
  if(libs)
    list(TRANSFORM libs REPLACE "^(LLVM|MLIR)$" "PisaStaticLLVM")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libs}")
  endif()
endforeach()

# LLVMSupport asks for zlib, zstd and z3; z3 is not used by anything we call.
get_target_property(libs LLVMSupport INTERFACE_LINK_LIBRARIES)
list(FILTER libs EXCLUDE REGEX "z3|ZLIB|zstd|libz")
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
  "${libs};${PISA_ZLIB_STATIC};${PISA_ZSTD_STATIC}")

# Adds one of our libraries: the object code of a folder with its MLIR
# dependencies, static, without installing it as part of MLIR.
function(pisa_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
endfunction()

# Adds one of our executables.
function(pisa_add_executable name)
  add_executable(${name} ${ARGN})
  if(PISA_SANITIZE)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/SanitizerOptions.cpp)
  endif()
endfunction()
