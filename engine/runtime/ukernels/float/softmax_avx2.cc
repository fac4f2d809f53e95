// Softmax with AVX2.

#include "engine/runtime/ukernels/float/softmax.h"
#include "engine/runtime/ukernels/float/softmax_inl.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {

void Avx2Softmax(const SoftmaxRows& rows) { SoftmaxOf<Avx2>::Run(rows); }

}  // namespace optfarm::runtime
