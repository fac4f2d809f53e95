# optfarm_room(FOLDER LINK ... PRIVATE ... PROGRAM name EXCLUDE regex
#              PRECOMPILED name [UNITY] ALONE regex [SHARED_CXX])
#
# Makes library optfarm_<folder with _> from FOLDER/*.cc and its folders
# (main.cc and paths that match EXCLUDE excepted), and program NAME from FOLDER/main.cc where it is asked
# for. Its files read the headers that optfarm_precompiled made as PRECOMPILED,
# the engine's where nothing is said. A new .cc file needs no line anywhere.
# UNITY: with OPTFARM_UNITY, up to eight files of a folder are compiled as one
# (docs/adr/2026-11-23-unity-builds.md), except for paths that match ALONE: files
# whose own helpers have the names of another file's in the folder.
#
# optfarm_tests(FOLDER LINK ...) makes one test program <folder>_test from
# tests/FOLDER/*_test.cc and its folders, and registers each of its tests with CTest.

include(GoogleTest)

add_library(optfarm_gemmlowp INTERFACE)
target_include_directories(optfarm_gemmlowp SYSTEM INTERFACE
  ${GEMMLOWP_INCLUDE_DIR} ${GEMMLOWP_INCLUDE_DIR}/gemmlowp)

function(optfarm_unity target alone)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  if(alone)
    list(FILTER sources EXCLUDE REGEX "${alone}")
  endif()
  # Folder by folder, so that a new file moves no file of another folder.
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" folder ${folder})
    list(APPEND in_${folder} ${source})
    list(LENGTH in_${folder} count)
    math(EXPR group "(${count} - 1) / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP
                                ${folder}_${group})
  endforeach()
endfunction()

function(optfarm_room folder)
  cmake_parse_arguments(ARG "SHARED_CXX;UNITY" "PROGRAM;EXCLUDE;PRECOMPILED;ALONE" "LINK;PRIVATE" ${ARGN})
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
    if(ARG_UNITY AND OPTFARM_UNITY)
      optfarm_unity(${target} "${ARG_ALONE}")
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE optfarm_build ${link})
  endif()
  if(ARG_PROGRAM AND EXISTS ${PROJECT_SOURCE_DIR}/${folder}/main.cc)
    add_executable(${ARG_PROGRAM} ${PROJECT_SOURCE_DIR}/${folder}/main.cc)
    target_link_libraries(${ARG_PROGRAM} PRIVATE ${target} optfarm_warnings)
    if(OPTFARM_STATIC_DEPENDENCIES)
      optfarm_link_statically(${ARG_PROGRAM} ${ARG_SHARED_CXX})
    endif()
  endif()
endfunction()

function(optfarm_tests folder)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  string(REPLACE "/" "_" id ${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${id}_test ${sources})
  target_link_libraries(${id}_test PRIVATE optfarm_test_support ${ARG_LINK}
                        optfarm_warnings GTest::gmock GTest::gtest_main)
  target_compile_options(${id}_test PRIVATE ${OPTFARM_TEST_OPTIONS})
  optfarm_use_precompiled(${id}_test optfarm_test_headers)
  if(OPTFARM_SANITIZE MATCHES thread)
    target_sources(${id}_test PRIVATE
                   ${PROJECT_SOURCE_DIR}/tests/support/tsan/absl_mutex.cc)
  endif()
  if(OPTFARM_STATIC)
    optfarm_link_statically(${id}_test "")
  endif()
  gtest_discover_tests(${id}_test DISCOVERY_MODE PRE_TEST
                       TEST_PREFIX "${folder}/"
                       PROPERTIES TIMEOUT 300)
endfunction()
