#include "engine/runtime/ukernels/micro_kernel_catalog.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace optfarm::runtime {
namespace {

constexpr const MicroKernel* kCatalog[] = {
#define OPTFARM_MICRO_KERNEL(entry) &entry,
#include "engine/runtime/ukernels/micro_kernels.inc"
#undef OPTFARM_MICRO_KERNEL
};

std::atomic<const std::vector<const MicroKernel*>*>& Preferred() {
  static std::atomic<const std::vector<const MicroKernel*>*> preferred{nullptr};
  return preferred;
}

bool IsPermitted(const MicroKernel& kernel) {
  if (kernel.request_permission == nullptr) return true;
  static std::mutex mutex;
  static auto* answers = new std::map<const MicroKernel*, bool>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = answers->find(&kernel);
  if (found != answers->end()) return found->second;
  return answers->emplace(&kernel, kernel.request_permission()).first->second;
}

template <typename Predicate>
const MicroKernel* FirstOf(MicroKernelKind kind, const CpuFeatures& cpu,
                           Predicate suits) {
  const auto is_it = [&](const MicroKernel& kernel) {
    return kernel.kind == kind && suits(kernel) && IsUsable(kernel, cpu);
  };
  if (const auto* preferred = Preferred().load()) {
    for (const MicroKernel* kernel : *preferred) {
      if (is_it(*kernel)) return kernel;
    }
  }
  for (const MicroKernel* kernel : kCatalog) {
    if (is_it(*kernel)) return kernel;
  }
  return nullptr;
}

}  // namespace

absl::Span<const MicroKernel* const> AllMicroKernels() { return kCatalog; }

bool IsUsable(const MicroKernel& kernel, const CpuFeatures& cpu) {
  return HasAll(cpu, kernel.needs) && IsPermitted(kernel);
}

const MicroKernel* SelectMicroKernel(MicroKernelKind kind,
                                     const CpuFeatures& cpu) {
  const MicroKernel* gemm = nullptr;
  if (kind == MicroKernelKind::kInt8Row ||
      kind == MicroKernelKind::kInt8MatrixGemm) {
    gemm = SelectMicroKernel(MicroKernelKind::kInt8Gemm, cpu);
  }
  return FirstOf(kind, cpu, [&](const MicroKernel& kernel) {
    return gemm == nullptr || (kernel.panel.nr == gemm->panel.nr &&
                               kernel.panel.kr == gemm->panel.kr);
  });
}

PreferredMicroKernels::PreferredMicroKernels(
    std::vector<const MicroKernel*> kernels)
    : kernels_(std::move(kernels)) {
  Preferred().store(&kernels_);
}

PreferredMicroKernels::~PreferredMicroKernels() { Preferred().store(nullptr); }

}  // namespace optfarm::runtime
