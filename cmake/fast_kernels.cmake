# Micro-kernels (engine/runtime/ukernels), which are selected when the program
# runs. engine/runtime/ukernels/instruction_sets.txt says for which processors a
# file is compiled and with which flags, by the end of its name.
# OPTFARM_FAST_KERNELS=OFF leaves the room out, and what drives it (operators,
# fusion).

set(instruction_sets
    ${PROJECT_SOURCE_DIR}/engine/runtime/ukernels/instruction_sets.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${instruction_sets})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  set(micro_kernel_processor armv7)
else()
  set(micro_kernel_processor ${CMAKE_SYSTEM_PROCESSOR})
endif()

# All suffixes, and those of this processor with flags_of_SUFFIX.
set(suffixes)
set(own_suffixes)
file(STRINGS ${instruction_sets} rows REGEX "^[a-z]")
foreach(row ${rows})
  separate_arguments(row UNIX_COMMAND "${row}")
  list(POP_FRONT row suffix processor)
  list(APPEND suffixes ${suffix})
  if(processor STREQUAL micro_kernel_processor)
    list(APPEND own_suffixes ${suffix})
    set(flags_of_${suffix} ${row})
    # g++ 12 takes its own headers' undefined registers for a mistake of ours.
    if(suffix MATCHES "avx512" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      list(APPEND flags_of_${suffix} -Wno-maybe-uninitialized
           -Wno-uninitialized)
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES suffixes)

# optfarm_suffix_of(FILE OUT): the longest suffix that the file's name ends in.
function(optfarm_suffix_of file out)
  set(found "")
  foreach(suffix ${suffixes})
    if(file MATCHES "_${suffix}\\.cc$")
      string(LENGTH "${found}" before)
      string(LENGTH "${suffix}" length)
      if(length GREATER before)
        set(found ${suffix})
      endif()
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# What the rooms leave out (optfarm_room's EXCLUDE).
set(left_out_kernels)
if(NOT OPTFARM_FAST_KERNELS)
  set(left_out_kernels "/runtime/(ukernels|operators|fusion)/")
else()
  set(other_suffixes ${suffixes})
  list(REMOVE_ITEM other_suffixes ${own_suffixes})
  string(JOIN "|" other_suffixes ${other_suffixes})
  set(left_out_kernels "/runtime/ukernels/.*_(${other_suffixes})\\.cc$")
endif()

# optfarm_fast_kernels(TARGET): each file's flags.
function(optfarm_fast_kernels target)
  if(NOT OPTFARM_FAST_KERNELS)
    return()
  endif()
  # An entry that is not in the catalog.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wunused-const-variable=1)
  else()
    target_compile_options(${target} PRIVATE -Wunused-const-variable)
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    optfarm_suffix_of(${source} suffix)
    if(suffix)
      # Inner loops: measured at -O3 in every build, also in a small one.
      set_source_files_properties(${source} PROPERTIES
                                  COMPILE_OPTIONS "-O3;${flags_of_${suffix}}"
                                  SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()
