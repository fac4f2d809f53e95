// Shapes of ops that make, reshape, cut, join and index tensors.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/shape_context.h"
#include "engine/graph/strided_slice.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::graph {
namespace {

// An axis counted from either end, in 0..rank-1.
absl::StatusOr<int> AxisInRank(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is outside of a shape of rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// --- Sources -----------------------------------------------------------------

absl::Status ConstShape(ShapeContext& c) {
  const tensorflow::AttrValue* value = FindAttr(c.node(), "value");
  if (value == nullptr || !value->has_tensor()) {
    return absl::InvalidArgumentError("it has no value");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape shape,
      PartialShape::FromProto(value->tensor().tensor_shape()));
  if (!shape.is_static()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its value has the shape ", shape.ToString()));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status PlaceholderShape(ShapeContext& c) {
  // A missing shape is an unknown one, also where the signature wants one.
  if (FindAttr(c.node(), "shape") == nullptr) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  // Graphs of old producers write an unknown shape as a scalar.
  const bool old = c.producer() <= 21 && c.node().op() == "Placeholder";
  if (old && shape == PartialShape::Scalar()) return absl::OkStatus();
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ShapeAttribute(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status MergedWithShapeAttribute(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  OPTFARM_ASSIGN_OR_RETURN(shape, MergeShapes(shape, c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status InputsPassThrough(ShapeContext& c) {
  for (int i = 0; i < c.output_count() && i < c.input_count(); ++i) {
    c.set_output(i, c.input(i));
    if (c.input_tensor(i).variable_shape.has_value()) {
      c.set_variable_shape(i, *c.input_tensor(i).variable_shape);
    }
  }
  return absl::OkStatus();
}

// --- About shapes ------------------------------------------------------------

absl::Status ShapeOfInputs(ShapeContext& c) {
  for (int i = 0; i < c.output_count() && i < c.input_count(); ++i) {
    c.set_output(i,
                 PartialShape::Vector(c.input(i).has_rank() ? c.input(i).rank()
                                                            : kUnknownDim));
  }
  return absl::OkStatus();
}

absl::Status SqueezeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                           c.Ints("squeeze_dims"));
  std::vector<bool> squeezed(in.rank(), false);
  for (int64_t axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int i, AxisInRank(axis, in.rank()));
    squeezed[i] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t dim = in.dim(i);
    if (axes.empty()) {
      // Whether an unknown dimension goes cannot be told.
      if (dim == kUnknownDim) return absl::OkStatus();
      if (dim != 1) dims.push_back(dim);
    } else if (!squeezed[i]) {
      dims.push_back(dim);
    } else if (dim != 1 && dim != kUnknownDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot squeeze dimension ", i, " of ", in.ToString()));
    }
  }
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status ExpandDimsShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  const std::optional<int64_t> axis = c.KnownScalar(1);
  if (!axis.has_value()) {
    c.set_output(0, PartialShape::OfRank(in.rank() + 1));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int i, AxisInRank(*axis, in.rank() + 1));
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims.insert(dims.begin() + i, 1);
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status BitcastShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType from, c.Type("T"));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType to, c.Type("type"));
  const int64_t from_bytes = ElementBytes(from);
  const int64_t to_bytes = ElementBytes(to);
  const PartialShape& in = c.input(0);
  if (from_bytes == 0 || to_bytes == 0 || !in.has_rank()) {
    return absl::OkStatus();
  }
  if (from_bytes > to_bytes) {
    OPTFARM_ASSIGN_OR_RETURN(
        PartialShape out,
        ConcatenateShapes(in, PartialShape::Vector(from_bytes / to_bytes)));
    c.set_output(0, std::move(out));
  } else if (from_bytes < to_bytes) {
    OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(in, 1).status());
    OPTFARM_RETURN_IF_ERROR(
        MergeDims(in.dim(-1), to_bytes / from_bytes).status());
    c.set_output(0, in.Slice(0, -1));
  } else {
    c.set_output(0, in);
  }
  return absl::OkStatus();
}

absl::Status BroadcastToShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status EnsuredShape(ShapeContext& c) {
  return MergedWithShapeAttribute(c);
}

// --- Joining and splitting ---------------------------------------------------

absl::Status PackShape(ShapeContext& c) {
  PartialShape one;
  for (int i = 0; i < c.input_count(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(one, MergeShapes(one, c.input(i)));
  }
  if (!one.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const int64_t attr, c.Int("axis"));
  OPTFARM_ASSIGN_OR_RETURN(const int axis, AxisInRank(attr, one.rank() + 1));
  std::vector<int64_t> dims(one.dims().begin(), one.dims().end());
  dims.insert(dims.begin() + axis, c.input_count());
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status UnpackShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const int64_t attr, c.Int("axis"));
  OPTFARM_ASSIGN_OR_RETURN(const int axis, AxisInRank(attr, in.rank()));
  OPTFARM_RETURN_IF_ERROR(MergeDims(in.dim(axis), c.output_count()).status());
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims.erase(dims.begin() + axis);
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape(dims));
  }
  return absl::OkStatus();
}

