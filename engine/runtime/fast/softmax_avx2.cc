// Softmax with AVX2.

#include "engine/runtime/fast/softmax.h"
#include "engine/runtime/fast/softmax_inl.h"
#include "engine/runtime/fast/vector_avx2_inl.h"

namespace optfarm::runtime {

void Avx2Softmax(const SoftmaxRows& rows) { SoftmaxOf<Avx2>::Run(rows); }

}  // namespace optfarm::runtime
