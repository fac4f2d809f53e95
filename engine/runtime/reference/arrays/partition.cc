// Taking a tensor's slices apart and putting them together by number:
// DynamicPartition, DynamicStitch, ParallelConcat.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Whether the shape of `outer` is how that of `inner` begins.
bool IsPrefix(const Shape& outer, const Shape& inner) {
  return outer.rank() <= inner.rank() &&
         std::equal(outer.dims().begin(), outer.dims().end(),
                    inner.dims().begin());
}

// `first`, then the dimensions of `shape` from `begin` on.
absl::StatusOr<Shape> ShapeOfSlices(int64_t first, const Shape& shape,
                                    int begin) {
  std::vector<int64_t> dims{first};
  for (int i = begin; i < shape.rank(); ++i) dims.push_back(shape.dim(i));
  return Shape::FromDims(dims);
}

// How many slices go into each of `count` partitions.
absl::StatusOr<std::vector<int64_t>> PartitionSizes(
    const std::vector<int64_t>& partitions, int64_t count) {
  std::vector<int64_t> sizes(count, 0);
  for (int64_t p : partitions) {
    if (p < 0 || p >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("partition ", p, " is not within [0, ", count, ")"));
    }
    ++sizes[p];
  }
  return sizes;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDynamicPartition(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& data = context->input(0);
    const Tensor& partitions = context->input(1);
    if (!IsPrefix(partitions.shape(), data.shape())) {
      return absl::InvalidArgumentError(
          absl::StrCat("partitions of shape ", partitions.shape().ToString(),
                       " do not fit data of shape ", data.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                             partitions.AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                             PartitionSizes(numbers, context->num_outputs()));
    std::vector<Tensor*> outputs;
    for (size_t p = 0; p < sizes.size(); ++p) {
      OPTFARM_ASSIGN_OR_RETURN(
          const Shape shape,
          ShapeOfSlices(sizes[p], data.shape(), partitions.rank()));
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out,
          context->AllocateOutput(static_cast<int>(p), data.dtype(), shape));
      outputs.push_back(out);
    }
    const int64_t run =
        DimProduct(data.shape(), partitions.rank(), data.rank());
    return VisitBySize(data.dtype(), "data", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::vector<T*> ends;
      for (Tensor* out : outputs) ends.push_back(out->data<T>());
      const T* from = data.data<T>();
      for (int64_t p : numbers) {
        ends[p] = std::copy_n(from, run, ends[p]);
        from += run;
      }
      return absl::OkStatus();
    });
  });
}

// What DynamicStitch is given: `count` index tensors, then as many of data.
struct Stitch {
  std::vector<std::vector<int64_t>> indices;
  int64_t size = 0;
};

absl::StatusOr<Stitch> ReadStitch(const KernelContext& context) {
  const int count = context.num_inputs() / 2;
  const int rank = context.input(0).rank();
  const Tensor& first = context.input(count);
  Stitch stitch;
  for (int i = 0; i < count; ++i) {
    const Tensor& indices = context.input(i);
    const Tensor& data = context.input(count + i);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(data, "data", first.dtype()));
    const bool fits = IsPrefix(indices.shape(), data.shape()) &&
                      rank <= first.rank() &&
                      std::equal(first.shape().dims().begin() + rank,
                                 first.shape().dims().end(),
                                 data.shape().dims().begin() + indices.rank(),
                                 data.shape().dims().end());
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("indices of shape ", indices.shape().ToString(),
                       " and data of shape ", data.shape().ToString(),
                       " do not fit together"));
    }
    OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> values, indices.AsInt64s());
    for (int64_t value : values) {
      if (value < 0 || value >= (int64_t{1} << 31) - 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", value, " is negative or too large"));
      }
      stitch.size = std::max(stitch.size, value + 1);
    }
    stitch.indices.push_back(std::move(values));
  }
  return stitch;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDynamicStitch(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 2));
    const int count = context->num_inputs() / 2;
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2 * count));
    OPTFARM_ASSIGN_OR_RETURN(const Stitch stitch, ReadStitch(*context));
    const Tensor& first = context->input(count);
    OPTFARM_ASSIGN_OR_RETURN(
        const Shape shape,
        ShapeOfSlices(stitch.size, first.shape(), context->input(0).rank()));
    // A slice that no index names is 0.
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(first.dtype(), shape));
    const int64_t run = DimProduct(shape, 1, shape.rank());
    OPTFARM_RETURN_IF_ERROR(
        VisitBySize(first.dtype(), "data", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          for (int i = 0; i < count; ++i) {
            const T* from = context->input(count + i).data<T>();
            for (int64_t index : stitch.indices[i]) {
              std::copy_n(from, run, out.data<T>() + index * run);
              from += run;
            }
          }
          return absl::OkStatus();
        }));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// Slices of one row each, one below the other.
absl::StatusOr<std::unique_ptr<Kernel>> MakeParallelConcat(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 1));
    const Tensor& first = context->input(0);
    if (first.rank() < 1 || first.dim(0) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("values must have one row each, but the first is of "
                       "shape ",
                       first.shape().ToString()));
    }
    for (int i = 1; i < context->num_inputs(); ++i) {
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(first, context->input(i)));
      OPTFARM_RETURN_IF_ERROR(
          RequireShape(context->input(i), "values", first.shape()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             WithDim(first.shape(), 0, context->num_inputs()));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, first.dtype(), shape));
    return VisitBySize(first.dtype(), "values", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      T* to = out->data<T>();
      for (int i = 0; i < context->num_inputs(); ++i) {
        to = std::copy_n(context->input(i).data<T>(), first.num_elements(), to);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddPartitionKernels(KernelCatalog* catalog) {
  catalog->Add("DynamicPartition", MakeDynamicPartition);
  catalog->Add("DynamicStitch", MakeDynamicStitch);
  catalog->Add("ParallelDynamicStitch", MakeDynamicStitch);
  catalog->Add("ParallelConcat", MakeParallelConcat);
}

}  // namespace optfarm::runtime
