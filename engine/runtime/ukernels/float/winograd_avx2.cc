// Winograd's transforms with AVX2.

#include "engine/runtime/ukernels/float/winograd.h"
#include "engine/runtime/ukernels/float/winograd_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Avx2>();

}  // namespace

constexpr MicroKernel kWinogradAvx2 = {
    .name = "winograd_avx2",
    .kind = MicroKernelKind::kWinograd,
    .needs = {.avx2 = true},
    .epilogue = kActivates,
    .run = {.winograd = &kTransforms},
};

}  // namespace optfarm::runtime
