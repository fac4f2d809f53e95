// Softmax with AVX-512.

#include "engine/runtime/ukernels/float/softmax.h"
#include "engine/runtime/ukernels/float/softmax_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {

constexpr MicroKernel kSoftmaxAvx512 = {
    .name = "softmax_avx512",
    .kind = MicroKernelKind::kSoftmax,
    .needs = {.avx512 = true},
    .run = {.softmax = SoftmaxOf<Avx512>::Run},
};

}  // namespace optfarm::runtime
