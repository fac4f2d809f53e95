// Winograd's transforms with NEON.

#include "engine/runtime/ukernels/float/winograd.h"
#include "engine/runtime/ukernels/float/winograd_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

constexpr WinogradTransforms kTransforms = WinogradWith<Neon>();

}  // namespace

constexpr MicroKernel kWinogradNeon = {
    .name = "winograd_neon",
    .kind = MicroKernelKind::kWinograd,
    .needs = {.neon = true},
    .epilogue = kActivates,
    .run = {.winograd = &kTransforms},
};

}  // namespace optfarm::runtime
