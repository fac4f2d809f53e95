// Softmax with AVX-512.

#include "engine/runtime/ukernels/float/softmax.h"
#include "engine/runtime/ukernels/float/softmax_inl.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {

void Avx512Softmax(const SoftmaxRows& rows) { SoftmaxOf<Avx512>::Run(rows); }

}  // namespace optfarm::runtime
