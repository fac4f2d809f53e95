// Pad, PadV2 and MirrorPad: dimension after dimension, each pass copying runs.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

struct Margin {
  int64_t before = 0;
  int64_t after = 0;
};

absl::StatusOr<std::vector<Margin>> ReadMargins(const Tensor& paddings,
                                                int rank) {
  if (paddings.rank() != 2 || paddings.dim(0) != rank || paddings.dim(1) != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'paddings' must have shape [", rank, ",2], but has ",
                     paddings.shape().ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           paddings.AsInt64s());
  std::vector<Margin> margins;
  for (int i = 0; i < rank; ++i) {
    const Margin margin{values[2 * i], values[2 * i + 1]};
    if (margin.before < 0 || margin.after < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("paddings[", i, "] is (", margin.before, ", ",
                       margin.after, "), must not be negative"));
    }
    margins.push_back(margin);
  }
  return margins;
}

absl::StatusOr<Shape> PaddedShape(const Shape& shape, int axis,
                                  const Margin& margin) {
  int64_t size = shape.dim(axis);
  if (__builtin_add_overflow(size, margin.before, &size) ||
      __builtin_add_overflow(size, margin.after, &size)) {
    return absl::InvalidArgumentError("the padded tensor is too large");
  }
  return WithDim(shape, axis, size);
}

// One axis padded with a constant.
template <typename T>
void PadRuns(const T* in, int64_t outer, int64_t run, int64_t before,
             int64_t after, const T& value, T* out) {
  for (int64_t o = 0; o < outer; ++o) {
    std::fill_n(out, before, value);
    std::copy_n(in + o * run, run, out + before);
    std::fill_n(out + before + run, after, value);
    out += before + run + after;
  }
}

// `value` is a scalar of the input's dtype, or without a value for zeros.
absl::StatusOr<Tensor> PadAxis(const Tensor& in, int axis, const Margin& margin,
                               const Tensor& value) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           PaddedShape(in.shape(), axis, margin));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(in.dtype(), shape));
  if (shape.num_elements() == 0) return out;
  const int64_t outer = DimProduct(shape, 0, axis);
  const int64_t inner = DimProduct(shape, axis + 1, shape.rank());
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(in.dtype(), "input", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        const T fill = value.has_value() ? *value.data<T>() : T();
        PadRuns(in.data<T>(), outer, in.dim(axis) * inner,
                margin.before * inner, margin.after * inner, fill,
                out.data<T>());
        return absl::OkStatus();
      }));
  return out;
}

absl::Status ComputePad(KernelContext* context, const Tensor& value) {
  Tensor tensor = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Margin> margins,
                           ReadMargins(context->input(1), tensor.rank()));
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    const Margin& margin = margins[axis];
    if (margin.before == 0 && margin.after == 0) continue;
    OPTFARM_ASSIGN_OR_RETURN(tensor, PadAxis(tensor, axis, margin, value));
  }
  context->SetOutput(0, std::move(tensor));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePad(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    return ComputePad(context, Tensor());
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePadV2(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& value = context->input(2);
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(value, "constant_values"));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(context->input(0), value));
    return ComputePad(context, value);
  });
}

// `edge` is 1 when the outermost element is not repeated (REFLECT).
absl::StatusOr<Tensor> MirrorAxis(const Tensor& in, int axis,
                                  const Margin& margin, int64_t edge) {
  const int64_t size = in.dim(axis);
  if (margin.before > size - edge || margin.after > size - edge) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dimension ", axis, " of size ", size, " cannot be mirrored by ",
        margin.before, " and ", margin.after, " elements"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           PaddedShape(in.shape(), axis, margin));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(in.dtype(), shape));
  if (shape.num_elements() == 0) return out;
  const int64_t outer = DimProduct(shape, 0, axis);
  const int64_t inner = DimProduct(shape, axis + 1, shape.rank());
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(in.dtype(), "input", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        T* to = out.data<T>();
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t k = 0; k < shape.dim(axis); ++k, to += inner) {
            int64_t from = k - margin.before;
            if (from < 0) from = -from - 1 + edge;
            if (from >= size) from = 2 * size - 1 - edge - from;
            std::copy_n(in.data<T>() + (o * size + from) * inner, inner, to);
          }
        }
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMirrorPad(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string mode,
                           graph::GetString(node, "mode"));
  if (mode != "REFLECT" && mode != "SYMMETRIC") {
    return absl::InvalidArgumentError(
        absl::StrCat("mode '", mode, "' is neither REFLECT nor SYMMETRIC"));
  }
  const int64_t edge = mode == "REFLECT" ? 1 : 0;
  return MakeKernel([edge](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    Tensor tensor = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Margin> margins,
                             ReadMargins(context->input(1), tensor.rank()));
    for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
      if (margins[axis].before == 0 && margins[axis].after == 0) continue;
      OPTFARM_ASSIGN_OR_RETURN(tensor,
                               MirrorAxis(tensor, axis, margins[axis], edge));
    }
    context->SetOutput(0, std::move(tensor));
    return absl::OkStatus();
  });
}

}  // namespace

void AddPaddingKernels(KernelCatalog* catalog) {
  catalog->Add("Pad", MakePad);
  catalog->Add("PadV2", MakePadV2);
  catalog->Add("MirrorPad", MakeMirrorPad);
}

}  // namespace optfarm::runtime
