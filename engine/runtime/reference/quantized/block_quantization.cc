#include "engine/runtime/reference/quantized/block_quantization.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// UNITS: values; a thread's share is worth at least this many.
constexpr int64_t kGrain = 16384;

absl::StatusOr<Shape> ReadShape(const tensorflow::NodeDef& node) {
  const auto attr = node.attr().find("shape");
  if (attr == node.attr().end() || !attr->second.has_shape() ||
      attr->second.shape().unknown_rank()) {
    return absl::InvalidArgumentError(
        "'shape' must say the shape of the values");
  }
  std::vector<int64_t> dims;
  for (const auto& dim : attr->second.shape().dim()) dims.push_back(dim.size());
  return Shape::FromDims(dims);
}

absl::Status RequireBytes(const Tensor& tensor, absl::string_view name,
                          int64_t values) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(tensor, name, tensorflow::DT_UINT8));
  if (tensor.num_elements() == FourBitBytes(values)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' has ", tensor.num_elements(), " bytes, ",
      FourBitBytes(values), " expected for ", values, " values of 4 bits"));
}

class DequantizeBlocksKernel final : public Kernel {
 public:
  explicit DequantizeBlocksKernel(absl::StatusOr<BlockGrid> grid)
      : grid_of_node_(std::move(grid)) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_RETURN_IF_ERROR(grid_of_node_.status());
    const BlockGrid& grid = *grid_of_node_;
    const Tensor& x = context->input(0);
    const Tensor& scale = context->input(1);
    const Tensor& zero_point = context->input(2);
    OPTFARM_RETURN_IF_ERROR(grid.Check(x, scale, zero_point));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * y,
        context->AllocateOutput(0, tensorflow::DT_FLOAT, grid.shape()));
    const int64_t share = grid.size() * grid.inner();
    if (y->num_elements() == 0) return absl::OkStatus();
    float* const out = y->data<float>();
    context->pool()->ParallelFor(
        grid.outer(), 1 + kGrain / share, [&](int64_t begin, int64_t end) {
          DequantizeOuter(grid, x, scale, zero_point, begin, end,
                          out + begin * share);
        });
    return absl::OkStatus();
  }

 private:
  // Runs tell what is wrong with it.
  const absl::StatusOr<BlockGrid> grid_of_node_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeDequantizeBlocks(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "S", {tensorflow::DT_HALF, tensorflow::DT_FLOAT}));
  return std::make_unique<DequantizeBlocksKernel>(BlockGrid::Of(node));
}

}  // namespace

BlockGrid::BlockGrid(const Shape& shape, int axis, int64_t block)
    : shape_(shape), axis_(axis), block_(block), size_(shape.dim(axis)) {
  for (int i = 0; i < axis; ++i) outer_ *= shape.dim(i);
  for (int i = axis + 1; i < shape.rank(); ++i) inner_ *= shape.dim(i);
  blocks_ = size_ / block_ + (size_ % block_ != 0 ? 1 : 0);
}

absl::StatusOr<BlockGrid> BlockGrid::Of(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, ReadShape(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node, "axis", 0));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t block,
                           graph::GetInt(node, "block_size"));
  if (block < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'block_size' must be at least 1, not ", block));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int place, NormalizeAxis(axis, shape.rank()));
  return BlockGrid(shape, place, block);
}

Shape BlockGrid::ScaleShape() const {
  std::vector<int64_t> dims(shape_.dims().begin(), shape_.dims().end());
  dims[static_cast<size_t>(axis_)] = blocks_;
  // There are no more of them than values.
  return *Shape::FromDims(dims);
}

absl::Status BlockGrid::Check(const Tensor& x, const Tensor& scale,
                              const Tensor& zero_point) const {
  OPTFARM_RETURN_IF_ERROR(RequireBytes(x, "x", shape_.num_elements()));
  if (scale.dtype() != tensorflow::DT_FLOAT &&
      scale.dtype() != tensorflow::DT_HALF) {
    return UnsupportedDtype("S", scale.dtype());
  }
  OPTFARM_RETURN_IF_ERROR(RequireShape(scale, "scale", ScaleShape()));
  if (zero_point.num_elements() == 0) {
    return RequireDtype(zero_point, "zero_point", tensorflow::DT_UINT8);
  }
  return RequireBytes(zero_point, "zero_point", scale_count());
}

float ScaleAt(const Tensor& scale, int64_t i) {
  return scale.dtype() == tensorflow::DT_FLOAT
             ? scale.data<float>()[i]
             : HalfToFloat(static_cast<const uint16_t*>(scale.raw())[i]);
}

void DequantizeOuter(const BlockGrid& grid, const Tensor& x,
                     const Tensor& scale, const Tensor& zero_point,
                     int64_t begin, int64_t end, float* out) {
  const auto* const values = x.data<uint8_t>();
  const int64_t inner = grid.inner();
  const Scratch<float> scales(inner);
  const Scratch<int> zeros(inner);
  for (int64_t o = begin; o < end; ++o) {
    for (int64_t k = 0; k < grid.size(); ++k) {
      if (k % grid.block() == 0) {
        const int64_t first = grid.ScaleOf(o, k, 0);
        for (int64_t i = 0; i < inner; ++i) {
          scales[i] = ScaleAt(scale, first + i);
          zeros[i] = ZeroPointAt(zero_point, first + i);
        }
      }
      const int64_t first = grid.ValueOf(o, k, 0);
      for (int64_t i = 0; i < inner; ++i) {
        const int steps = FourBitsAt(values, first + i) - zeros[i];
        *out++ = static_cast<float>(steps) * scales[i];
      }
    }
  }
}

void AddBlockQuantizationKernels(KernelCatalog* catalog) {
  catalog->Add("DequantizeBlocks", MakeDequantizeBlocks);
}

}  // namespace optfarm::runtime
