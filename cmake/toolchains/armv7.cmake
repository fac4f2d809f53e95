# Cross builds for 32-bit Arm with NEON (Raspberry Pi OS 32, Debian armhf):
#   scripts/arm_sysroot armhf build/sysroot-armhf
#   cmake --preset armv7
set(OPTFARM_TRIPLE arm-linux-gnueabihf)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_CXX_FLAGS_INIT "-march=armv7-a+neon-vfpv4 -mfloat-abi=hard")
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
