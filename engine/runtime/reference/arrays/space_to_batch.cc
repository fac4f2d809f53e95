// Moving blocks of space into batch or depth and back: SpaceToBatchND,
// BatchToSpaceND, SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace. Each
// is a reshape, a transpose and a reshape, with padding before or cropping
// after.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/transpose.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// The blocks over dimensions 1..M of an input, and what is added to or taken
// from both ends of each.
struct Blocks {
  std::vector<int64_t> sizes;
  std::vector<int64_t> before;
  std::vector<int64_t> after;

  int count() const { return static_cast<int>(sizes.size()); }
};

// Larger blocks or margins than this fit no image.
constexpr int64_t kMaxBlock = int64_t{1} << 31;

absl::StatusOr<Blocks> ReadBlocks(const Tensor& input, const Tensor& shape,
                                  const Tensor& margins) {
  Blocks blocks;
  OPTFARM_ASSIGN_OR_RETURN(blocks.sizes, ReadIntegers(shape, "block_shape"));
  for (int64_t dim : input.shape().dims()) {
    if (dim > kMaxBlock) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input of shape ", input.shape().ToString(), " is no image"));
    }
  }
  if (blocks.count() >= input.rank() || margins.rank() != 2 ||
      margins.dim(0) != blocks.count() || margins.dim(1) != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input of shape ", input.shape().ToString(), ", ",
                     blocks.count(), " block sizes and margins of shape ",
                     margins.shape().ToString(), " do not fit together"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           margins.AsInt64s());
  for (int i = 0; i < blocks.count(); ++i) {
    const int64_t before = values[2 * i];
    const int64_t after = values[2 * i + 1];
    if (blocks.sizes[i] < 1 || before < 0 || after < 0 ||
        std::max({blocks.sizes[i], before, after}) > kMaxBlock) {
      return absl::InvalidArgumentError(
          absl::StrCat("block size ", blocks.sizes[i], " with margins ", before,
                       " and ", after, " is out of range"));
    }
    blocks.before.push_back(before);
    blocks.after.push_back(after);
  }
  return blocks;
}

// `in` placed at `offsets` (which may be negative: cropped) in a tensor of
// `dims`, the rest zero.
absl::StatusOr<Tensor> Placed(const Tensor& in,
                              const std::vector<int64_t>& offsets,
                              const std::vector<int64_t>& dims) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  if (shape == in.shape()) return in;
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(in.dtype(), shape));
  if (out.num_elements() == 0 || in.num_elements() == 0) return out;
  // Dimensions from `last` on keep their size: they are one run.
  int last = in.rank();
  while (last > 0 && dims[last - 1] == in.dim(last - 1)) --last;
  const int64_t run = DimProduct(in.shape(), last, in.rank());
  const int64_t rows = DimProduct(in.shape(), 0, last);
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(in.dtype(), "input", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        for (int64_t r = 0; r < rows; ++r) {
          int64_t rest = r;
          int64_t at = 0;
          int64_t stride = 1;
          bool is_inside = true;
          for (int i = last - 1; i >= 0; --i) {
            const int64_t index = rest % in.dim(i) + offsets[i];
            rest /= in.dim(i);
            is_inside &= index >= 0 && index < dims[i];
            at += index * stride;
            stride *= dims[i];
          }
          if (!is_inside) continue;
          std::copy_n(in.data<T>() + r * run, run, out.data<T>() + at * run);
        }
        return absl::OkStatus();
      }));
  return out;
}

// Reshape, transpose, reshape. `dims` is the shape in the middle.
absl::StatusOr<Tensor> Rearranged(const Tensor& in,
                                  const std::vector<int64_t>& dims,
                                  const std::vector<int>& permutation,
                                  const std::vector<int64_t>& out_dims,
                                  ThreadPool* pool) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape middle, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(out_dims));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor moved,
                           Transposed(in.Reshaped(middle), permutation, pool));
  return moved.Reshaped(shape);
}

