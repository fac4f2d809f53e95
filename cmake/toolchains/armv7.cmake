# Cross builds for 32-bit Arm with NEON (Raspberry Pi OS 32, Debian's armhf):
#   scripts/build_arm armhf
set(OPTFARM_TRIPLE arm-linux-gnueabihf)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_CXX_FLAGS_INIT "-march=armv7-a -mfpu=neon-vfpv4")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm-static)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
