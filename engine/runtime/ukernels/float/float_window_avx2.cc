// Sliding windows with AVX2.

#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/float_window_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr FloatWindows kWindows = WindowsOf<Avx2>();

}  // namespace

constexpr MicroKernel kFloatWindowsAvx2 = {
    .name = "float_windows_avx2",
    .kind = MicroKernelKind::kFloatWindows,
    .needs = {.avx2 = true},
    .epilogue = kActivates,
    .run = {.float_windows = &kWindows},
};

}  // namespace optfarm::runtime
