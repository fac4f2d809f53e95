// BroadcastTo, and the ops that compute how shapes broadcast.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeBroadcastTo(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                             ReadIntegers(context->input(1), "shape"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                             PlanBroadcast(shape, input.shape()));
    if (!(plan.output == shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor of shape ", input.shape().ToString(),
                       " does not broadcast to ", shape.ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    return VisitBySize(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      plan.ForEachRow(0, plan.rows(), [&](int64_t, int64_t b, int64_t at) {
        const T* from = input.data<T>() + b;
        if (plan.b_moves()) {
          std::copy_n(from, plan.row(), out->data<T>() + at);
        } else {
          std::fill_n(out->data<T>() + at, plan.row(), *from);
        }
      });
      return absl::OkStatus();
    });
  });
}

template <typename T>
absl::Status SetShape(int i, const std::vector<int64_t>& dims,
                      KernelContext* context) {
  const std::vector<T> values(dims.begin(), dims.end());
  context->SetOutput(
      i, Tensor::FromValues<T>(Shape{static_cast<int64_t>(values.size())},
                               absl::MakeConstSpan(values)));
  return absl::OkStatus();
}

absl::Status SetShapeLike(int i, const std::vector<int64_t>& dims,
                          KernelContext* context) {
  return context->input(0).dtype() == tensorflow::DT_INT64
             ? SetShape<int64_t>(i, dims, context)
             : SetShape<int32_t>(i, dims, context);
}

absl::StatusOr<Shape> ReadShape(const Tensor& tensor, absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                           ReadIntegers(tensor, name));
  return Shape::FromDims(dims);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBroadcastArgs(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INDEX_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const Shape a, ReadShape(context->input(0), "s0"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape b, ReadShape(context->input(1), "s1"));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(a, b));
    const auto dims = plan.output.dims();
    return SetShapeLike(0, {dims.begin(), dims.end()}, context);
  });
}

// Which axes of the result each shape was repeated along.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBroadcastGradientArgs(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INDEX_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const Shape a, ReadShape(context->input(0), "s0"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape b, ReadShape(context->input(1), "s1"));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(a, b));
    for (int k = 0; k < 2; ++k) {
      const Shape& own = k == 0 ? a : b;
      const int missing = plan.output.rank() - own.rank();
      std::vector<int64_t> axes;
      for (int i = 0; i < plan.output.rank(); ++i) {
        if (a == b) break;
        if (i < missing || own.dim(i - missing) == 1) axes.push_back(i);
      }
      OPTFARM_RETURN_IF_ERROR(SetShapeLike(k, axes, context));
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddBroadcastKernels(KernelCatalog* catalog) {
  catalog->Add("BroadcastTo", MakeBroadcastTo);
  catalog->Add("BroadcastArgs", MakeBroadcastArgs);
  catalog->Add("BroadcastGradientArgs", MakeBroadcastGradientArgs);
}

}  // namespace optfarm::runtime
