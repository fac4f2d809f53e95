// The table of micro-kernels, and which of them a processor uses.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_CATALOG_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_CATALOG_H_

#include <vector>

#include "absl/types/span.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {

// All that this program has, in the catalog's order. OWNERSHIP: they live as
// long as the process.
absl::Span<const MicroKernel* const> AllMicroKernels();

// Whether a processor with these features may run the kernel: it has what the
// kernel needs, and the operating system grants what the kernel asks for.
// THREADS: safe.
bool IsUsable(const MicroKernel& kernel, const CpuFeatures& cpu);

// The preferred usable kernel of a kind; nullptr where there is none. Row
// kernels and kernels for matrix units are those that read the panels of the
// selected GEMM kernel.
// THREADS: safe.
const MicroKernel* SelectMicroKernel(MicroKernelKind kind,
                                     const CpuFeatures& cpu);

// The kinds with a set of functions, by the member of the union.
constexpr MicroKernelKind KindOf(const FloatTiles* MicroKernelFunction::*) {
  return MicroKernelKind::kFloatGemm;
}
constexpr MicroKernelKind KindOf(const Int4Tiles* MicroKernelFunction::*) {
  return MicroKernelKind::kInt4Gemm;
}
constexpr MicroKernelKind KindOf(const FloatWindows* MicroKernelFunction::*) {
  return MicroKernelKind::kFloatWindows;
}
constexpr MicroKernelKind KindOf(
    const WinogradTransforms* MicroKernelFunction::*) {
  return MicroKernelKind::kWinograd;
}
constexpr MicroKernelKind KindOf(
    const ElementFunctions* MicroKernelFunction::*) {
  return MicroKernelKind::kElementFunctions;
}
constexpr MicroKernelKind KindOf(
    void (*MicroKernelFunction::*)(const SoftmaxRows&)) {
  return MicroKernelKind::kSoftmax;
}
constexpr MicroKernelKind KindOf(const AudioFunctions* MicroKernelFunction::*) {
  return MicroKernelKind::kAudio;
}
constexpr MicroKernelKind KindOf(
    const Int8StageFunctions* MicroKernelFunction::*) {
  return MicroKernelKind::kInt8OutputStages;
}

// What the preferred usable kernel of a kind runs, for example
//   SelectFunctions(&MicroKernelFunction::float_gemm, cpu)
// nullptr where there is none. THREADS: safe.
template <typename Functions>
Functions SelectFunctions(Functions MicroKernelFunction::*member,
                          const CpuFeatures& cpu) {
  const MicroKernel* kernel = SelectMicroKernel(KindOf(member), cpu);
  return kernel == nullptr ? nullptr : kernel->run.*member;
}

// Calls MicroKernel::begin, and ::end when its life ends.
// THREADS: for the tiles that its own thread runs.
class KernelScope {
 public:
  explicit KernelScope(const MicroKernel& kernel) : end_(kernel.end) {
    if (kernel.begin != nullptr) kernel.begin();
  }
  ~KernelScope() {
    if (end_ != nullptr) end_();
  }
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  void (*end_)();
};

// Prefers `kernels` to the catalog's while it lives.
// THREADS: one at a time in the whole process; for tests and benchmarks.
class PreferredMicroKernels {
 public:
  explicit PreferredMicroKernels(std::vector<const MicroKernel*> kernels);
  ~PreferredMicroKernels();
  PreferredMicroKernels(const PreferredMicroKernels&) = delete;
  PreferredMicroKernels& operator=(const PreferredMicroKernels&) = delete;

 private:
  std::vector<const MicroKernel*> kernels_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_CATALOG_H_
