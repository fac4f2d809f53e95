// Sliding windows with AVX-512.

#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/float_window_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr FloatWindows kWindows = WindowsOf<Avx512>();

}  // namespace

constexpr MicroKernel kFloatWindowsAvx512 = {
    .name = "float_windows_avx512",
    .kind = MicroKernelKind::kFloatWindows,
    .needs = {.avx512 = true},
    .epilogue = kActivates,
    .run = {.float_windows = &kWindows},
};

}  // namespace optfarm::runtime
