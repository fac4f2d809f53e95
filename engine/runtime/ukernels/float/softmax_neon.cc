// Softmax with NEON.

#include "engine/runtime/ukernels/float/softmax.h"
#include "engine/runtime/ukernels/float/softmax_inl.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {

void NeonSoftmax(const SoftmaxRows& rows) { SoftmaxOf<Neon>::Run(rows); }

}  // namespace optfarm::runtime
