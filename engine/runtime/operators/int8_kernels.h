// The int8 micro-kernels that belong together on one processor.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_KERNELS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_KERNELS_H_

#include "engine/runtime/ukernels/cpu_features.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {

// OWNERSHIP: of the entries, the process's.
struct Int8Kernels {
  const MicroKernel* gemm = nullptr;
  // For large products (int8_cost.h); nullptr where there is none.
  const MicroKernel* matrix = nullptr;
  // Reads the panels of `gemm`; nullptr where there is none.
  const MicroKernel* row = nullptr;
  const MicroKernel* depthwise = nullptr;
  const Int8StageFunctions* stages = nullptr;

  // How weights are packed, for `gemm` and `matrix` alike.
  const PanelLayout& panel() const {
    return matrix != nullptr ? matrix->panel : gemm->panel;
  }
};

// The preferred ones for a processor with these features. THREADS: safe.
Int8Kernels SelectInt8Kernels(const CpuFeatures& cpu);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_KERNELS_H_
