// Winograd's transforms with AVX-512.

#include "engine/runtime/fast/vector_avx512_inl.h"
#include "engine/runtime/fast/winograd.h"
#include "engine/runtime/fast/winograd_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Avx512>();

}  // namespace

const WinogradTransforms& Avx512Winograd() { return kTransforms; }

}  // namespace optfarm::runtime
