// Sliding windows with NEON.

#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/float_window_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

constexpr FloatWindows kWindows = WindowsOf<Neon>();

}  // namespace

constexpr MicroKernel kFloatWindowsNeon = {
    .name = "float_windows_neon",
    .kind = MicroKernelKind::kFloatWindows,
    .needs = {.neon = true},
    .epilogue = kActivates,
    .run = {.float_windows = &kWindows},
};

}  // namespace optfarm::runtime
