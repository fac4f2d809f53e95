// Winograd's transforms with AVX2.

#include "engine/runtime/fast/vector_avx2_inl.h"
#include "engine/runtime/fast/winograd.h"
#include "engine/runtime/fast/winograd_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Avx2>();

}  // namespace

const WinogradTransforms& Avx2Winograd() { return kTransforms; }

}  // namespace optfarm::runtime
