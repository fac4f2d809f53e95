// Shapes of ops that join, split, cut and pad tensors.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"
#include "engine/graph/strided_slice.h"

namespace optfarm::graph {
namespace {

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

// All outputs of unknown dimensions, of the input's rank.
void SplitOfUnknownAxis(ShapeContext& c, const PartialShape& in) {
  if (!in.has_rank()) return;
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::OfRank(in.rank()));
  }
}

}  // namespace

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

// What is added to a dimension is there to be mirrored.
absl::Status MirrorPadShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(PadShape(c));
  OPTFARM_ASSIGN_OR_RETURN(const std::string mode, c.String("mode"));
  const PartialShape& in = c.input(0);
  const PartialValue* value = c.value(1);
  if (!in.has_rank() || value == nullptr) return absl::OkStatus();
  for (int i = 0; i < in.rank(); ++i) {
    if (in.dim(i) == kUnknownDim) continue;
    const int64_t most = mode == "REFLECT" ? in.dim(i) - 1 : in.dim(i);
    for (const int side : {2 * i, 2 * i + 1}) {
      const int64_t more =
          value->elements[static_cast<size_t>(side)].value_or(0);
      // Nothing is mirrored where nothing is added.
      if (more > std::max<int64_t>(most, 0)) {
        return absl::InvalidArgumentError(
            absl::StrCat("dimension ", i, " of size ", in.dim(i),
                         " cannot be mirrored by ", more, " elements"));
      }
    }
  }
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

}  // namespace optfarm::graph
