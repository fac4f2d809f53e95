// Winograd's transforms with NEON.

#include "engine/runtime/ukernels/float/winograd.h"
#include "engine/runtime/ukernels/float/winograd_inl.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Neon>();

}  // namespace

const WinogradTransforms& NeonWinograd() { return kTransforms; }

}  // namespace optfarm::runtime
