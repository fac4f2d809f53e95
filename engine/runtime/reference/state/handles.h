// Making and reading handles: the inputs and outputs through which kernels
// reach variables, tables, arrays and stacks.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_HANDLES_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_HANDLES_H_

#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/resource.h"

namespace optfarm::runtime {

// All kinds of handles (references, strings, resources) are one in the runtime.
template <typename T>
Tensor MakeHandle(std::shared_ptr<T> resource) {
  return Tensor::FromResource(tensorflow::DT_RESOURCE, std::move(resource));
}

// The resource that input i leads to; valid as long as the input.
// ERRORS: InvalidArgument for another tensor or another kind of resource.
template <typename T>
absl::StatusOr<T*> ResourceOf(const KernelContext& context, int i,
                              absl::string_view kind) {
  if (i < context.num_inputs()) {
    T* found = dynamic_cast<T*>(context.input(i).resource());
    if (found != nullptr) return found;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " is not the handle of a ", kind));
}

// The name under which a node's resource is kept: `shared_name`, else the
// node's own, within `container`.
inline absl::StatusOr<std::string> ResourceName(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string container,
                           graph::GetStringOr(node, "container", ""));
  OPTFARM_ASSIGN_OR_RETURN(std::string name,
                           graph::GetStringOr(node, "shared_name", ""));
  if (name.empty()) name = node.name();
  return container.empty() ? name : absl::StrCat(container, "/", name);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_HANDLES_H_
