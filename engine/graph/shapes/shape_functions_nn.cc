// Shapes of normalization, activation, loss, recurrent and training ops.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"
#include "engine/graph/shapes/shape_layout.h"

namespace optfarm::graph {
namespace {

// One step of a recurrent cell: every output is [batch, cell size]. The cell's
// size is that of the previous state.
absl::Status CellShape(ShapeContext& c, int x_input, int state_input) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape x, WithRank(c.input(x_input), 2));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape state,
                           WithRank(c.input(state_input), 2));
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Matrix(x.dim(0), state.dim(1)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BiasAddGradShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const DataFormat format, c.ReadDataFormat());
  const PartialShape& in = c.input(0);
  OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(in, 2).status());
  const int axis = format == DataFormat::kNchw ? 1 : -1;
  c.set_output(
      0, PartialShape::Vector(in.has_rank() ? in.dim(axis) : kUnknownDim));
  return absl::OkStatus();
}

absl::Status FusedBatchNormShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const DataFormat format, c.ReadDataFormat());
  const bool is_volume =
      format == DataFormat::kNdhwc || format == DataFormat::kNcdhw;
  const int rank = is_volume ? 5 : 4;
  OPTFARM_ASSIGN_OR_RETURN(PartialShape x, WithRank(c.input(0), rank));
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(c, rank));
  OPTFARM_ASSIGN_OR_RETURN(const bool training, c.Bool("is_training"));
  int64_t channels = x.dim(layout.channels);
  // While training, mean and variance come in empty.
  for (int i = 1; i < (training ? 3 : 5); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const PartialShape parameter,
                             WithRank(c.input(i), 1));
    OPTFARM_ASSIGN_OR_RETURN(channels, MergeDims(channels, parameter.dim(0)));
  }
  x.set_dim(layout.channels, channels);
  c.set_output(0, std::move(x));
  for (int i = 1; i < c.output_count() && i < 5; ++i) {
    c.set_output(i, PartialShape::Vector(channels));
  }
  return absl::OkStatus();
}

absl::Status FusedBatchNormGradShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape x, MergeShapes(c.input(0), c.input(1)));
  OPTFARM_ASSIGN_OR_RETURN(x, WithRank(x, 4));
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(c, 4));
  c.set_output(0, x);
  for (int i = 1; i < 3; ++i) {
    c.set_output(i, PartialShape::Vector(x.dim(layout.channels)));
  }
  return absl::OkStatus();
}

// t, then four vectors as long as t's last axis.
absl::Status GlobalBatchNormShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape t, WithRank(c.input(0), 4));
  int64_t channels = t.dim(3);
  for (int i = 1; i < 5; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const PartialShape parameter,
                             WithRank(c.input(i), 1));
    OPTFARM_ASSIGN_OR_RETURN(channels, MergeDims(channels, parameter.dim(0)));
  }
  t.set_dim(3, channels);
  c.set_output(0, std::move(t));
  return absl::OkStatus();
}

absl::Status AtLeastVector(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRankAtLeast(c.input(0), 1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Rank4Unchanged(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status FirstTwoAlike(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           MergeShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

namespace {

absl::Status LossShape(ShapeContext& c, bool sparse) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape features, WithRank(c.input(0), 2));
  int64_t batch = features.dim(0);
  if (sparse) {
    OPTFARM_ASSIGN_OR_RETURN(const PartialShape labels,
                             WithRank(c.input(1), 1));
    OPTFARM_ASSIGN_OR_RETURN(batch, MergeDims(batch, labels.dim(0)));
    features.set_dim(0, batch);
  } else {
    OPTFARM_ASSIGN_OR_RETURN(features, BroadcastShapes(features, c.input(1)));
    if (features.has_rank()) batch = features.dim(0);
  }
  c.set_output(0, PartialShape::Vector(batch));
  c.set_output(1, std::move(features));
  return absl::OkStatus();
}

}  // namespace

absl::Status SoftmaxLossShape(ShapeContext& c) { return LossShape(c, false); }

absl::Status SparseSoftmaxLossShape(ShapeContext& c) {
  return LossShape(c, true);
}

absl::Status InTopKShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape predictions,
                           WithRank(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape targets, WithRank(c.input(1), 1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch,
                           MergeDims(predictions.dim(0), targets.dim(0)));
  c.set_output(0, PartialShape::Vector(batch));
  return absl::OkStatus();
}

absl::Status TopKShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRankAtLeast(c.input(0), 1));
  int64_t k = kUnknownDim;
  if (c.input_count() == 1) {
    OPTFARM_ASSIGN_OR_RETURN(k, c.Int("k"));
    if (k < 0) return absl::InvalidArgumentError("k is negative");
  } else {
    OPTFARM_ASSIGN_OR_RETURN(k, c.DimFromInput(1));
  }
  if (!out.has_rank()) return absl::OkStatus();
  if (k != kUnknownDim && out.dim(-1) != kUnknownDim && out.dim(-1) < k) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", k, " largest of ", out.dim(-1), " are wanted"));
  }
  out.set_dim(-1, k);
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return absl::OkStatus();
}

absl::Status NthElementShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape in, WithRankAtLeast(c.input(0), 1));
  c.set_output(0, in.Slice(0, -1));
  return absl::OkStatus();
}

absl::Status GruBlockCellShape(ShapeContext& c) { return CellShape(c, 0, 1); }
absl::Status LstmBlockCellShape(ShapeContext& c) { return CellShape(c, 0, 1); }

absl::Status BlockLstmShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape x, WithRank(c.input(1), 3));
  // The last input is the bias of the four gates.
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape bias, WithRank(c.input(8), 1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t cell,
                           DivideDimsEvenly(bias.dim(0), 4));
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape({x.dim(0), x.dim(1), cell}));
  }
  return absl::OkStatus();
}

// Steps of optimizers give the variable back.
absl::Status ApplyShape(ShapeContext& c) {
  if (c.output_count() > 0) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

absl::Status BiasAddShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const DataFormat format, c.ReadDataFormat());
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRankAtLeast(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape bias, WithRank(c.input(1), 1));
  if (out.has_rank()) {
    const int axis = format == DataFormat::kNchw ? 1 : -1;
    OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                             MergeDims(out.dim(axis), bias.dim(0)));
    out.set_dim(axis, channels);
  }
  return SetWithScalars(c, std::move(out));
}

}  // namespace optfarm::graph
