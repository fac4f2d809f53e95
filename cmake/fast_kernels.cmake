# Kernels of engine/runtime/ukernels, which are chosen when the program runs. A file
# whose name ends in an instruction set is compiled for it, on processors of its
# family only. OPTFARM_FAST_KERNELS=OFF leaves them out, and with
# them what drives them (operators, fusion).

set(left_out_kernels)
if(NOT OPTFARM_FAST_KERNELS)
  set(left_out_kernels "/runtime/(ukernels|operators|fusion)/")
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(left_out_kernels "/runtime/ukernels/.*_neon(_dot)?\\.cc$")
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(left_out_kernels "/runtime/ukernels/.*_(avx2|avx512|avx_vnni|vnni)\\.cc$")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  set(left_out_kernels
      "/runtime/ukernels/.*_(avx2|avx512|avx_vnni|vnni|neon_dot)\\.cc$")
else()
  set(left_out_kernels
      "/runtime/ukernels/.*_(avx2|avx512|avx_vnni|vnni|neon|neon_dot)\\.cc$")
endif()

set(avx2 -mavx2 -mfma -mf16c)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
# g++ 12 takes its own headers' undefined registers for a mistake of ours.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND avx512 -Wno-maybe-uninitialized -Wno-uninitialized)
endif()
set(flags_of_avx2 ${avx2})
set(flags_of_avx512 ${avx512} -mprefer-vector-width=512)
set(flags_of_avx_vnni ${avx2} -mavxvnni)
set(flags_of_vnni ${avx512} -mavx512vnni -mprefer-vector-width=512)
set(flags_of_neon)
set(flags_of_neon_dot)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(flags_of_neon_dot -march=armv8.2-a+dotprod)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  set(flags_of_neon -mfpu=neon-vfpv4)
endif()

# optfarm_fast_kernels(TARGET): flags by file name, and what the code asks for.
function(optfarm_fast_kernels target)
  if(NOT OPTFARM_FAST_KERNELS)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(set avx2 avx512 avx_vnni vnni neon neon_dot)
    set(of_set ${sources})
    list(FILTER of_set INCLUDE REGEX "/runtime/ukernels/.*_${set}\\.cc$")
    if(set STREQUAL "vnni")
      list(FILTER of_set EXCLUDE REGEX "_avx_vnni\\.cc$")
    endif()
    # Inner loops: measured at -O3 in every build, also in a small one.
    set_source_files_properties(${of_set} PROPERTIES
                                COMPILE_OPTIONS "-O3;${flags_of_${set}}"
                                SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()
