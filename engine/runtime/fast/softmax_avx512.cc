// Softmax with AVX-512.

#include "engine/runtime/fast/softmax.h"
#include "engine/runtime/fast/softmax_inl.h"
#include "engine/runtime/fast/vector_avx512_inl.h"

namespace optfarm::runtime {

void Avx512Softmax(const SoftmaxRows& rows) { SoftmaxOf<Avx512>::Run(rows); }

}  // namespace optfarm::runtime
