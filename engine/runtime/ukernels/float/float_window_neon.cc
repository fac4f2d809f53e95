// Sliding windows with NEON.

#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/float_window_inl.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

constexpr FloatWindows kWindows = WindowsOf<Neon>();

}  // namespace

const FloatWindows& NeonFloatWindows() { return kWindows; }

}  // namespace optfarm::runtime
