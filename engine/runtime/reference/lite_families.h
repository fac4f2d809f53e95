// Families of kernels for layers that only TensorFlow Lite has. families.h has
// all others.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_LITE_FAMILIES_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_LITE_FAMILIES_H_

#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

void AddDetectionKernels(KernelCatalog* catalog);
void AddLiteLstmKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_LITE_FAMILIES_H_
