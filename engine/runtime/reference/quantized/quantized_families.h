// The families of kernels on quantized values; quantized_kernels.cc adds them
// all.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_FAMILIES_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_FAMILIES_H_

#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

void AddQuantizedConvertKernels(KernelCatalog* catalog);
void AddQuantizedMatMulKernels(KernelCatalog* catalog);
void AddQuantizedLayerKernels(KernelCatalog* catalog);
void AddQuantizedElementwiseKernels(KernelCatalog* catalog);
void AddQuantizedPoolingKernels(KernelCatalog* catalog);
void AddQuantizedResizeKernels(KernelCatalog* catalog);
void AddQuantizedShapeKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_FAMILIES_H_
