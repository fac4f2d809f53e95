// Shapes of ops that move elements about.

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

// SpaceToBatchND adds paddings and divides by the block; BatchToSpaceND
// multiplies by the block and takes crops away.
absl::Status BlockShape(ShapeContext& c, bool to_batch,
                        const PartialValue* block, const PartialValue* edges) {
  if (!c.input(0).has_rank()) return absl::OkStatus();
  PartialShape out = c.input(0);
  if (block == nullptr) {
    c.set_output(0, PartialShape::OfRank(out.rank()));
    return absl::OkStatus();
  }
  const int n = static_cast<int>(block->elements.size());
  OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(out, n + 1).status());
  int64_t block_size = 1;
  for (int i = 0; i < n; ++i) {
    const int64_t size = block->elements[i].value_or(kUnknownDim);
    if (size == 0 || size < kUnknownDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("a block has the size ", size));
    }
    OPTFARM_ASSIGN_OR_RETURN(block_size, MultiplyDims(block_size, size));
    const bool known = edges != nullptr && edges->elements[2 * i].has_value() &&
                       edges->elements[2 * i + 1].has_value();
    int64_t dim = out.dim(i + 1);
    if (!known) {
      out.set_dim(i + 1, kUnknownDim);
      continue;
    }
    const int64_t before = *edges->elements[2 * i];
    const int64_t after = *edges->elements[2 * i + 1];
    if (before < 0 || after < 0) {
      return absl::InvalidArgumentError("paddings must not be negative");
    }
    if (to_batch) {
      OPTFARM_ASSIGN_OR_RETURN(dim, AddDims(dim, before));
      OPTFARM_ASSIGN_OR_RETURN(dim, AddDims(dim, after));
      OPTFARM_ASSIGN_OR_RETURN(dim, DivideDimsEvenly(dim, size));
    } else {
      OPTFARM_ASSIGN_OR_RETURN(dim, MultiplyDims(dim, size));
      OPTFARM_ASSIGN_OR_RETURN(dim, SubtractDims(dim, before));
      OPTFARM_ASSIGN_OR_RETURN(dim, SubtractDims(dim, after));
    }
    out.set_dim(i + 1, dim);
  }
  absl::StatusOr<int64_t> batch =
      to_batch ? MultiplyDims(out.dim(0), block_size)
               : DivideDimsEvenly(out.dim(0), block_size);
  OPTFARM_RETURN_IF_ERROR(batch.status());
  out.set_dim(0, *batch);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The value of input `edges`, if it has the shape that `block` calls for.
const PartialValue* EdgesFor(const ShapeContext& c, int edges,
                             const PartialValue* block) {
  const PartialValue* value = c.value(edges);
  if (value == nullptr || block == nullptr) return nullptr;
  return value->elements.size() == 2 * block->elements.size() ? value : nullptr;
}

}  // namespace

// --- Moving elements ---------------------------------------------------------

absl::Status TransposeShape(ShapeContext& c) {
  PartialShape in = c.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape carrier, WithRank(c.input(1), 1));
  if (!in.has_rank()) {
    if (carrier.dim(0) == kUnknownDim || carrier.dim(0) > kMaxRank) {
      return absl::OkStatus();
    }
    in = PartialShape::OfRank(static_cast<int>(carrier.dim(0)));
  }
  OPTFARM_RETURN_IF_ERROR(MergeDims(carrier.dim(0), in.rank()).status());
  PartialShape out = PartialShape::OfRank(in.rank());
  const PartialValue* perm = c.value(1);
  for (int i = 0; i < in.rank() && perm != nullptr; ++i) {
    if (!perm->elements[i].has_value()) continue;
    OPTFARM_ASSIGN_OR_RETURN(const int from,
                             AxisInRank(*perm->elements[i], in.rank()));
    out.set_dim(i, in.dim(from));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SpaceToBatchNdShape(ShapeContext& c) {
  return BlockShape(c, true, c.value(1), EdgesFor(c, 2, c.value(1)));
}

absl::Status BatchToSpaceNdShape(ShapeContext& c) {
  return BlockShape(c, false, c.value(1), EdgesFor(c, 2, c.value(1)));
}

namespace {

absl::Status SquareBlockShape(ShapeContext& c, bool to_batch) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, c.Int("block_size"));
  const PartialValue block = PartialValue::Vector({size, size});
  return BlockShape(c, to_batch, &block, EdgesFor(c, 1, &block));
}

}  // namespace

absl::Status BatchToSpaceShape(ShapeContext& c) {
  return SquareBlockShape(c, false);
}

absl::Status SpaceToBatchShape(ShapeContext& c) {
  return SquareBlockShape(c, true);
}

// SpaceToDepth and DepthToSpace.
namespace {

absl::Status DepthBlockShape(ShapeContext& c, bool to_depth) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t block, c.Int("block_size"));
  OPTFARM_ASSIGN_OR_RETURN(const DataFormat format, c.ReadDataFormat());
  if (format == DataFormat::kNchwVectC) return absl::OkStatus();
  if (block < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block has the size ", block));
  }
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  const bool is_nchw = format == DataFormat::kNchw;
  const int channels = is_nchw ? 1 : 3;
  const int rows = is_nchw ? 2 : 1;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t area, MultiplyDims(block, block));
  const auto scaled = [&](int axis, int64_t by,
                          bool up) -> absl::StatusOr<int64_t> {
    return up ? MultiplyDims(out.dim(axis), by)
              : DivideDimsEvenly(out.dim(axis), by);
  };
  OPTFARM_ASSIGN_OR_RETURN(const int64_t c_dim,
                           scaled(channels, area, to_depth));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t h_dim, scaled(rows, block, !to_depth));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t w_dim,
                           scaled(rows + 1, block, !to_depth));
  out.set_dim(channels, c_dim);
  out.set_dim(rows, h_dim);
  out.set_dim(rows + 1, w_dim);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status DepthToSpaceShape(ShapeContext& c) {
  return DepthBlockShape(c, false);
}

absl::Status SpaceToDepthShape(ShapeContext& c) {
  return DepthBlockShape(c, true);
}

absl::Status ImagePatchesShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const auto sizes, c.Ints("ksizes"));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, c.Ints("strides"));
  OPTFARM_ASSIGN_OR_RETURN(const auto rates, c.Ints("rates"));
  OPTFARM_ASSIGN_OR_RETURN(const Padding padding, c.ReadPadding());
  if (sizes.size() != 4 || strides.size() != 4 || rates.size() != 4) {
    return absl::InvalidArgumentError("sizes must have 4 entries");
  }
  for (int i = 1; i <= 2; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        const int64_t dim,
        WindowedSize(out.dim(i), {sizes[i], strides[i], rates[i]}, padding));
    out.set_dim(i, dim);
    OPTFARM_ASSIGN_OR_RETURN(const int64_t depth,
                             MultiplyDims(out.dim(3), sizes[i]));
    out.set_dim(3, depth);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
