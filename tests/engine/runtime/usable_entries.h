// The entries of the table of micro-kernels that this processor can run, as
// parameters of tests. Needs nothing but the kernels' own files.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_USABLE_ENTRIES_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_USABLE_ENTRIES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "engine/runtime/ukernels/host_cpu_features.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {

inline void PrintTo(const MicroKernel* entry, std::ostream* out) {
  *out << entry->name;
}

// Those of a kind with all of the epilogue flags.
inline std::vector<const MicroKernel*> UsableEntries(MicroKernelKind kind,
                                                     uint32_t epilogue = 0) {
  std::vector<const MicroKernel*> entries;
  for (const MicroKernel* entry : AllMicroKernels()) {
    if (entry->kind == kind && (entry->epilogue & epilogue) == epilogue &&
        IsUsable(*entry, HostCpuFeatures())) {
      entries.push_back(entry);
    }
  }
  return entries;
}

inline std::string EntryName(
    const ::testing::TestParamInfo<const MicroKernel*>& info) {
  return info.param->name;
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_USABLE_ENTRIES_H_
