// Winograd's transforms with AVX-512.

#include "engine/runtime/ukernels/float/winograd.h"
#include "engine/runtime/ukernels/float/winograd_inl.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Avx512>();

}  // namespace

const WinogradTransforms& Avx512Winograd() { return kTransforms; }

}  // namespace optfarm::runtime