// Joins inputs begin..end-1 along the axis that input `axis_input` holds.
absl::Status JoinedShape(ShapeContext& c, int begin, int end, int axis_input) {
  OPTFARM_RETURN_IF_ERROR(WithRankAtMost(c.input(axis_input), 1).status());
  // What is known of the rank and, except along the axis, of the dimensions.
  PartialShape ranked;
  for (int i = begin; i < end && !ranked.has_rank(); ++i) {
    ranked = c.input(i);
  }
  if (!ranked.has_rank()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(ranked, 1).status());
  const std::optional<int64_t> axis = c.KnownScalar(axis_input);
  if (!axis.has_value()) {
    c.set_output(0, PartialShape::OfRank(ranked.rank()));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int at, AxisInRank(*axis, ranked.rank()));
  PartialShape out = PartialShape::OfRank(ranked.rank());
  int64_t sum = 0;
  for (int i = begin; i < end; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(PartialShape piece,
                             WithRank(c.input(i), ranked.rank()));
    OPTFARM_ASSIGN_OR_RETURN(sum, AddDims(sum, piece.dim(at)));
    piece.set_dim(at, kUnknownDim);
    OPTFARM_ASSIGN_OR_RETURN(out, MergeShapes(out, piece));
  }
  out.set_dim(at, sum);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status ConcatShape(ShapeContext& c) {
  return JoinedShape(c, 1, c.input_count(), 0);
}

absl::Status ConcatV2Shape(ShapeContext& c) {
  return JoinedShape(c, 0, c.input_count() - 1, c.input_count() - 1);
}

absl::Status ConcatOffsetShape(ShapeContext& c) {
  for (int i = 0; i < c.output_count() && i + 1 < c.input_count(); ++i) {
    c.set_output(i, c.input(i + 1));
  }
  return absl::OkStatus();
}

// All outputs of unknown dimensions, of the input's rank.
void SplitOfUnknownAxis(ShapeContext& c, const PartialShape& in) {
  if (!in.has_rank()) return;
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::OfRank(in.rank()));
  }
}

absl::Status SplitShape(ShapeContext& c) {
  const PartialShape& in = c.input(1);
  const std::optional<int64_t> axis = c.KnownScalar(0);
  if (!axis.has_value() || !in.has_rank()) {
    SplitOfUnknownAxis(c, in);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int at, AxisInRank(*axis, in.rank()));
  PartialShape out = in;
  if (c.output_count() == 0) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size,
                           DivideDimsEvenly(in.dim(at), c.output_count()));
  out.set_dim(at, size);
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, out);
  return absl::OkStatus();
}

absl::Status SplitVShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  const std::optional<int64_t> axis = c.KnownScalar(2);
  if (!axis.has_value() || !in.has_rank()) {
    SplitOfUnknownAxis(c, in);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int at, AxisInRank(*axis, in.rank()));
  const std::optional<std::vector<int64_t>> sizes = c.Known(1);
  if (sizes.has_value() &&
      static_cast<int>(sizes->size()) != c.output_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        sizes->size(), " sizes are given for ", c.output_count(), " outputs"));
  }
  // At most one size may be -1: what the others leave.
  int64_t rest = in.dim(at);
  for (int i = 0; sizes.has_value() && i < c.output_count(); ++i) {
    if ((*sizes)[i] < -1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the size ", (*sizes)[i], " is negative"));
    }
    if ((*sizes)[i] < 0) continue;
    OPTFARM_ASSIGN_OR_RETURN(rest, SubtractDims(rest, (*sizes)[i]));
  }
  for (int i = 0; i < c.output_count(); ++i) {
    PartialShape out = in;
    const int64_t size = sizes.has_value() ? (*sizes)[i] : kUnknownDim;
    out.set_dim(at, sizes.has_value() && size < 0 ? rest : size);
    c.set_output(i, std::move(out));
  }
  return absl::OkStatus();
}

