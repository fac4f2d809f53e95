// Winograd's transforms with AVX-512.

#include "engine/runtime/ukernels/float/winograd.h"
#include "engine/runtime/ukernels/float/winograd_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Avx512>();

}  // namespace

constexpr MicroKernel kWinogradAvx512 = {
    .name = "winograd_avx512",
    .kind = MicroKernelKind::kWinograd,
    .needs = {.avx512 = true},
    .epilogue = kActivates,
    .run = {.winograd = &kTransforms},
};

}  // namespace optfarm::runtime
