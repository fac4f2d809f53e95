# What Debian's cross compilers share. They bring the C and C++ libraries; other
# libraries and headers come from a folder that scripts/arm_sysroot made
# (OPTFARM_SYSROOT); programs that run while building (protoc, its gRPC plugin)
# are this machine's own, of the same version.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_CXX_COMPILER ${OPTFARM_TRIPLE}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${OPTFARM_TRIPLE})

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES OPTFARM_SYSROOT)
if(NOT OPTFARM_SYSROOT)
  message(FATAL_ERROR "OPTFARM_SYSROOT is not set; scripts/build_arm sets it")
endif()
set(CMAKE_FIND_ROOT_PATH ${OPTFARM_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${OPTFARM_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${OPTFARM_SYSROOT}/usr/lib/${OPTFARM_TRIPLE}/pkgconfig:${OPTFARM_SYSROOT}/usr/share/pkgconfig)
# Headers that third parties' headers include; after the compiler's own.
set(headers ${OPTFARM_SYSROOT}/usr/include)
string(APPEND CMAKE_CXX_FLAGS_INIT
       " -idirafter ${headers} -idirafter ${headers}/${OPTFARM_TRIPLE}")
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-L${OPTFARM_SYSROOT}/usr/lib/${OPTFARM_TRIPLE}")