absl::Status DynamicPartitionShape(ShapeContext& c) {
  const PartialShape& partitions = c.input(1);
  if (!partitions.has_rank()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(
      MergeShapes(partitions, c.input(0).Slice(0, partitions.rank())).status());
  OPTFARM_ASSIGN_OR_RETURN(
      const PartialShape out,
      ConcatenateShapes(PartialShape::Vector(kUnknownDim),
                        c.input(0).Slice(partitions.rank())));
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, out);
  return absl::OkStatus();
}

absl::Status DynamicStitchShape(ShapeContext& c) {
  const int n = c.input_count() / 2;
  int64_t largest = -1;
  bool all_known = true;
  PartialShape rest;
  for (int i = 0; i < n; ++i) {
    const std::optional<std::vector<int64_t>> indices = c.Known(i);
    all_known = all_known && indices.has_value();
    for (int64_t index : indices.value_or(std::vector<int64_t>())) {
      largest = std::max(largest, index);
    }
    if (!c.input(i).has_rank()) continue;
    OPTFARM_ASSIGN_OR_RETURN(
        rest, MergeShapes(rest, c.input(i + n).Slice(c.input(i).rank())));
  }
  if (largest == std::numeric_limits<int64_t>::max()) all_known = false;
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(
          PartialShape::Vector(all_known ? largest + 1 : kUnknownDim), rest));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// --- Cutting and padding -----------------------------------------------------

