// Softmax with NEON.

#include "engine/runtime/ukernels/float/softmax.h"
#include "engine/runtime/ukernels/float/softmax_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {

constexpr MicroKernel kSoftmaxNeon = {
    .name = "softmax_neon",
    .kind = MicroKernelKind::kSoftmax,
    .needs = {.neon = true},
    .run = {.softmax = SoftmaxOf<Neon>::Run},
};

}  // namespace optfarm::runtime
