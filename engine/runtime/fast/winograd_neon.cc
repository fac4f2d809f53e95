// Winograd's transforms with NEON.

#include "engine/runtime/fast/vector_neon_inl.h"
#include "engine/runtime/fast/winograd.h"
#include "engine/runtime/fast/winograd_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Neon>();

}  // namespace

const WinogradTransforms& NeonWinograd() { return kTransforms; }

}  // namespace optfarm::runtime
