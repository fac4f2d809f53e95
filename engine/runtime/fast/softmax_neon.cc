// Softmax with NEON.

#include "engine/runtime/fast/softmax.h"
#include "engine/runtime/fast/softmax_inl.h"
#include "engine/runtime/fast/vector_neon_inl.h"

namespace optfarm::runtime {

void NeonSoftmax(const SoftmaxRows& rows) { SoftmaxOf<Neon>::Run(rows); }

}  // namespace optfarm::runtime
