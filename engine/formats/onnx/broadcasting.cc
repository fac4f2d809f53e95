#include "engine/formats/onnx/broadcasting.h"

#include <cstdint>
#include <vector>

#include "base/status_macros.h"

namespace optfarm::formats {

absl::StatusOr<std::pair<Endpoint, Endpoint>> BroadcastInputs(NodeLowering& n) {
  const Endpoint a = n.input(0);
  const Endpoint b = n.input(1);
  if (n.opset() >= 7 || n.Int("broadcast", 0) == 0 || !n.has_attr("axis")) {
    return std::pair(a, b);
  }
  OPTFARM_ASSIGN_OR_RETURN(const int rank_a, n.Rank(a));
  OPTFARM_ASSIGN_OR_RETURN(const int rank_b, n.Rank(b));
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           NodeLowering::Axis(n.Int("axis", 0), rank_a));
  std::vector<int64_t> behind;
  for (int i = axis + rank_b; i < rank_a; ++i) {
    behind.push_back(rank_b + static_cast<int64_t>(behind.size()));
  }
  return std::pair(a, n.Unsqueeze(b, behind));
}

absl::StatusOr<Endpoint> FlattenTo2d(NodeLowering& n, Endpoint x, int axis) {
  const PartialShape known = n.shape(x);
  const auto before = known.Slice(0, axis).elements();
  const auto behind = known.Slice(axis).elements();
  if (before.has_value() && *before > 0) return n.Reshape(x, {*before, -1});
  if (behind.has_value() && *behind > 0) return n.Reshape(x, {-1, *behind});
  if (before.has_value() && behind.has_value()) {
    return n.Reshape(x, {*before, *behind});
  }
  const Endpoint shape = n.ShapeOf(x);
  const auto product = [&](int64_t begin, int64_t end) {
    const Endpoint part =
        n.Add("StridedSlice",
              {shape, n.Int32s({begin}), n.Int32s({end}), n.Int32s({1})});
    return n.Add("Prod", {part, n.Int32s({0})}, {{"keep_dims", true}});
  };
  const Endpoint dims = n.Add(
      "ConcatV2", {product(0, axis), product(axis, known.rank()), n.Int32(0)});
  return n.Add("Reshape", {x, dims});
}

}  // namespace optfarm::formats
