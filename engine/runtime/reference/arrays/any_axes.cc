// Slicing, padding and reshaping whose axes and sizes come as tensors, as ONNX
// has them: lists of axes that may be empty (all of them), bounds beyond the
// end, padding below zero. Where these are constants, readers of files use
// TensorFlow's ops instead.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// The axes that a list names, each once; 0, 1, ... `count` - 1 for an empty
// list.
absl::StatusOr<std::vector<int>> ReadAxes(const Tensor& axes, size_t count,
                                          int rank) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           ReadIntegers(axes, "axes"));
  std::vector<int> result;
  if (values.empty()) {
    if (count > static_cast<size_t>(rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat(count, " axes in a tensor of rank ", rank));
    }
    for (size_t i = 0; i < count; ++i) result.push_back(static_cast<int>(i));
    return result;
  }
  std::vector<bool> seen(rank, false);
  for (int64_t value : values) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(value, rank));
    if (seen[axis]) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " is named twice"));
    }
    seen[axis] = true;
    result.push_back(axis);
  }
  return result;
}

absl::Status RequireLength(const std::vector<int64_t>& values, size_t length,
                           absl::string_view name) {
  if (values.size() == length) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' must have ", length, " elements, but has ", values.size()));
}

// Indices into one dimension, in the order of the output.
using Picks = CountedVector<int64_t>;

// Copies the elements of `in` that `pick` names: output index k of dimension d
// comes from input index pick[d][k]; -1 stands for the filling.
template <typename T>
void CopyPicked(const Tensor& in, const std::vector<Picks>& pick,
                const T& filling, Tensor* out) {
  const int rank = in.rank();
  const T* from = in.data<T>();
  T* to = out->data<T>();
  if (rank == 0) {
    to[0] = from[0];
    return;
  }
  std::vector<int64_t> strides(rank, 1);
  for (int d = rank - 2; d >= 0; --d) {
    strides[d] = strides[d + 1] * in.dim(d + 1);
  }
  const Picks& row = pick[rank - 1];
  const int64_t width = static_cast<int64_t>(row.size());
  const int64_t rows = out->num_elements() / width;
  for (int64_t r = 0; r < rows; ++r) {
    if (r % 4096 == 4095) LeaveIfRunEnded();
    int64_t rest = r;
    int64_t at = 0;
    bool is_filled = false;
    for (int d = rank - 2; d >= 0; --d) {
      const int64_t size = static_cast<int64_t>(pick[d].size());
      const int64_t index = pick[d][rest % size];
      rest /= size;
      is_filled = is_filled || index < 0;
      at += index * strides[d];
    }
    for (int64_t k = 0; k < width; ++k) {
      *to++ = is_filled || row[k] < 0 ? filling : from[at + row[k]];
    }
  }
}

absl::Status EmitPicked(const Tensor& in, const std::vector<Picks>& pick,
                        const Tensor* filling, KernelContext* context) {
  std::vector<int64_t> dims;
  for (const auto& indices : pick) {
    dims.push_back(static_cast<int64_t>(indices.size()));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  const Tensor source = in;
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, in.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return VisitBySize(source.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T value = filling == nullptr ? T() : filling->data<T>()[0];
    CopyPicked<T>(source, pick, value, out);
    return absl::OkStatus();
  });
}

Picks WholeRange(int64_t size) {
  Picks indices(size);
  for (int64_t i = 0; i < size; ++i) indices[i] = i;
  return indices;
}

// More elements along one dimension than any graph has; bounds lists of them.
constexpr int64_t kMaxDim = int64_t{1} << 26;

absl::StatusOr<std::vector<Picks>> WholeTensor(const Shape& shape) {
  std::vector<Picks> pick;
  // An empty tensor may claim any size in its other dimensions.
  for (int64_t size : shape.dims()) {
    if (size > kMaxDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("a dimension of ", size, " elements is too large"));
    }
    pick.push_back(WholeRange(size));
  }
  return pick;
}

// The indices from `start` to `end` in steps, cut off at the ends.
Picks SlicedRange(int64_t size, int64_t start, int64_t end, int64_t step) {
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  const auto bounded = [&](int64_t at) {
    // The smallest number cannot be moved by the size.
    if (at < 0) at = at < -size ? -1 - size : at;
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  Picks indices;
  const int64_t stop = bounded(end);
  for (int64_t at = bounded(start); step > 0 ? at < stop : at > stop;) {
    indices.push_back(at);
    const int64_t left = step > 0 ? stop - at : at - stop;
    if (left <= (step > 0 ? step
                 : step == std::numeric_limits<int64_t>::min()
                     ? std::numeric_limits<int64_t>::max()
                     : -step)) {
      break;
    }
    at += step;
  }
  return indices;
}

absl::Status ComputeSliceAxes(KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 5));
  const Tensor& x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                           ReadIntegers(context->input(1), "starts"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> ends,
                           ReadIntegers(context->input(2), "ends"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int> axes,
      ReadAxes(context->input(3), starts.size(), x.rank()));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> steps,
                           ReadIntegers(context->input(4), "steps"));
  if (steps.empty()) steps.assign(starts.size(), 1);
  OPTFARM_RETURN_IF_ERROR(RequireLength(starts, axes.size(), "starts"));
  OPTFARM_RETURN_IF_ERROR(RequireLength(ends, axes.size(), "ends"));
  OPTFARM_RETURN_IF_ERROR(RequireLength(steps, axes.size(), "steps"));
  OPTFARM_ASSIGN_OR_RETURN(auto pick, WholeTensor(x.shape()));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return absl::InvalidArgumentError("a step is 0");
    pick[axes[i]] = SlicedRange(x.dim(axes[i]), starts[i], ends[i], steps[i]);
  }
  return EmitPicked(x, pick, nullptr, context);
}

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

