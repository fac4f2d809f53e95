// Shapes of ops that ONNX or TensorFlow Lite have and TensorFlow has not.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {

absl::Status LayerNormShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  const PartialShape& x = c.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, c.Int("axis"));
  if (!x.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const int first, AxisInRank(axis, x.rank()));
  PartialShape statistics = x;
  for (int i = first; i < x.rank(); ++i) statistics.set_dim(i, 1);
  c.set_output(1, statistics);
  c.set_output(2, std::move(statistics));
  return absl::OkStatus();
}

absl::Status SameRankShape(ShapeContext& c) {
  if (c.input(0).has_rank()) {
    c.set_output(0, PartialShape::OfRank(c.input(0).rank()));
  }
  return absl::OkStatus();
}

absl::Status SliceAxesShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  if (!x.has_rank()) return absl::OkStatus();
  const auto axes = c.Known(3);
  if (!axes.has_value() || axes->empty()) return SameRankShape(c);
  PartialShape out = x;
  for (int64_t value : *axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, AxisInRank(value, x.rank()));
    out.set_dim(axis, kUnknownDim);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SqueezeAxesShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  const auto axes = c.Known(1);
  if (!x.has_rank() || !axes.has_value() || axes->empty()) {
    return absl::OkStatus();
  }
  std::vector<bool> goes(x.rank(), false);
  for (int64_t value : *axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, AxisInRank(value, x.rank()));
    goes[axis] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!goes[i]) dims.push_back(x.dim(i));
  }
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status UnsqueezeAxesShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  const auto count = c.input(1).elements();
  if (!x.has_rank() || !count.has_value() || *count > kMaxRank - x.rank()) {
    return absl::OkStatus();
  }
  const int rank = x.rank() + static_cast<int>(*count);
  const auto axes = c.Known(1);
  if (!axes.has_value()) {
    c.set_output(0, PartialShape::OfRank(rank));
    return absl::OkStatus();
  }
  std::vector<bool> is_new(rank, false);
  for (int64_t value : *axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, AxisInRank(value, rank));
    if (is_new[axis]) return absl::OkStatus();
    is_new[axis] = true;
  }
  std::vector<int64_t> dims;
  int next = 0;
  for (int i = 0; i < rank; ++i) dims.push_back(is_new[i] ? 1 : x.dim(next++));
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status ReshapeCopyShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const bool allow_zero, c.Bool("allow_zero"));
  const PartialValue* value = c.value(1);
  if (value == nullptr) {
    const PartialShape& length = c.input(1);
    const bool is_vector = length.has_rank() && length.rank() == 1;
    if (is_vector && length.dim(0) >= 0 && length.dim(0) <= kMaxRank) {
      c.set_output(0, PartialShape::OfRank(static_cast<int>(length.dim(0))));
    }
    return absl::OkStatus();
  }
  std::optional<std::vector<int64_t>> dims = c.Known(1);
  if (!dims.has_value() || dims->size() > kMaxRank) return absl::OkStatus();
  int64_t known = 1;
  int free = -1;
  for (size_t i = 0; i < dims->size(); ++i) {
    int64_t& dim = (*dims)[i];
    const int at = static_cast<int>(i);
    if (dim == -1) {
      free = at;
      continue;
    }
    if (dim == 0 && !allow_zero) {
      dim = x.has_rank() && at < x.rank() ? x.dim(at) : kUnknownDim;
    }
    if (dim < 0 || __builtin_mul_overflow(known, dim, &known)) known = -1;
    if (known < 0) known = 0;
  }
  for (int64_t& dim : *dims) dim = std::max(dim, kUnknownDim);
  const std::optional<int64_t> elements = x.elements();
  if (free >= 0 && known > 0 && elements.has_value()) {
    (*dims)[free] = *elements / known;
  }
  c.set_output(0, PartialShape(*std::move(dims)));
  return absl::OkStatus();
}

absl::Status GridSampleShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  const PartialShape& grid = c.input(1);
  if (!x.has_rank() || !grid.has_rank() || x.rank() < 3 ||
      grid.rank() != x.rank()) {
    return absl::OkStatus();
  }
  std::vector<int64_t> dims = {x.dim(0), x.dim(1)};
  for (int i = 1; i + 1 < grid.rank(); ++i) dims.push_back(grid.dim(i));
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status AttentionShape(ShapeContext& c) {
  const PartialShape& query = c.input(0);
  const PartialShape& value = c.input(2);
  if (!query.has_rank() || (query.rank() != 3 && query.rank() != 4)) {
    return absl::OkStatus();
  }
  PartialShape out = query;
  int64_t last = kUnknownDim;
  if (value.has_rank() && value.rank() == 4) last = value.dim(3);
  if (query.rank() == 3) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t heads, c.Int("query_heads"));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t key_heads, c.Int("key_heads"));
    if (value.has_rank() && value.rank() == 3 && value.dim(2) >= 0 &&
        key_heads > 0 && heads > 0 && heads < (int64_t{1} << 31)) {
      const int64_t size = value.dim(2) / key_heads;
      if (size < (int64_t{1} << 31)) last = size * heads;
    }
  }
  out.set_dim(out.rank() - 1, last);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
