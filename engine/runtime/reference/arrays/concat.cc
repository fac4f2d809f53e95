// Joining tensors along an axis and taking them apart again: Concat, Pack,
// Split, Unpack, Tile. All see a tensor as outer x axis x inner.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// `width` elements of each row of the result, taken from one tensor.
struct Piece {
  const Tensor* tensor = nullptr;
  int64_t width = 0;
};

// Elements that are worth another thread. Sharing leaves each thread's rows in
// its own cache for what reads them next.
constexpr int64_t kElementsPerRange = 8 * 1024;

// Writes the pieces side by side, row by row.
absl::Status Interleave(const std::vector<Piece>& pieces, int64_t outer,
                        int64_t row, ThreadPool* pool, Tensor* out) {
  return VisitBySize(out->dtype(), "values", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t grain = 1 + kElementsPerRange / row;
    pool->ParallelFor(outer, grain, [&](int64_t begin, int64_t end) {
      T* to = out->data<T>();
      for (const Piece& piece : pieces) {
        const T* from = piece.tensor->data<T>();
        for (int64_t o = begin; o < end; ++o) {
          std::copy_n(from + o * piece.width, piece.width, to + o * row);
        }
        to += piece.width;
      }
    });
    return absl::OkStatus();
  });
}

// Copies `width` elements at `offset` of each row into `out`.
absl::Status CopyPart(const Tensor& in, int64_t outer, int64_t row,
                      int64_t offset, int64_t width, Tensor* out) {
  return VisitBySize(in.dtype(), "value", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    for (int64_t o = 0; o < outer; ++o) {
      std::copy_n(in.data<T>() + o * row + offset, width,
                  out->data<T>() + o * width);
    }
    return absl::OkStatus();
  });
}

// Inputs [first, first + count) along `axis`.
absl::Status Concatenate(KernelContext* context, int first, int count,
                         const Tensor& axis_input) {
  const Tensor& model = context->input(first);
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           ReadAxis(axis_input, "axis", model.rank()));
  int64_t size = 0;
  for (int i = first; i < first + count; ++i) {
    const Tensor& value = context->input(i);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(model, value));
    bool fits = value.rank() == model.rank();
    for (int k = 0; fits && k < model.rank(); ++k) {
      fits = k == axis || value.dim(k) == model.dim(k);
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("values of shapes ", model.shape().ToString(), " and ",
                       value.shape().ToString(),
                       " cannot be joined along dimension ", axis));
    }
    if (__builtin_add_overflow(size, value.dim(axis), &size)) {
      return absl::InvalidArgumentError("the joined tensor is too large");
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           WithDim(model.shape(), axis, size));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, model.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t inner = DimProduct(shape, axis + 1, shape.rank());
  std::vector<Piece> pieces;
  for (int i = first; i < first + count; ++i) {
    const Tensor& value = context->input(i);
    pieces.push_back({&value, value.dim(axis) * inner});
  }
  return Interleave(pieces, DimProduct(shape, 0, axis), size * inner,
                    context->pool(), out);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConcat(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 2));
    return Concatenate(context, 1, context->num_inputs() - 1,
                       context->input(0));
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConcatV2(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 2));
    const int count = context->num_inputs() - 1;
    return Concatenate(context, 0, count, context->input(count));
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePack(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis_attr,
                           graph::GetIntOr(node, "axis", 0));
  return MakeKernel([axis_attr](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 1));
    const Tensor& model = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const int axis,
                             NormalizeAxis(axis_attr, model.rank() + 1));
    std::vector<Piece> pieces;
    const int64_t inner = DimProduct(model.shape(), axis, model.rank());
    for (int i = 0; i < context->num_inputs(); ++i) {
      const Tensor& value = context->input(i);
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(model, value));
      OPTFARM_RETURN_IF_ERROR(RequireShape(value, "values", model.shape()));
      pieces.push_back({&value, inner});
    }
    std::vector<int64_t> dims(model.shape().dims().begin(),
                              model.shape().dims().end());
    dims.insert(dims.begin() + axis, context->num_inputs());
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, model.dtype(), shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    return Interleave(pieces, DimProduct(shape, 0, axis),
                      inner * context->num_inputs(), context->pool(), out);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeUnpack(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis_attr,
                           graph::GetIntOr(node, "axis", 0));
  return MakeKernel([axis_attr](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& value = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const int axis,
                             NormalizeAxis(axis_attr, value.rank()));
    if (value.dim(axis) != context->num_outputs()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dimension ", axis, " of ", value.shape().ToString(),
          " cannot be unpacked into ", context->num_outputs(), " tensors"));
    }
    std::vector<int64_t> dims(value.shape().dims().begin(),
                              value.shape().dims().end());
    dims.erase(dims.begin() + axis);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    const int64_t outer = DimProduct(value.shape(), 0, axis);
    const int64_t inner = DimProduct(value.shape(), axis + 1, value.rank());
    for (int i = 0; i < context->num_outputs(); ++i) {
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out, context->AllocateOutput(i, value.dtype(), shape));
      if (shape.num_elements() == 0) continue;
      OPTFARM_RETURN_IF_ERROR(CopyPart(value, outer, value.dim(axis) * inner,
                                       i * inner, inner, out));
    }
    return absl::OkStatus();
  });
}