// Where index `at` of a padded dimension comes from; -1 for the filling.
int64_t PaddedIndex(PadMode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  switch (mode) {
    case PadMode::kEdge:
      return at < 0 ? 0 : size - 1;
    case PadMode::kWrap:
      return (at % size + size) % size;
    case PadMode::kReflect: {
      if (size == 1) return 0;
      const int64_t period = 2 * (size - 1);
      const int64_t within = (at % period + period) % period;
      return within < size ? within : period - within;
    }
    default:
      return -1;
  }
}

// `before` and `after` elements more; fewer where they are negative.
absl::StatusOr<Picks> PaddedRange(PadMode mode, int64_t size, int64_t before,
                                  int64_t after) {
  if (std::abs(before / 2) > kMaxDim || std::abs(after / 2) > kMaxDim ||
      size + before + after > kMaxDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("padding of ", before, " and ", after, " elements around ",
                     size, " is too large"));
  }
  // What is cut off is not there to be reflected.
  const int64_t first = std::max<int64_t>(0, -before);
  const int64_t left = size - first - std::max<int64_t>(0, -after);
  const int64_t count = size + before + after;
  Picks indices;
  if (count <= 0) return indices;
  if (left <= 0 && mode != PadMode::kConstant) {
    return absl::InvalidArgumentError(
        absl::StrCat("padding of ", before, " and ", after,
                     " leaves nothing of ", size, " elements to repeat"));
  }
  indices.reserve(count);
  const int64_t begin = std::min<int64_t>(0, -before);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = PaddedIndex(mode, begin + i, std::max<int64_t>(left, 0));
    indices.push_back(at < 0 ? -1 : first + at);
  }
  return indices;
}

absl::Status ComputePadAxes(PadMode mode, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
  const Tensor& x = context->input(0);
  const Tensor& value = context->input(2);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                           ReadIntegers(context->input(1), "pads"));
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(value, "value"));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, value));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> axes,
                           ReadAxes(context->input(3), x.rank(), x.rank()));
  OPTFARM_RETURN_IF_ERROR(RequireLength(pads, 2 * axes.size(), "pads"));
  OPTFARM_ASSIGN_OR_RETURN(auto pick, WholeTensor(x.shape()));
  for (size_t i = 0; i < axes.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        pick[axes[i]],
        PaddedRange(mode, x.dim(axes[i]), pads[i], pads[axes.size() + i]));
  }
  return EmitPicked(x, pick, &value, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePadAxes(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string name,
                           graph::GetStringOr(node, "mode", "constant"));
  PadMode mode = PadMode::kConstant;
  if (name == "reflect") {
    mode = PadMode::kReflect;
  } else if (name == "edge") {
    mode = PadMode::kEdge;
  } else if (name == "wrap") {
    mode = PadMode::kWrap;
  } else if (name != "constant") {
    return absl::UnimplementedError(absl::StrCat(
        "mode '", name, "' is none of constant, reflect, edge and wrap"));
  }
  return MakeKernel(
      [mode](KernelContext* context) { return ComputePadAxes(mode, context); });
}

// Cuts from the middle, or pads with zeros around it, up to the given sizes.
absl::Status ComputeCenterCropPad(const std::vector<int64_t>& named_axes,
                                  KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           ReadIntegers(context->input(1), "shape"));
  const Tensor list = Tensor::FromValues<int64_t>(
      {static_cast<int64_t>(named_axes.size())}, named_axes);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> axes,
                           ReadAxes(list, sizes.size(), x.rank()));
  OPTFARM_RETURN_IF_ERROR(RequireLength(sizes, axes.size(), "shape"));
  OPTFARM_ASSIGN_OR_RETURN(auto pick, WholeTensor(x.shape()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = x.dim(axes[i]);
    if (sizes[i] < 0 || sizes[i] > kMaxDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape[", i, "] = ", sizes[i], " is not a size"));
    }
    const int64_t more = sizes[i] - size;
    // Cutting rounds the first index down, padding the elements before.
    const int64_t before = more >= 0 ? more / 2 : -((size - sizes[i]) / 2);
    OPTFARM_ASSIGN_OR_RETURN(
        pick[axes[i]],
        PaddedRange(PadMode::kConstant, size, before, more - before));
  }
  return EmitPicked(x, pick, nullptr, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCenterCropPad(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                           graph::GetIntsOr(node, "axes", {}));
  return MakeKernel([axes](KernelContext* context) {
    return ComputeCenterCropPad(axes, context);
  });
}

absl::Status EmitReshaped(const std::vector<int64_t>& dims,
                          KernelContext* context) {
  const Tensor x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  if (shape.num_elements() != x.num_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", x.shape().ToString(), " cannot become shape ",
                     shape.ToString()));
  }
  context->SetOutput(0, x.Reshaped(shape));
  return absl::OkStatus();
}

