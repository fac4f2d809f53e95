// Trilu: one triangle of each matrix.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// The triangle of each matrix above or below diagonal k, zeros elsewhere.
absl::Status ComputeTrilu(bool upper, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int64_t k,
                           ReadInteger(context->input(1), "k"));
  if (x.rank() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'x' must hold matrices, but has shape ", x.shape().ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                             0, 0, x.dtype(), x.shape()));
  if (x.num_elements() == 0) return absl::OkStatus();
  const int64_t rows = x.dim(x.rank() - 2);
  const int64_t columns = x.dim(x.rank() - 1);
  // Diagonals beyond the corners are all alike.
  const int64_t diagonal = std::clamp(k, -rows, columns);
  return VisitBySize(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* from = x.data<T>();
    T* to = out->data<T>();
    for (int64_t i = 0; i < x.num_elements() / columns; ++i) {
      const int64_t edge = i % rows + diagonal;
      for (int64_t c = 0; c < columns; ++c) {
        const bool is_kept = upper ? c >= edge : c <= edge;
        to[i * columns + c] = is_kept ? from[i * columns + c] : T();
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTrilu(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool upper,
                           graph::GetBoolOr(node, "upper", true));
  return MakeKernel(
      [upper](KernelContext* context) { return ComputeTrilu(upper, context); });
}

}  // namespace

void AddTriangleKernels(KernelCatalog* catalog) {
  catalog->Add("Trilu", MakeTrilu);
}

}  // namespace optfarm::runtime
