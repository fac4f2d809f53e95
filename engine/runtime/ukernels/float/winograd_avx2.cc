// Winograd's transforms with AVX2.

#include "engine/runtime/ukernels/float/winograd.h"
#include "engine/runtime/ukernels/float/winograd_inl.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Avx2>();

}  // namespace

const WinogradTransforms& Avx2Winograd() { return kTransforms; }

}  // namespace optfarm::runtime
