# Cross builds for 64-bit Arm (Raspberry Pi OS 64, Android through adb shell):
#   scripts/build_arm arm64
set(OPTFARM_TRIPLE aarch64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