// One output per size along `axis`. REQUIRES: the sizes fill the dimension.
absl::Status SplitInto(const Tensor& value, int axis,
                       const std::vector<int64_t>& sizes,
                       KernelContext* context) {
  const int64_t outer = DimProduct(value.shape(), 0, axis);
  const int64_t inner = DimProduct(value.shape(), axis + 1, value.rank());
  const int64_t row = value.dim(axis) * inner;
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             WithDim(value.shape(), axis, sizes[i]));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(static_cast<int>(i), value.dtype(), shape));
    const int64_t width = sizes[i] * inner;
    if (shape.num_elements() > 0) {
      OPTFARM_RETURN_IF_ERROR(CopyPart(value, outer, row, offset, width, out));
    }
    offset += width;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSplit(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& value = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(
        const int axis, ReadAxis(context->input(0), "split_dim", value.rank()));
    const int count = context->num_outputs();
    if (count < 1 || value.dim(axis) % count != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", axis, " of ", value.shape().ToString(),
                       " cannot be split into ", count, " equal parts"));
    }
    return SplitInto(value, axis,
                     std::vector<int64_t>(count, value.dim(axis) / count),
                     context);
  });
}

// The sizes of SplitV; one of them may be -1 for what the others leave.
absl::StatusOr<std::vector<int64_t>> ResolveSizes(std::vector<int64_t> sizes,
                                                  int64_t total) {
  const std::string asked = absl::StrJoin(sizes, ",");
  int64_t rest = total;
  int unknown = 0;
  bool is_bad = false;
  for (int64_t size : sizes) {
    is_bad |= size < -1 || size > total;
    if (size == -1) ++unknown;
    if (size > 0 && size <= total) rest -= size;
  }
  if (is_bad || unknown > 1 || rest < 0 || (unknown == 0 && rest != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sizes [", asked, "] do not fill a dimension of ", total));
  }
  std::replace(sizes.begin(), sizes.end(), int64_t{-1}, rest);
  return sizes;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSplitV(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& value = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        const int axis, ReadAxis(context->input(2), "split_dim", value.rank()));
    OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                             context->input(1).AsInt64s());
    OPTFARM_RETURN_IF_ERROR(
        RequireOutputs(*context, static_cast<int>(sizes.size())));
    OPTFARM_ASSIGN_OR_RETURN(sizes,
                             ResolveSizes(std::move(sizes), value.dim(axis)));
    return SplitInto(value, axis, sizes, context);
  });
}

// Repeats dimension after dimension, from the last to the first: each pass
// copies whole runs.
absl::StatusOr<Tensor> RepeatAxis(const Tensor& in, int axis, int64_t times) {
  if (times < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dimension cannot be repeated ", times, " times"));
  }
  int64_t size = 0;
  if (__builtin_mul_overflow(in.dim(axis), times, &size)) {
    return absl::InvalidArgumentError("the repeated tensor is too large");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, WithDim(in.shape(), axis, size));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(in.dtype(), shape));
  if (shape.num_elements() == 0) return out;
  const int64_t outer = DimProduct(shape, 0, axis);
  const int64_t run = in.num_elements() / outer;
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(in.dtype(), "input", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        T* to = out.data<T>();
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t k = 0; k < times; ++k, to += run) {
            std::copy_n(in.data<T>() + o * run, run, to);
          }
        }
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTile(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    Tensor value = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> times,
                             ReadIntegers(context->input(1), "multiples"));
    if (static_cast<int>(times.size()) != value.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'multiples' has ", times.size(), " values for an input of shape ",
          value.shape().ToString()));
    }
    for (int axis = value.rank() - 1; axis >= 0; --axis) {
      if (times[axis] == 1) continue;
      OPTFARM_ASSIGN_OR_RETURN(value, RepeatAxis(value, axis, times[axis]));
    }
    context->SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

}  // namespace

void AddConcatKernels(KernelCatalog* catalog) {
  catalog->Add("Concat", MakeConcat);
  catalog->Add("ConcatV2", MakeConcatV2);
  catalog->Add("Pack", MakePack);
  catalog->Add("Unpack", MakeUnpack);
  catalog->Add("Split", MakeSplit);
  catalog->Add("SplitV", MakeSplitV);
  catalog->Add("Tile", MakeTile);
}

}  // namespace optfarm::runtime
