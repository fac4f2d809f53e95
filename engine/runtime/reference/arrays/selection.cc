// Choosing between elements: Select, SelectV2, Where.

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

// Each condition decides for `run` neighbouring elements.
template <typename T>
void ChooseRuns(const bool* condition, int64_t count, int64_t run, const T* yes,
                const T* no, T* out) {
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n((condition[i] ? yes : no) + i * run, run, out + i * run);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSelect(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& condition = context->input(0);
    const Tensor& yes = context->input(1);
    const Tensor& no = context->input(2);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(condition, "condition", tensorflow::DT_BOOL));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(yes, no));
    OPTFARM_RETURN_IF_ERROR(RequireShape(no, "e", yes.shape()));
    const bool is_per_row = condition.rank() == 1 && yes.rank() > 0 &&
                            condition.dim(0) == yes.dim(0);
    const bool is_scalar = condition.rank() == 0;
    if (!is_scalar && !is_per_row && !(condition.shape() == yes.shape())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a condition of shape ", condition.shape().ToString(),
          " cannot choose between tensors of shape ", yes.shape().ToString()));
    }
    if (is_scalar) {
      context->SetOutput(0, *condition.data<bool>() ? yes : no);
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, yes.dtype(), yes.shape()));
    if (yes.num_elements() == 0) return absl::OkStatus();
    const int64_t run = yes.num_elements() / condition.num_elements();
    return VisitBySize(yes.dtype(), "t", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      ChooseRuns(condition.data<bool>(), condition.num_elements(), run,
                 yes.data<T>(), no.data<T>(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

template <typename T>
void SelectRow(const bool* condition, const T* yes, const T* no, T* out,
               int64_t count, const BroadcastDims<3>::Offsets& step) {
  if (step[0] == 0) {
    const T* from = *condition ? yes : no;
    if ((*condition ? step[1] : step[2]) == 0) {
      std::fill_n(out, count, *from);
    } else {
      std::copy_n(from, count, out);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = condition[i] ? yes[i * step[1]] : no[i * step[2]];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSelectV2(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& condition = context->input(0);
    const Tensor& yes = context->input(1);
    const Tensor& no = context->input(2);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(condition, "condition", tensorflow::DT_BOOL));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(yes, no));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan values,
                             PlanBroadcast(yes.shape(), no.shape()));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan whole,
                             PlanBroadcast(values.output, condition.shape()));
    const Shape& shape = whole.output;
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, yes.dtype(), shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const BroadcastDims<3> dims =
        MergeDims<3>(shape, {&condition.shape(), &yes.shape(), &no.shape()});
    return VisitBySize(yes.dtype(), "t", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      dims.ForEachRow(0, shape.num_elements() / dims.row(),
                      [&](const BroadcastDims<3>::Offsets& in, int64_t at) {
                        SelectRow(condition.data<bool>() + in[0],
                                  yes.data<T>() + in[1], no.data<T>() + in[2],
                                  out->data<T>() + at, dims.row(),
                                  dims.steps.back());
                      });
      return absl::OkStatus();
    });
  });
}

// Writes the coordinates of all elements that are not 0, one row each.
template <typename T>
absl::Status ComputeWhere(const Tensor& input, KernelContext* context) {
  const T* values = input.data<T>();
  const int64_t dims[] = {
      input.num_elements() -
          std::count(values, values + input.num_elements(), T()),
      input.rank()};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, context->AllocateOutput(0, tensorflow::DT_INT64, shape));
  int64_t* row = out->data<int64_t>();
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    if (values[i] == T()) continue;
    int64_t rest = i;
    for (int axis = input.rank() - 1; axis >= 0; --axis) {
      row[axis] = rest % input.dim(axis);
      rest /= input.dim(axis);
    }
    row += input.rank();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWhere(
    const tensorflow::NodeDef& node) {
  // Nodes of before TensorFlow 1.4 have no T: their input is bool.
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T",
      {tensorflow::DT_BOOL, tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
       tensorflow::DT_INT8, tensorflow::DT_INT16, tensorflow::DT_INT32,
       tensorflow::DT_INT64, tensorflow::DT_UINT8, tensorflow::DT_UINT16,
       tensorflow::DT_UINT32, tensorflow::DT_UINT64, tensorflow::DT_COMPLEX64,
       tensorflow::DT_COMPLEX128}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    if (input.dtype() == tensorflow::DT_BOOL) {
      return ComputeWhere<bool>(input, context);
    }
    return VisitNumberOrComplex(
        input.dtype(), "input", [&](auto tag) -> absl::Status {
          return ComputeWhere<typename decltype(tag)::type>(input, context);
        });
  });
}

}  // namespace

void AddSelectionKernels(KernelCatalog* catalog) {
  catalog->Add("Select", MakeSelect);
  catalog->Add("SelectV2", MakeSelectV2);
  catalog->Add("Where", MakeWhere);
}

}  // namespace optfarm::runtime
