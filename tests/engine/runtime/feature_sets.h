// The CPU features that tests of micro-kernels try one after the other, read
// from the table.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_FEATURE_SETS_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_FEATURE_SETS_H_

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "engine/runtime/ukernels/cpu_features.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {

// What entries of these kinds need, as far as this processor has it, and all
// that it has: with each entry selected by one of them.
inline std::vector<CpuFeatures> FeatureSetsOf(
    std::initializer_list<MicroKernelKind> kinds) {
  std::vector<CpuFeatures> sets = {HostCpuFeatures()};
  for (const MicroKernelKind kind : kinds) {
    for (const MicroKernel* kernel : UsableEntries(kind)) {
      if (std::count(sets.begin(), sets.end(), kernel->needs) == 0) {
        sets.push_back(kernel->needs);
      }
    }
  }
  return sets;
}

inline std::vector<CpuFeatures> Int8FeatureSets() {
  return FeatureSetsOf({MicroKernelKind::kInt8Gemm, MicroKernelKind::kInt8Row,
                        MicroKernelKind::kInt8Depthwise,
                        MicroKernelKind::kInt8OutputStages});
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_FEATURE_SETS_H_