absl::Status SliceShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape rank_carrier,
                           MergeShapes(c.input(1), c.input(2)));
  OPTFARM_ASSIGN_OR_RETURN(rank_carrier, WithRank(rank_carrier, 1));
  PartialShape in = c.input(0);
  if (rank_carrier.dim(0) != kUnknownDim) {
    if (rank_carrier.dim(0) > kMaxRank) {
      return absl::InvalidArgumentError("too many dimensions to slice");
    }
    OPTFARM_ASSIGN_OR_RETURN(
        in, WithRank(in, static_cast<int>(rank_carrier.dim(0))));
  }
  if (!in.has_rank()) return absl::OkStatus();
  PartialShape out = PartialShape::OfRank(in.rank());
  const PartialValue* begin = c.value(1);
  const PartialValue* size = c.value(2);
  for (int i = 0; i < in.rank() && size != nullptr; ++i) {
    const std::optional<int64_t>& wanted = size->elements[i];
    if (!wanted.has_value()) continue;
    if (*wanted >= 0) {
      out.set_dim(i, *wanted);
    } else if (*wanted == -1 && begin != nullptr &&
               begin->elements[i].has_value()) {
      const int64_t from = *begin->elements[i];
      if (from < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("a slice begins at ", from));
      }
      OPTFARM_ASSIGN_OR_RETURN(const int64_t rest,
                               SubtractDims(in.dim(i), from));
      out.set_dim(i, rest);
    } else if (*wanted < -1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a slice has the size ", *wanted));
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status StridedSliceShape(ShapeContext& c) {
  PartialShape bounds;
  for (int i = 1; i <= 3; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(bounds, MergeShapes(bounds, c.input(i)));
  }
  OPTFARM_RETURN_IF_ERROR(WithRank(bounds, 1).status());
  const std::optional<std::vector<int64_t>> strides = c.Known(3);
  if (!c.input(0).has_rank() || !strides.has_value()) return absl::OkStatus();
  StridedSliceSpec spec;
  spec.begin = c.Known(1);
  spec.end = c.Known(2);
  spec.strides = *strides;
  OPTFARM_ASSIGN_OR_RETURN(spec.begin_mask, c.Int("begin_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.end_mask, c.Int("end_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.ellipsis_mask, c.Int("ellipsis_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.new_axis_mask, c.Int("new_axis_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.shrink_axis_mask, c.Int("shrink_axis_mask"));
  OPTFARM_ASSIGN_OR_RETURN(StridedSlicePlan plan,
                           PlanStridedSlice(c.input(0), spec));
  c.set_output(0, std::move(plan.output));
  return absl::OkStatus();
}

// Adds what paddings say, an n x 2 matrix, to the input.
absl::Status PadShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(
      const PartialShape paddings,
      MergeShapes(c.input(1), PartialShape::Matrix(kUnknownDim, 2)));
  PartialShape in = c.input(0);
  if (paddings.dim(0) > kMaxRank) {
    return absl::InvalidArgumentError("too many dimensions to pad");
  }
  if (paddings.dim(0) != kUnknownDim) {
    OPTFARM_ASSIGN_OR_RETURN(in,
                             WithRank(in, static_cast<int>(paddings.dim(0))));
  }
  if (!in.has_rank()) return absl::OkStatus();
  const PartialValue* value = c.value(1);
  if (value == nullptr) {
    c.set_output(0, PartialShape::OfRank(in.rank()));
    return absl::OkStatus();
  }
  for (int i = 0; i < in.rank(); ++i) {
    const std::optional<int64_t>& before = value->elements[2 * i];
    const std::optional<int64_t>& after = value->elements[2 * i + 1];
    if (before.value_or(0) < 0 || after.value_or(0) < 0) {
      return absl::InvalidArgumentError("paddings must not be negative");
    }
    OPTFARM_ASSIGN_OR_RETURN(int64_t dim,
                             AddDims(in.dim(i), before.value_or(kUnknownDim)));
    OPTFARM_ASSIGN_OR_RETURN(dim, AddDims(dim, after.value_or(kUnknownDim)));
    in.set_dim(i, dim);
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

absl::Status TileShape(ShapeContext& c) {
  PartialShape in = c.input(0);
  OPTFARM_ASSIGN_OR_RETURN(PartialShape multiples, c.ShapeFromInput(1));
  if (in.has_rank()) {
    OPTFARM_ASSIGN_OR_RETURN(multiples, WithRank(multiples, in.rank()));
  } else if (multiples.has_rank()) {
    in = PartialShape::OfRank(multiples.rank());
  } else {
    return absl::OkStatus();
  }
  for (int i = 0; i < in.rank(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t dim,
                             MultiplyDims(in.dim(i), multiples.dim(i)));
    in.set_dim(i, dim);
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

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

absl::Status SpaceToBatchNdShape(ShapeContext& c) {
  return BlockShape(c, true, c.value(1), EdgesFor(c, 2, c.value(1)));
}

absl::Status BatchToSpaceNdShape(ShapeContext& c) {
  return BlockShape(c, false, c.value(1), EdgesFor(c, 2, c.value(1)));
}

absl::Status SpaceToBatchShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, c.Int("block_size"));
  const PartialValue block = PartialValue::Vector({size, size});
  return BlockShape(c, c.node().op() == "SpaceToBatch", &block,
                    EdgesFor(c, 1, &block));
}

// SpaceToDepth and DepthToSpace.
absl::Status DepthBlockShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t block, c.Int("block_size"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string format, c.String("data_format"));
  if (format == "NCHW_VECT_C") return absl::OkStatus();
  if (block < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block has the size ", block));
  }
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  const bool to_depth = c.node().op() == "SpaceToDepth";
  const int channels = format == "NCHW" ? 1 : 3;
  const int rows = format == "NCHW" ? 2 : 1;
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

absl::Status ImagePatchesShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const auto sizes, c.Ints("ksizes"));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, c.Ints("strides"));
  OPTFARM_ASSIGN_OR_RETURN(const auto rates, c.Ints("rates"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string padding, c.String("padding"));
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

// --- Indices -----------------------------------------------------------------

absl::Status GatherShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(c.input(0), 1).status());
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(c.input(1), c.input(0).Slice(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status GatherV2Shape(ShapeContext& c) {
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(params, 1).status());
  if (!params.has_rank() || !indices.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(int64_t batch, c.Int("batch_dims"));
  if (batch < 0) batch += indices.rank();
  if (batch < 0 || batch > indices.rank() || batch >= params.rank()) {
    return absl::InvalidArgumentError("batch_dims is out of range");
  }
  const std::optional<int64_t> axis = c.KnownScalar(2);
  if (!axis.has_value()) {
    c.set_output(0, PartialShape::OfRank(static_cast<int>(
                        params.rank() + indices.rank() - 1 - batch)));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int at, AxisInRank(*axis, params.rank()));
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(params.Slice(0, at),
                        indices.Slice(static_cast<int>(batch))));
  OPTFARM_ASSIGN_OR_RETURN(out, ConcatenateShapes(out, params.Slice(at + 1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status GatherNdShape(ShapeContext& c) {
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(indices, 1).status());
  if (!params.has_rank() || !indices.has_rank() ||
      indices.dim(-1) == kUnknownDim) {
    return absl::OkStatus();
  }
  if (indices.dim(-1) > params.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices of length ", indices.dim(-1),
                     " into a tensor of rank ", params.rank()));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(indices.Slice(0, -1),
                        params.Slice(static_cast<int>(indices.dim(-1)))));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status ScatterNdShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(2));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status OneHotShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, c.Int("axis"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t depth, c.DimFromInput(1));
  const PartialShape& indices = c.input(0);
  if (!indices.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const int at, AxisInRank(axis, indices.rank() + 1));
  std::vector<int64_t> dims(indices.dims().begin(), indices.dims().end());
  dims.insert(dims.begin() + at, depth);
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status WhereShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Matrix(kUnknownDim, c.input(0).has_rank()
                                                        ? c.input(0).rank()
                                                        : kUnknownDim));
  return absl::OkStatus();
}

absl::Status UniqueShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Vector(kUnknownDim));
  c.set_output(1, c.input(0));
  if (c.output_count() > 2) c.set_output(2, PartialShape::Vector(kUnknownDim));
  return absl::OkStatus();
}

