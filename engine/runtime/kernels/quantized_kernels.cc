// The kernels that compute on integer codes instead of real numbers.

#include "engine/runtime/kernels/families.h"
#include "engine/runtime/kernels/quantized_families.h"

namespace optfarm::runtime {

void AddQuantizedKernels(KernelCatalog* catalog) {
  AddQuantizedConvertKernels(catalog);
  AddQuantizedMatMulKernels(catalog);
  AddQuantizedLayerKernels(catalog);
  AddQuantizedElementwiseKernels(catalog);
  AddQuantizedPoolingKernels(catalog);
  AddQuantizedResizeKernels(catalog);
  AddQuantizedShapeKernels(catalog);
}

}  // namespace optfarm::runtime