absl::StatusOr<Tensor> SpaceToBatch(const Tensor& input, const Blocks& blocks,
                                    ThreadPool* pool) {
  const int m = blocks.count();
  std::vector<int64_t> offsets(input.rank(), 0);
  std::vector<int64_t> padded(input.shape().dims().begin(),
                              input.shape().dims().end());
  for (int i = 0; i < m; ++i) {
    offsets[i + 1] = blocks.before[i];
    padded[i + 1] += blocks.before[i] + blocks.after[i];
    if (padded[i + 1] % blocks.sizes[i] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "padded dimension ", i + 1, " has size ", padded[i + 1],
          ", which blocks of ", blocks.sizes[i], " do not divide"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor whole, Placed(input, offsets, padded));
  // [batch, h/b, b, w/b, b, rest] -> [b, b, batch, h/b, w/b, rest]
  std::vector<int64_t> middle = {padded[0]};
  std::vector<int64_t> out_dims = {padded[0]};
  std::vector<int> permutation;
  for (int i = 0; i < m; ++i) {
    middle.push_back(padded[i + 1] / blocks.sizes[i]);
    middle.push_back(blocks.sizes[i]);
    permutation.push_back(2 * i + 2);
    if (__builtin_mul_overflow(out_dims[0], blocks.sizes[i], &out_dims[0])) {
      return absl::InvalidArgumentError("the batch would be too large");
    }
    out_dims.push_back(padded[i + 1] / blocks.sizes[i]);
  }
  permutation.push_back(0);
  for (int i = 0; i < m; ++i) permutation.push_back(2 * i + 1);
  for (int i = m + 1; i < input.rank(); ++i) {
    permutation.push_back(static_cast<int>(middle.size()));
    middle.push_back(padded[i]);
    out_dims.push_back(padded[i]);
  }
  return Rearranged(whole, middle, permutation, out_dims, pool);
}

absl::StatusOr<Tensor> BatchToSpace(const Tensor& input, const Blocks& blocks,
                                    ThreadPool* pool) {
  const int m = blocks.count();
  int64_t batch = input.dim(0);
  for (int64_t size : blocks.sizes) {
    if (batch % size != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a batch of ", input.dim(0), " is not divided by the blocks' sizes"));
    }
    batch /= size;
  }
  // [b, b, batch, h, w, rest] -> [batch, h, b, w, b, rest]
  std::vector<int64_t> middle = blocks.sizes;
  middle.push_back(batch);
  std::vector<int64_t> out_dims = {batch};
  std::vector<int> permutation = {m};
  for (int i = 0; i < m; ++i) {
    middle.push_back(input.dim(i + 1));
    permutation.push_back(m + 1 + i);
    permutation.push_back(i);
    int64_t size = 0;
    if (__builtin_mul_overflow(input.dim(i + 1), blocks.sizes[i], &size)) {
      return absl::InvalidArgumentError("the image would be too large");
    }
    out_dims.push_back(size);
  }
  for (int i = m + 1; i < input.rank(); ++i) {
    permutation.push_back(static_cast<int>(middle.size()));
    middle.push_back(input.dim(i));
    out_dims.push_back(input.dim(i));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const Tensor whole,
      Rearranged(input, middle, permutation, out_dims, pool));
  std::vector<int64_t> offsets(input.rank(), 0);
  for (int i = 0; i < m; ++i) {
    offsets[i + 1] = -blocks.before[i];
    out_dims[i + 1] -= blocks.before[i] + blocks.after[i];
  }
  return Placed(whole, offsets, out_dims);
}

using BlockFunction = absl::StatusOr<Tensor> (*)(const Tensor&, const Blocks&,
                                                 ThreadPool*);

template <BlockFunction kFunction>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBlockOp(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        const Blocks blocks,
        ReadBlocks(input, context->input(1), context->input(2)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             kFunction(input, blocks, context->pool()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// The older ops: rank 4, one block size as attribute.
template <BlockFunction kFunction>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSquareBlockOp(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size,
                           graph::GetInt(node, "block_size"));
  return MakeKernel([size](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(input, "input", 4));
    const int64_t sizes[] = {size, size};
    OPTFARM_ASSIGN_OR_RETURN(
        const Blocks blocks,
        ReadBlocks(input, Tensor::FromValues<int64_t>({2}, sizes),
                   context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             kFunction(input, blocks, context->pool()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<Tensor> SpaceToDepth(const Tensor& in, int64_t block,
                                    ThreadPool* pool) {
  const int64_t h = in.dim(1) / block;
  const int64_t w = in.dim(2) / block;
  if (in.dim(1) % block != 0 || in.dim(2) % block != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("an image of shape ", in.shape().ToString(),
                     " is not divided by blocks of ", block));
  }
  return Rearranged(in, {in.dim(0), h, block, w, block, in.dim(3)},
                    {0, 1, 3, 2, 4, 5},
                    {in.dim(0), h, w, block * block * in.dim(3)}, pool);
}

absl::StatusOr<Tensor> DepthToSpace(const Tensor& in, int64_t block,
                                    ThreadPool* pool) {
  const int64_t depth = in.dim(3) / (block * block);
  if (in.dim(3) % (block * block) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a depth of ", in.dim(3), " is not divided by blocks of ",
                     block, " x ", block));
  }
  return Rearranged(in, {in.dim(0), in.dim(1), in.dim(2), block, block, depth},
                    {0, 1, 3, 2, 4, 5},
                    {in.dim(0), in.dim(1) * block, in.dim(2) * block, depth},
                    pool);
}

using DepthFunction = absl::StatusOr<Tensor> (*)(const Tensor&, int64_t,
                                                 ThreadPool*);

template <DepthFunction kFunction>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDepthOp(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t block,
                           graph::GetInt(node, "block_size"));
  if (!graph::IsNhwc(node)) {
    return absl::UnimplementedError(absl::StrCat(
        node.op(), " with data_format '", graph::DataFormatText(node), "'"));
  }
  if (block < 2 || block > (int64_t{1} << 15)) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_size is ", block, ", must be 2 or more"));
  }
  return MakeKernel([block](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(input, "input", 4));
    if (*std::max_element(input.shape().dims().begin(),
                          input.shape().dims().end()) >= kMaxBlock) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input of shape ", input.shape().ToString(), " is no image"));
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             kFunction(input, block, context->pool()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddSpaceToBatchKernels(KernelCatalog* catalog) {
  catalog->Add("SpaceToBatchND", MakeBlockOp<SpaceToBatch>);
  catalog->Add("BatchToSpaceND", MakeBlockOp<BatchToSpace>);
  catalog->Add("SpaceToBatch", MakeSquareBlockOp<SpaceToBatch>);
  catalog->Add("BatchToSpace", MakeSquareBlockOp<BatchToSpace>);
  catalog->Add("SpaceToDepth", MakeDepthOp<SpaceToDepth>);
  catalog->Add("DepthToSpace", MakeDepthOp<DepthToSpace>);
}

}  // namespace optfarm::runtime
