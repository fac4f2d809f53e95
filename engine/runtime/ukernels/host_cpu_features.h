// What this processor can do, detected when the program runs.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_HOST_CPU_FEATURES_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_HOST_CPU_FEATURES_H_

#include "engine/runtime/ukernels/cpu_feature_set.h"

namespace optfarm::runtime {

// THREADS: safe.
const CpuFeatures& HostCpuFeatures();

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_HOST_CPU_FEATURES_H_
