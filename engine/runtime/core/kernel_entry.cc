// Makes kernels from their entries in the catalog.

#include <memory>
#include <optional>
#include <utility>

#include "engine/runtime/core/half_through_float.h"
#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

absl::StatusOr<std::unique_ptr<Kernel>> KernelEntry::Make(
    const tensorflow::NodeDef& node) const {
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = make(node);
  if (kernel.ok() || !absl::IsUnimplemented(kernel.status())) return kernel;
  const std::optional<HalfAttributes> halves = FindHalfAttributes(node);
  if (!halves.has_value()) return kernel;
  absl::StatusOr<std::unique_ptr<Kernel>> in_float = make(halves->float_node);
  if (!in_float.ok()) return kernel;
  return MakeHalfThroughFloat(*halves, *std::move(in_float));
}

}  // namespace optfarm::runtime
