# What Debian's cross compilers share. Headers and libraries come from a folder
# that scripts/arm_sysroot made (OPTFARM_SYSROOT); programs that run while
# building (protoc, its gRPC plugin) are this machine's own, of the same version.
# Everything is linked statically: a phone has none of Debian's libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_CROSSCOMPILING TRUE)
set(CMAKE_C_COMPILER ${OPTFARM_TRIPLE}-gcc)
set(CMAKE_CXX_COMPILER ${OPTFARM_TRIPLE}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${OPTFARM_TRIPLE})

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES OPTFARM_SYSROOT)
if(NOT OPTFARM_SYSROOT)
  message(FATAL_ERROR "OPTFARM_SYSROOT is not set; scripts/arm_sysroot makes one")
endif()
set(CMAKE_FIND_ROOT_PATH ${OPTFARM_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The compiler brings its own C and C++ libraries; headers of third parties are
# found by path, their own dependencies by this.
set(headers ${OPTFARM_SYSROOT}/usr/include)
string(APPEND CMAKE_CXX_FLAGS_INIT
       " -idirafter ${headers} -idirafter ${headers}/${OPTFARM_TRIPLE}")
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-static -L${OPTFARM_SYSROOT}/usr/lib/${OPTFARM_TRIPLE}")
set(OPTFARM_STATIC ON CACHE BOOL "Link programs statically" FORCE)
# After project(), which sets the suffixes anew.
set(CMAKE_PROJECT_INCLUDE ${CMAKE_CURRENT_LIST_DIR}/static_suffix.cmake)