absl::Status VectorsOfUnknownSize(ShapeContext& c) {
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Vector(kUnknownDim));
  }
  return absl::OkStatus();
}

absl::Status SparseToDenseShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SparseTensorDenseAddShape(ShapeContext& c) {
  c.set_output(0, c.input(3));
  return absl::OkStatus();
}

absl::Status SetOperationShape(ShapeContext& c) {
  const PartialShape& set = c.input(0).has_rank() ? c.input(0) : c.input(1);
  const int64_t rank = set.has_rank() ? set.rank() : kUnknownDim;
  c.set_output(0, PartialShape::Matrix(kUnknownDim, rank));
  c.set_output(1, PartialShape::Vector(kUnknownDim));
  c.set_output(2, PartialShape::Vector(rank));
  return absl::OkStatus();
}

absl::Status CompareAndBitpackShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRankAtLeast(c.input(0), 1));
  if (out.has_rank()) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t last,
                             DivideDimsEvenly(out.dim(-1), 8));
    out.set_dim(-1, last);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SecondInputShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

constexpr ShapeRule kRules[] = {
    {"Const", ConstShape},
    {"ImmutableConst", ShapeAttribute},
    {"GuaranteeConst", UnchangedShape},
    {"Placeholder", PlaceholderShape},
    {"PlaceholderV2", PlaceholderShape},
    {"PlaceholderWithDefault", PlaceholderShape},
    {"ZerosLike", UnchangedShape},
    {"OnesLike", UnchangedShape},
    {"Fill", ShapeInInput0},
    {"Empty", ShapeInInput0},
    {"Identity", InputsPassThrough},
    {"IdentityN", InputsPassThrough},
    {"Snapshot", UnchangedShape},
    {"StopGradient", UnchangedShape},
    {"PreventGradient", UnchangedShape},
    {"DebugGradientIdentity", UnchangedShape},
    {"CheckNumerics", UnchangedShape},
    {"DeepCopy", UnchangedShape},
    {"EnsureShape", EnsuredShape},
    {"Shape", ShapeOfInputs},
    {"ShapeN", ShapeOfInputs},
    {"Rank", ScalarOutputs},
    {"Size", ScalarOutputs},
    {"Reshape", ReshapeShape},
    {"Squeeze", SqueezeShape},
    {"ExpandDims", ExpandDimsShape},
    {"Bitcast", BitcastShape},
    {"BroadcastTo", BroadcastToShape},
    {"Concat", ConcatShape},
    {"ConcatV2", ConcatV2Shape},
    {"ConcatOffset", ConcatOffsetShape},
    {"ParallelConcat", ShapeAttribute},
    {"Pack", PackShape},
    {"Unpack", UnpackShape},
    {"Split", SplitShape},
    {"SplitV", SplitVShape},
    {"DynamicPartition", DynamicPartitionShape},
    {"DynamicStitch", DynamicStitchShape},
    {"ParallelDynamicStitch", DynamicStitchShape},
    {"Slice", SliceShape},
    {"StridedSlice", StridedSliceShape},
    {"StridedSliceGrad", ShapeInInput0},
    {"StridedSliceAssign", UnchangedShape},
    {"TensorStridedSliceUpdate", UnchangedShape},
    {"Pad", PadShape},
    {"PadV2", PadShape},
    {"MirrorPad", PadShape},
    {"Tile", TileShape},
    {"Transpose", TransposeShape},
    {"ConjugateTranspose", TransposeShape},
    {"InvertPermutation", UnchangedShape},
    {"Reverse", UnchangedShape},
    {"ReverseV2", UnchangedShape},
    {"ReverseSequence", UnchangedShape},
    {"Roll", UnchangedShape},
    {"SpaceToBatchND", SpaceToBatchNdShape},
    {"BatchToSpaceND", BatchToSpaceNdShape},
    {"SpaceToBatch", SpaceToBatchShape},
    {"BatchToSpace", SpaceToBatchShape},
    {"SpaceToDepth", DepthBlockShape},
    {"DepthToSpace", DepthBlockShape},
    {"ExtractImagePatches", ImagePatchesShape},
    {"Gather", GatherShape},
    {"GatherV2", GatherV2Shape},
    {"GatherNd", GatherNdShape},
    {"ScatterNd", ScatterNdShape},
    {"ScatterNdNonAliasingAdd", UnchangedShape},
    {"TensorScatterUpdate", UnchangedShape},
    {"TensorScatterAdd", UnchangedShape},
    {"TensorScatterSub", UnchangedShape},
    {"TensorScatterMin", UnchangedShape},
    {"TensorScatterMax", UnchangedShape},
    {"OneHot", OneHotShape},
    {"Where", WhereShape},
    {"Unique", UniqueShape},
    {"UniqueWithCounts", UniqueShape},
    {"ListDiff", VectorsOfUnknownSize},
    {"LowerBound", SecondInputShape},
    {"UpperBound", SecondInputShape},
    {"CompareAndBitpack", CompareAndBitpackShape},
    {"InplaceUpdate", UnchangedShape},
    {"InplaceAdd", UnchangedShape},
    {"InplaceSub", UnchangedShape},
    {"SparseToDense", SparseToDenseShape},
    {"SparseTensorDenseAdd", SparseTensorDenseAddShape},
    {"DenseToDenseSetOperation", SetOperationShape},
};

}  // namespace

