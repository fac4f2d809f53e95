# Cross builds for 64-bit Arm (Raspberry Pi OS 64, Android through adb shell):
#   scripts/arm_sysroot arm64 build/sysroot-arm64
#   cmake --preset aarch64
set(OPTFARM_TRIPLE aarch64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
