// Sliding windows with AVX-512.

#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/float_window_inl.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr FloatWindows kWindows = WindowsOf<Avx512>();

}  // namespace

const FloatWindows& Avx512FloatWindows() { return kWindows; }

}  // namespace optfarm::runtime
