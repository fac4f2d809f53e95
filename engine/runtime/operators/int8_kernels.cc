#include "engine/runtime/operators/int8_kernels.h"

#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {

Int8Kernels SelectInt8Kernels(const CpuFeatures& cpu) {
  Int8Kernels kernels;
  kernels.gemm = SelectMicroKernel(MicroKernelKind::kInt8Gemm, cpu);
  kernels.matrix = SelectMicroKernel(MicroKernelKind::kInt8MatrixGemm, cpu);
  kernels.row = SelectMicroKernel(MicroKernelKind::kInt8Row, cpu);
  kernels.depthwise = SelectMicroKernel(MicroKernelKind::kInt8Depthwise, cpu);
  kernels.stages = SelectFunctions(&MicroKernelFunction::int8_stages, cpu);
  return kernels;
}

}  // namespace optfarm::runtime
