// Shapes of ops on quantized tensors: as their real counterparts, with scalar
// ranges beside them.

#include <cstdint>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

// A product with 32-bit values has as many ranges as its weights have.
absl::Status SetRangesOfProduct(ShapeContext& c, absl::string_view weights) {
  OPTFARM_ASSIGN_OR_RETURN(const PortRange min, c.Ports(weights));
  c.set_output(1, c.input(min.begin));
  c.set_output(2, c.input(min.begin));
  return absl::OkStatus();
}

}  // namespace

namespace {

absl::Status JoinedShape(ShapeContext& c, absl::string_view axis_input) {
  OPTFARM_ASSIGN_OR_RETURN(const PortRange values, c.Ports("values"));
  OPTFARM_ASSIGN_OR_RETURN(const PortRange axis_port, c.Ports(axis_input));
  c.set_output(1, PartialShape::Scalar());
  c.set_output(2, PartialShape::Scalar());
  PartialShape ranked;
  for (int i = values.begin; i < values.end && !ranked.has_rank(); ++i) {
    ranked = c.input(i);
  }
  if (!ranked.has_rank()) return absl::OkStatus();
  PartialShape out = PartialShape::OfRank(ranked.rank());
  const std::optional<int64_t> axis = c.KnownScalar(axis_port.begin);
  if (axis.has_value()) {
    if (*axis < -ranked.rank() || *axis >= ranked.rank()) {
      return absl::InvalidArgumentError("the axis is outside of the shape");
    }
    const int at = static_cast<int>(*axis < 0 ? *axis + ranked.rank() : *axis);
    int64_t sum = 0;
    for (int i = values.begin; i < values.end; ++i) {
      OPTFARM_ASSIGN_OR_RETURN(PartialShape piece,
                               WithRank(c.input(i), ranked.rank()));
      OPTFARM_ASSIGN_OR_RETURN(sum, AddDims(sum, piece.dim(at)));
      piece.set_dim(at, kUnknownDim);
      OPTFARM_ASSIGN_OR_RETURN(out, MergeShapes(out, piece));
    }
    out.set_dim(at, sum);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status QuantizedConcatShape(ShapeContext& c) {
  return JoinedShape(c, "concat_dim");
}

absl::Status QuantizedConcatV2Shape(ShapeContext& c) {
  return JoinedShape(c, "axis");
}

absl::Status FakeQuantGradientShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape inputs,
                           MergeShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(inputs));
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, c.input_count() > 2 ? c.input(2) : PartialShape::Scalar());
  }
  return absl::OkStatus();
}

// Ranges are one per channel, or scalars.
absl::Status QuantizeShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, c.Int("axis"));
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, axis == -1 ? PartialShape::Scalar()
                               : PartialShape::Vector(kUnknownDim));
  }
  return absl::OkStatus();
}

absl::Status QuantizedBatchNormShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape t, WithRank(c.input(0), 4));
  int64_t channels = t.dim(3);
  for (int i = 3; i < 15; i += 3) {
    OPTFARM_ASSIGN_OR_RETURN(const PartialShape parameter,
                             WithRank(c.input(i), 1));
    OPTFARM_ASSIGN_OR_RETURN(channels, MergeDims(channels, parameter.dim(0)));
  }
  t.set_dim(3, channels);
  c.set_output(0, std::move(t));
  c.set_output(1, PartialShape::Scalar());
  c.set_output(2, PartialShape::Scalar());
  return absl::OkStatus();
}

absl::Status AccumulatorConvolutionShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(Conv2dShape(c));
  return SetRangesOfProduct(c, "min_filter");
}

absl::Status AccumulatorDepthwiseShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(DepthwiseConv2dShape(c));
  return SetRangesOfProduct(c, "min_filter");
}

absl::Status AccumulatorMatMulShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(MatMulShape(c));
  return SetRangesOfProduct(c, "min_b");
}

}  // namespace optfarm::graph
