// The kernels that compute on quantized values instead of real numbers.

#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/quantized/quantized_families.h"

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
