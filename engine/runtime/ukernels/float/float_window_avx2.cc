// Sliding windows with AVX2.

#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/float_window_inl.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr FloatWindows kWindows = WindowsOf<Avx2>();

}  // namespace

const FloatWindows& Avx2FloatWindows() { return kWindows; }

}  // namespace optfarm::runtime
