// What this processor can do, detected when the program runs. Micro-kernels are
// compiled once for each instruction set and selected by it.
//
// The environment variable OPTFARM_CPU limits what is used, so that every path
// can be tried on one machine: "portable" for none, or some of the names in
// cpu_feature_set.h with commas between ("avx2", "avx2,avx512").

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_CPU_FEATURES_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_CPU_FEATURES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/ukernels/cpu_feature_set.h"
#include "engine/runtime/ukernels/host_cpu_features.h"

namespace optfarm::runtime {

// "avx2,avx512"; "portable" for none.
std::string ToString(const CpuFeatures& features);
// ERRORS: InvalidArgument for a name that is none of the above.
absl::StatusOr<CpuFeatures> ParseCpuFeatures(absl::string_view names);

// What kernels are to use: what the processor has, as far as OPTFARM_CPU and a
// CpuLimit allow it. A value of OPTFARM_CPU that is not understood limits
// nothing. THREADS: safe.
CpuFeatures UsedCpuFeatures();

// Lets plans that are made while it lives use these features at most.
// THREADS: one at a time in the whole process; for tests and benchmarks.
class CpuLimit {
 public:
  explicit CpuLimit(const CpuFeatures& most);
  ~CpuLimit();
  CpuLimit(const CpuLimit&) = delete;
  CpuLimit& operator=(const CpuLimit&) = delete;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_CPU_FEATURES_H_
