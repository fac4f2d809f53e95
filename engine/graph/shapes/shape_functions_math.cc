// Shapes of arithmetic, comparison, reduction and random ops.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
absl::Status BroadcastThree(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           BroadcastShapes(c.input(0), c.input(1)));
  OPTFARM_ASSIGN_OR_RETURN(out, BroadcastShapes(out, c.input(2)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The condition is a scalar, a vector along the first axis, or of the shape of
// the two choices.
absl::Status SelectShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           MergeShapes(c.input(1), c.input(2)));
  const PartialShape& condition = c.input(0);
  if (condition.has_rank() && out.has_rank() && condition.rank() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(out, MergeShapes(out, condition));
  } else if (condition.has_rank() && condition.rank() == 1 && out.has_rank() &&
             out.rank() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t first,
                             MergeDims(out.dim(0), condition.dim(0)));
    out.set_dim(0, first);
  } else if (!out.has_rank() && condition.has_rank() && condition.rank() > 1) {
    out = condition;
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status ReductionShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  OPTFARM_RETURN_IF_ERROR(WithRankAtMost(c.input(1), 1).status());
  OPTFARM_ASSIGN_OR_RETURN(const bool keep, c.Bool("keep_dims"));
  const std::optional<std::vector<int64_t>> axes = c.Known(1);
  if (!in.has_rank()) return absl::OkStatus();
  if (!axes.has_value()) {
    if (keep) c.set_output(0, PartialShape::OfRank(in.rank()));
    return absl::OkStatus();
  }
  std::vector<bool> reduced(in.rank(), false);
  for (int64_t axis : *axes) {
    if (axis < -in.rank() || axis >= in.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " is outside of ", in.ToString()));
    }
    reduced[axis < 0 ? axis + in.rank() : axis] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[i]) {
      dims.push_back(in.dim(i));
    } else if (keep) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status ArgMaxShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() <= 1) {
    c.set_output(0, PartialShape::Scalar());
    return absl::OkStatus();
  }
  const std::optional<int64_t> axis = c.KnownScalar(1);
  if (!axis.has_value()) {
    c.set_output(0, PartialShape::OfRank(in.rank() - 1));
    return absl::OkStatus();
  }
  if (*axis < -in.rank() || *axis >= in.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", *axis, " is outside of ", in.ToString()));
  }
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims.erase(dims.begin() + (*axis < 0 ? *axis + in.rank() : *axis));
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status SegmentShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape data,
                           WithRankAtLeast(c.input(0), 1));
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(PartialShape::Vector(kUnknownDim), data.Slice(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status UnsortedSegmentShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count, c.DimFromInput(2));
  const PartialShape& ids = c.input(1);
  if (!ids.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(PartialShape::Vector(count),
                                             c.input(0).Slice(ids.rank())));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) {
    OPTFARM_RETURN_IF_ERROR(WithRank(c.input(i), 0).status());
  }
  const std::optional<int64_t> start = c.KnownScalar(0);
  const std::optional<int64_t> limit = c.KnownScalar(1);
  const std::optional<int64_t> delta = c.KnownScalar(2);
  int64_t size = kUnknownDim;
  if (start.has_value() && limit.has_value() && delta.has_value()) {
    int64_t span = 0;
    if (*delta == 0 || __builtin_sub_overflow(*limit, *start, &span) ||
        span == std::numeric_limits<int64_t>::min() ||
        (span != 0 && (span < 0) != (*delta < 0))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no range goes from ", *start, " to ", *limit, " by ", *delta));
    }
    size = span / *delta + (span % *delta != 0 ? 1 : 0);
  }
  c.set_output(0, PartialShape::Vector(size));
  return absl::OkStatus();
}

absl::Status LinSpaceShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, c.DimFromInput(2));
  c.set_output(0, PartialShape::Vector(size));
  return absl::OkStatus();
}

absl::Status BroadcastArgsShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape a, WithRank(c.input(0), 1));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape b, WithRank(c.input(1), 1));
  const bool known = a.dim(0) != kUnknownDim && b.dim(0) != kUnknownDim;
  c.set_output(0, PartialShape::Vector(known ? std::max(a.dim(0), b.dim(0))
                                             : kUnknownDim));
  return absl::OkStatus();
}

absl::Status BroadcastGradientArgsShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Vector(kUnknownDim));
  c.set_output(1, PartialShape::Vector(kUnknownDim));
  return absl::OkStatus();
}

// A vector as long as a scalar input says.
namespace {

absl::Status CountsShape(ShapeContext& c, int size_input) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, c.DimFromInput(size_input));
  c.set_output(0, PartialShape::Vector(size));
  return absl::OkStatus();
}

}  // namespace

absl::Status BincountShape(ShapeContext& c) { return CountsShape(c, 1); }

absl::Status HistogramShape(ShapeContext& c) { return CountsShape(c, 2); }

absl::Status AccumulateShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(AllInputsAlike(c));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  OPTFARM_ASSIGN_OR_RETURN(shape, MergeShapes(shape, c.output(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status MultinomialShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape logits, WithRank(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t samples, c.DimFromInput(1));
  c.set_output(0, PartialShape::Matrix(logits.dim(0), samples));
  return absl::OkStatus();
}

// A sample of the given shape for every parameter.
absl::Status SamplePerParameterShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape shape, c.ShapeFromInput(0));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(shape, c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
