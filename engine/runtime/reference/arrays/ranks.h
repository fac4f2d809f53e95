// A part of the family of sets.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_RANKS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_RANKS_H_

#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

void AddRankKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_RANKS_H_