absl::Status ReshapeShape(ShapeContext& c) {
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(1));
  const PartialShape& in = c.input(0);
  if (!out.has_rank() || !in.has_rank()) {
    c.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  // Products of the known dimensions, and where the one unknown is; with two
  // unknowns on a side nothing follows.
  struct Side {
    int64_t known = 1;
    int unknown_at = -1;
    bool too_many = false;
  };
  const auto measure = [](const PartialShape& s) -> absl::StatusOr<Side> {
    Side side;
    for (int i = 0; i < s.rank(); ++i) {
      if (s.dim(i) != kUnknownDim) {
        OPTFARM_ASSIGN_OR_RETURN(side.known,
                                 MultiplyDims(side.known, s.dim(i)));
      } else if (side.unknown_at >= 0) {
        side.too_many = true;
      } else {
        side.unknown_at = i;
      }
    }
    return side;
  };
  OPTFARM_ASSIGN_OR_RETURN(const Side from, measure(in));
  OPTFARM_ASSIGN_OR_RETURN(const Side to, measure(out));
  if (!from.too_many && !to.too_many) {
    if (from.unknown_at < 0 && to.unknown_at < 0) {
      if (from.known != to.known) {
        return absl::InvalidArgumentError(absl::StrCat(
            "cannot reshape ", in.ToString(), " (", from.known,
            " elements) to ", out.ToString(), " (", to.known, " elements)"));
      }
    } else if (from.unknown_at < 0 && to.known > 0) {
      OPTFARM_ASSIGN_OR_RETURN(const int64_t missing,
                               DivideDimsEvenly(from.known, to.known));
      out.set_dim(to.unknown_at, missing);
    } else if (from.unknown_at >= 0 && to.unknown_at < 0 && from.known > 0) {
      OPTFARM_RETURN_IF_ERROR(DivideDimsEvenly(to.known, from.known).status());
    }
    // With one unknown on each side and equal products both are the same
    // number, which is still unknown.
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Span<const ShapeRule> ArrayShapeRules() { return kRules; }

}  // namespace optfarm::graph
