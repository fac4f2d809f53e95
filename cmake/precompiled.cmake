# Headers that most files read, compiled once for each set of flags, where
# OPTFARM_PRECOMPILE is on (docs/adr/2026-11-22-precompiled-headers.md). They are
# third parties' and generated ones: a header of ours would rebuild all that is
# compiled with it. Every file still includes what it uses, since preset dev
# compiles without.
#
#   optfarm_precompiled(NAME [PROGRAM] LINK ... HEADERS ... OPTIONS ...)
#       compiles HEADERS with LINK's and OPTIONS' flags, as library NAME;
#       PROGRAM: for programs' own files
#   optfarm_use_precompiled(TARGET NAME)
#       TARGET, whose flags are the same, reads them; nothing where NAME is not

set(OPTFARM_PROTO_HEADERS
    <google/protobuf/arena.h> <google/protobuf/generated_message_reflection.h>
    <google/protobuf/generated_message_util.h> <google/protobuf/map_entry.h>
    <google/protobuf/map_field_inl.h> <google/protobuf/reflection_ops.h>
    <google/protobuf/wire_format.h>)
set(OPTFARM_ENGINE_HEADERS
    <algorithm> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory>
    <optional> <random> <set> <string> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/status/statusor.h> <absl/strings/match.h> <absl/strings/numbers.h>
    <absl/strings/str_cat.h> <absl/strings/str_format.h>
    <absl/strings/str_join.h> <absl/strings/str_split.h>
    <absl/synchronization/mutex.h> <absl/time/time.h> <absl/types/span.h>
    <tensorflow/core/framework/graph.pb.h>
    <tensorflow/core/framework/op_def.pb.h>)
set(OPTFARM_FARM_HEADERS ${OPTFARM_ENGINE_HEADERS}
    <grpcpp/grpcpp.h> <optfarm/v1/jobs.pb.h> <optfarm/v1/results.pb.h>
    <optfarm/v1/work.pb.h>)
set(OPTFARM_TEST_HEADERS ${OPTFARM_ENGINE_HEADERS}
    <gmock/gmock.h> <gtest/gtest.h>)

# What lets ccache compare them by content.
if(OPTFARM_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
elseif(OPTFARM_PRECOMPILE)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

function(optfarm_precompiled name)
  cmake_parse_arguments(ARG "PROGRAM" "" "LINK;HEADERS;OPTIONS" ${ARGN})
  if(NOT OPTFARM_PRECOMPILE)
    return()
  endif()
  # CMake compiles headers for a library that has a file.
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
  target_link_libraries(${name} PRIVATE optfarm_build optfarm_warnings ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  set_property(TARGET ${name} PROPERTY CXX_COMPILER_LAUNCHER
               ${PROJECT_SOURCE_DIR}/cmake/fresh_header
               ${CMAKE_CXX_COMPILER_LAUNCHER})
  if(ARG_PROGRAM AND CMAKE_POSITION_INDEPENDENT_CODE)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  endif()
endfunction()

function(optfarm_use_precompiled target name)
  if(TARGET ${target} AND TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