absl::Status ComputeUnsqueezeAxes(KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  const int rank = x.rank() + static_cast<int>(std::min<int64_t>(
                                  context->input(1).num_elements(), kMaxRank));
  std::vector<int> axes;
  if (rank > x.rank()) {
    OPTFARM_ASSIGN_OR_RETURN(axes, ReadAxes(context->input(1), 0, rank));
  }
  std::vector<int64_t> dims(rank, -1);
  for (int axis : axes) dims[axis] = 1;
  int next = 0;
  for (int64_t& dim : dims) {
    if (dim < 0) dim = x.dim(next++);
  }
  return EmitReshaped(dims, context);
}

absl::Status ComputeSqueezeAxes(KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> axes,
                           ReadAxes(context->input(1), 0, x.rank()));
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_named = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (is_named && x.dim(i) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", i, " of shape ", x.shape().ToString(),
                       " has more than one element"));
    }
    const bool goes = axes.empty() ? x.dim(i) == 1 : is_named;
    if (!goes) dims.push_back(x.dim(i));
  }
  return EmitReshaped(dims, context);
}

// Reshape in which a 0 keeps the input's dimension, unless `allow_zero`.
absl::Status ComputeReshapeCopy(bool allow_zero, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                           ReadIntegers(context->input(1), "shape"));
  int64_t known = 1;
  int free = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int at = static_cast<int>(i);
    if (dims[i] == 0 && !allow_zero) {
      if (at >= x.rank()) {
        return absl::InvalidArgumentError(
            absl::StrCat("shape[", i, "] = 0 has no dimension to keep in ",
                         x.shape().ToString()));
      }
      dims[i] = x.dim(at);
    }
    if (dims[i] == -1 && free < 0) {
      free = at;
    } else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape[", i, "] = ", dims[i], " is not a size"));
    }
  }
  if (free >= 0) {
    if (known == 0 || x.num_elements() % known != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", x.shape().ToString(),
                       " does not divide into parts of ", known));
    }
    dims[free] = x.num_elements() / known;
  }
  return EmitReshaped(dims, context);
}

// The slices along `axis` whose condition holds.
absl::Status ComputeCompress(int64_t named_axis, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  const Tensor& condition = context->input(1);
  OPTFARM_RETURN_IF_ERROR(
      RequireDtype(condition, "condition", tensorflow::DT_BOOL));
  OPTFARM_RETURN_IF_ERROR(RequireRank(condition, "condition", 1));
  OPTFARM_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(named_axis, x.rank()));
  Picks kept;
  for (int64_t i = 0; i < condition.num_elements(); ++i) {
    if (!condition.data<bool>()[i]) continue;
    if (i >= x.dim(axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("condition[", i, "] holds, but dimension ", axis,
                       " of the input has ", x.dim(axis), " elements"));
    }
    kept.push_back(i);
  }
  OPTFARM_ASSIGN_OR_RETURN(auto pick, WholeTensor(x.shape()));
  pick[axis] = std::move(kept);
  return EmitPicked(x, pick, nullptr, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCompress(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node, "axis", 0));
  return MakeKernel([axis](KernelContext* context) {
    return ComputeCompress(axis, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReshapeCopy(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool allow_zero,
                           graph::GetBoolOr(node, "allow_zero", false));
  return MakeKernel([allow_zero](KernelContext* context) {
    return ComputeReshapeCopy(allow_zero, context);
  });
}

template <absl::Status (*kCompute)(KernelContext*)>
absl::StatusOr<std::unique_ptr<Kernel>> MakePlain(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) { return kCompute(context); });
}

}  // namespace

void AddAnyAxesKernels(KernelCatalog* catalog) {
  catalog->Add("CenterCropPad", MakeCenterCropPad);
  catalog->Add("Compress", MakeCompress);
  catalog->Add("PadAxes", MakePadAxes);
  catalog->Add("ReshapeCopy", MakeReshapeCopy);
  catalog->Add("SliceAxes", MakePlain<ComputeSliceAxes>);
  catalog->Add("SqueezeAxes", MakePlain<ComputeSqueezeAxes>);
  catalog->Add("UnsqueezeAxes", MakePlain<ComputeUnsqueezeAxes>);
}

}  // namespace optfarm::runtime
