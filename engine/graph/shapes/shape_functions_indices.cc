// Shapes of ops that look up and write at indices.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
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

}  // namespace optfarm::graph
