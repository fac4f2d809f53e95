# optfarm_room(FOLDER LINK ... PRIVATE ... PROGRAM name EXCLUDE regex
#              PRECOMPILED name [UNITY] TOGETHER n ALONE regex OWN name...
#              [SHARED_CXX])
#
# Makes library optfarm_<folder with _> from FOLDER/*.cc and its folders
# (main.cc and paths that match EXCLUDE excepted), and program NAME from FOLDER/main.cc where it is asked
# for. Its files read the headers that optfarm_precompiled made as PRECOMPILED,
# the engine's where nothing is said. A new .cc file needs no line anywhere.
# UNITY: with OPTFARM_UNITY, up to n files of a folder (8) are compiled as one
# (docs/adr/2026-11-23-unity-builds.md), except for paths that match ALONE. Files
# whose own helpers have the same names are not compiled together
# (unity_groups.py); OWN are names of that kind that most files of a room have, as
# kRows: each file's becomes its own.
#
# optfarm_tests(FOLDER LINK ... EXCLUDE regex [AS_ONE]) makes one test program <folder>_test from
# tests/FOLDER/*_test.cc and its folders (paths that match EXCLUDE excepted),
# together as above, and
# registers each of its tests with CTest, or all as one with AS_ONE: where they
# share what takes long to start.

include(GoogleTest)
if(OPTFARM_UNITY)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

add_library(optfarm_gemmlowp INTERFACE)
target_include_directories(optfarm_gemmlowp SYSTEM INTERFACE
  ${GEMMLOWP_INCLUDE_DIR} ${GEMMLOWP_INCLUDE_DIR}/gemmlowp)

# optfarm_unity(TARGET MOST ALONE OWN)
function(optfarm_unity target most alone own)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes a .cc file that another one includes for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  if(own)
    set(before "#define OPTFARM_JOIN2(a, b) a##b\n#define OPTFARM_JOIN(a, b) OPTFARM_JOIN2(a, b)\n")
    set(after "")
    foreach(name ${own})
      string(APPEND before "#define ${name} OPTFARM_JOIN(${name}, OPTFARM_FILE)\n")
      string(APPEND after "#undef ${name}\n")
    endforeach()
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD_UNIQUE_ID OPTFARM_FILE
      UNITY_BUILD_CODE_BEFORE_INCLUDE "${before}"
      UNITY_BUILD_CODE_AFTER_INCLUDE "${after}")
  endif()
  get_target_property(sources ${target} SOURCES)
  if(alone)
    list(FILTER sources EXCLUDE REGEX "${alone}")
  endif()
  # Folder by folder, so that a new file moves no file of another folder.
  string(REPLACE ";" "," own "${own}")
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py
            ${PROJECT_SOURCE_DIR} ${most} "${own}" ${sources}
    OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  foreach(line ${groups})
    separate_arguments(line UNIX_COMMAND "${line}")
    list(POP_FRONT line source group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()

function(optfarm_room folder)
  cmake_parse_arguments(ARG "SHARED_CXX;UNITY"
                        "PROGRAM;EXCLUDE;PRECOMPILED;TOGETHER;ALONE"
                        "LINK;PRIVATE;OWN" ${ARGN})
  string(REPLACE "/" "_" id ${folder})
  set(target optfarm_${id})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  optfarm_link_items(link ${ARG_LINK})
  optfarm_link_items(private_link ${ARG_PRIVATE})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC optfarm_build ${link}
                          PRIVATE optfarm_warnings ${private_link})
    if(NOT ARG_PRECOMPILED)
      set(ARG_PRECOMPILED optfarm_engine_headers)
    endif()
    optfarm_use_precompiled(${target} ${ARG_PRECOMPILED})
    if(OPTFARM_HARDENED AND folder MATCHES "${OPTFARM_HARDENED_ROOMS}")
      target_compile_options(${target} PRIVATE -fstack-protector-strong)
      if(ARG_PRECOMPILED STREQUAL "optfarm_farm_headers")
        target_compile_options(${target} PRIVATE ${OPTFARM_CHECKED_CALLS})
      endif()
    endif()
    if(ARG_UNITY AND OPTFARM_UNITY)
      if(NOT ARG_TOGETHER)
        set(ARG_TOGETHER 8)
      endif()
      optfarm_unity(${target} ${ARG_TOGETHER} "${ARG_ALONE}" "${ARG_OWN}")
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE optfarm_build ${link})
  endif()
  if(ARG_PROGRAM AND EXISTS ${PROJECT_SOURCE_DIR}/${folder}/main.cc)
    add_executable(${ARG_PROGRAM} ${PROJECT_SOURCE_DIR}/${folder}/main.cc)
    target_link_libraries(${ARG_PROGRAM} PRIVATE ${target} optfarm_warnings)
    if(OPTFARM_HARDENED AND NOT ARG_PROGRAM STREQUAL "optctl")
      # Programs that live long find every function before they begin.
      target_link_options(${ARG_PROGRAM} PRIVATE -Wl,-z,relro,-z,now)
    endif()
    if(OPTFARM_STATIC_DEPENDENCIES)
      optfarm_link_statically(${ARG_PROGRAM} ${ARG_SHARED_CXX})
    endif()
  endif()
endfunction()

function(optfarm_tests folder)
  cmake_parse_arguments(ARG "AS_ONE" "EXCLUDE" "LINK" ${ARGN})
  string(REPLACE "/" "_" id ${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  if(NOT sources)
    return()
  endif()
  add_executable(${id}_test ${sources})
  target_link_libraries(${id}_test PRIVATE optfarm_test_support ${ARG_LINK}
                        optfarm_warnings GTest::gmock GTest::gtest_main)
  target_compile_options(${id}_test PRIVATE ${OPTFARM_TEST_OPTIONS})
  optfarm_use_precompiled(${id}_test optfarm_test_headers)
  if(OPTFARM_UNITY)
    optfarm_unity(${id}_test 8 "" "")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Taken for used where an empty absl::InlinedVector is moved.
      target_compile_options(${id}_test PRIVATE -Wno-uninitialized)
    endif()
  endif()
  if(OPTFARM_SANITIZE MATCHES thread)
    target_sources(${id}_test PRIVATE
                   ${PROJECT_SOURCE_DIR}/tests/support/tsan/absl_mutex.cc)
  endif()
  if(OPTFARM_STATIC)
    optfarm_link_statically(${id}_test "")
  endif()
  if(ARG_AS_ONE)
    add_test(NAME ${folder} COMMAND ${id}_test --gtest_brief=1)
    set_tests_properties(${folder} PROPERTIES TIMEOUT 600)
    return()
  endif()
  gtest_discover_tests(${id}_test DISCOVERY_MODE PRE_TEST
                       TEST_PREFIX "${folder}/"
                       PROPERTIES TIMEOUT 300)
endfunction()
