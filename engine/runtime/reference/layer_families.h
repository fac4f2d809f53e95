// The families of kernels for layers that ONNX and TensorFlow Lite have and
// TensorFlow has not; as families.h.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_LAYER_FAMILIES_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_LAYER_FAMILIES_H_

#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

void AddAnyResizeKernels(KernelCatalog* catalog);
void AddRecurrentSequenceKernels(KernelCatalog* catalog);
void AddTransposedConvolutionKernels(KernelCatalog* catalog);
void AddWindowPoolingKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_LAYER_FAMILIES_H_
