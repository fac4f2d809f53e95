// Softmax with AVX2.

#include "engine/runtime/ukernels/float/softmax.h"
#include "engine/runtime/ukernels/float/softmax_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {

constexpr MicroKernel kSoftmaxAvx2 = {
    .name = "softmax_avx2",
    .kind = MicroKernelKind::kSoftmax,
    .needs = {.avx2 = true},
    .run = {.softmax = SoftmaxOf<Avx2>::Run},
};

}  // namespace optfarm::runtime
