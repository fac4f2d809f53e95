# Compiler options of our own targets, all through two INTERFACE targets, and
# the ccache launcher. Generated code and third parties do not get the warnings.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the tree, so that one clone finds what another compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=true)
  if(OPTFARM_PRECOMPILE)
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER
         CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(optfarm_warnings INTERFACE)
target_compile_options(optfarm_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wundef -Woverloaded-virtual
  -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>
  # What g++ 12 finds in the standard library and abseil when it optimizes.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-maybe-uninitialized>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
if(OPTFARM_WERROR)
  target_compile_options(optfarm_warnings INTERFACE -Werror)
endif()

# g++ collects its garbage from a few hundred MB on, which takes 4 to 8 % of its
# time and gives back next to nothing. Files take up to 1.5 GB without.
cmake_host_system_information(RESULT memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR memory_mb "${memory_mb} / ${processors}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND memory_mb GREATER 3000)
  add_compile_options(--param=ggc-min-heapsize=1000000)
endif()

# Kernels must give the same bits on every machine of one kind: no fast-math,
# and contraction only where a kernel asks for it.
add_library(optfarm_build INTERFACE)
target_include_directories(optfarm_build INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(optfarm_build INTERFACE -ffp-contract=off)
if(OPTFARM_PRECOMPILE)
  # gRPC's rooms have it, and all are to read the same headers.
  target_compile_options(optfarm_build INTERFACE -pthread)
endif()
target_compile_definitions(optfarm_build INTERFACE
  OPTFARM_VERSION="${PROJECT_VERSION}")
if(OPTFARM_LITE_RUNTIME OR OPTFARM_STATIC)
  # So that the linker can leave out what nothing calls.
  target_compile_options(optfarm_build INTERFACE -ffunction-sections
                         -fdata-sections)
endif()
if(OPTFARM_STATIC)
  # What loads nothing has one address, and finds its own data by it.
  set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
  add_compile_options(-fno-pie)
endif()

# What stands between a defect in a parser and whoever sends it a file
# (SECURITY.md): the rooms that read what others send check their stacks, and
# those that speak to the network check the C library's calls too. Kernels have
# neither, nor has the devices' static agent, which is built for size.
set(OPTFARM_HARDENED OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT OPTFARM_STATIC
   AND NOT OPTFARM_SANITIZE AND NOT OPTFARM_FUZZ)
  set(OPTFARM_HARDENED ON)
endif()
set(OPTFARM_HARDENED_ROOMS
    "^(base|rpc|http|storage|server|worker|device_agent|client_cli|job_report)$")
string(APPEND OPTFARM_HARDENED_ROOMS
       "|^storage/|^engine/(graph|pictures|formats)")
set(OPTFARM_CHECKED_CALLS "")
if(OPTFARM_HARDENED)
  set(OPTFARM_CHECKED_CALLS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()

if(OPTFARM_SANITIZE)
  target_compile_options(optfarm_build INTERFACE
    -fsanitize=${OPTFARM_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(optfarm_build INTERFACE -fsanitize=${OPTFARM_SANITIZE})
endif()

if(OPTFARM_FUZZ)
  # Coverage for libFuzzer in every room, not only in the fuzzers themselves.
  target_compile_options(optfarm_build INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(NOT OPTFARM_TEST_DATA AND EXISTS ${PROJECT_SOURCE_DIR}/../shared/golden)
  get_filename_component(OPTFARM_TEST_DATA_DIR ${PROJECT_SOURCE_DIR}/../shared
                         ABSOLUTE)
else()
  set(OPTFARM_TEST_DATA_DIR "${OPTFARM_TEST_DATA}")
endif()
