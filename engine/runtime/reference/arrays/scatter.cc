// Writing slices by index: ScatterNd, TensorScatterUpdate and its kin.

#include <algorithm>
#include <complex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/update.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Which slice each update goes to. A slice has `size` elements.
struct Targets {
  std::vector<int64_t> slices;
  int64_t size = 1;
};

absl::Status OutOfBounds(int64_t index, const Shape& shape) {
  return absl::InvalidArgumentError(absl::StrCat(
      "index ", index, " does not lie within shape ", shape.ToString()));
}

// The last dimension of `indices` points into the leading dimensions.
absl::StatusOr<Targets> VectorTargets(const Shape& shape, const Tensor& indices,
                                      const Tensor& updates, bool wraps) {
  const int last = indices.rank() - 1;
  if (last < 0 || indices.dim(last) > shape.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices of shape ", indices.shape().ToString(),
                     " do not point into shape ", shape.ToString()));
  }
  const int depth = static_cast<int>(indices.dim(last));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           indices.AsInt64s());
  std::vector<int64_t> dims(indices.shape().dims().begin(),
                            indices.shape().dims().end() - 1);
  dims.insert(dims.end(), shape.dims().begin() + depth, shape.dims().end());
  OPTFARM_ASSIGN_OR_RETURN(const Shape expected, Shape::FromDims(dims));
  OPTFARM_RETURN_IF_ERROR(RequireShape(updates, "updates", expected));
  Targets targets;
  targets.size = DimProduct(shape, depth, shape.rank());
  // Without updated elements there is nothing to point at.
  if (expected.num_elements() == 0) return targets;
  const int64_t count = DimProduct(indices.shape(), 0, last);
  targets.slices.reserve(static_cast<size_t>(count));
  const std::vector<int64_t> sizes(shape.dims().begin(),
                                   shape.dims().begin() + depth);
  const int64_t* value = values.data();
  for (int64_t i = 0; i < count; ++i) {
    int64_t slice = 0;
    for (const int64_t size : sizes) {
      int64_t index = *value++;
      if (wraps && index < 0) index += size;
      if (index < 0 || index >= size) return OutOfBounds(index, shape);
      slice = slice * size + index;
    }
    targets.slices.push_back(slice);
  }
  return targets;
}

template <typename T>
void ApplyTyped(Update update, const Targets& targets, const Tensor& updates,
                Tensor* out) {
  const T* from = updates.data<T>();
  T* const all = out->data<T>();
  for (int64_t slice : targets.slices) {
    T* to = all + slice * targets.size;
    for (int64_t k = 0; k < targets.size; ++k) {
      to[k] = Updated(update, to[k], from[k]);
    }
    from += targets.size;
  }
}

absl::Status Apply(Update update, const Targets& targets, const Tensor& updates,
                   Tensor* out) {
  if (update == Update::kAssign) {
    return VisitBySize(out->dtype(), "updates", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const T* from = updates.data<T>();
      T* const all = out->data<T>();
      for (int64_t slice : targets.slices) {
        if (targets.size == 1) {
          all[slice] = *from;
        } else {
          std::copy_n(from, targets.size, all + slice * targets.size);
        }
        from += targets.size;
      }
      return absl::OkStatus();
    });
  }
  return VisitNumber(out->dtype(), "updates", [&](auto tag) -> absl::Status {
    ApplyTyped<typename decltype(tag)::type>(update, targets, updates, out);
    return absl::OkStatus();
  });
}

template <Update kUpdate>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUpdate(
    const tensorflow::NodeDef& node) {
  if (kUpdate != Update::kAssign) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  }
  // Negative indices count from the end, as in ONNX.
  OPTFARM_ASSIGN_OR_RETURN(const bool wraps,
                           graph::GetBoolOr(node, "wraps_negative", false));
  return MakeKernel([wraps](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& value = context->input(0);
    const Tensor& updates = context->input(2);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(value, updates));
    OPTFARM_ASSIGN_OR_RETURN(
        const Targets targets,
        VectorTargets(value.shape(), context->input(1), updates, wraps));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, WritableCopy(value, "ref"));
    OPTFARM_RETURN_IF_ERROR(Apply(kUpdate, targets, updates, &out));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// Updates of one slice add up.
absl::StatusOr<std::unique_ptr<Kernel>> MakeScatterNd(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& updates = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                             ReadIntegers(context->input(2), "shape"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(const Targets targets,
                             VectorTargets(shape, context->input(0), updates,
                                           /*wraps=*/false));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(updates.dtype(), shape));
    OPTFARM_RETURN_IF_ERROR(Apply(Update::kAdd, targets, updates, &out));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddScatterKernels(KernelCatalog* catalog) {
  catalog->Add("ScatterNd", MakeScatterNd);
  catalog->Add("ScatterNdNonAliasingAdd", MakeUpdate<Update::kAdd>);
  catalog->Add("TensorScatterUpdate", MakeUpdate<Update::kAssign>);
  catalog->Add("TensorScatterAdd", MakeUpdate<Update::kAdd>);
  catalog->Add("TensorScatterSub", MakeUpdate<Update::kSubtract>);
  catalog->Add("TensorScatterMul", MakeUpdate<Update::kMultiply>);
  catalog->Add("TensorScatterMin", MakeUpdate<Update::kMin>);
  catalog->Add("TensorScatterMax", MakeUpdate<Update::kMax>);
}

}  // namespace optfarm::runtime
