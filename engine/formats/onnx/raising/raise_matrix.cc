// Matrix products.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats {
namespace {

using graph::Endpoint;
using graph::NodeId;

// The constant vector that is added to the product and nowhere else.
struct FoundBias {
  NodeId node = graph::kNoNode;
  Endpoint tensor;
};

FoundBias FindBias(NodeRaiser& n) {
  GraphRaiser& g = n.graph();
  const NodeId reader = g.OnlyReaderOf(n.output());
  const graph::PartialShape& product = n.OutShape();
  if (reader == graph::kNoNode || !product.has_rank()) return {};
  const graph::Node& node = g.graph().node(reader);
  if (!graph::IsSumOrBias(node.op()) || node.inputs().size() != 2) return {};
  const int side = node.inputs()[0] == n.output() ? 1 : 0;
  if (side == 0 && !graph::IsSum(node.op())) return {};
  const Endpoint bias = node.inputs()[static_cast<size_t>(side)];
  const graph::PartialShape& shape = g.shapes().Of(bias);
  if (!g.IsConstantLike(bias) || !shape.is_static() || shape.rank() != 1 ||
      shape.dim(0) != product.dim(product.rank() - 1)) {
    return {};
  }
  return {reader, bias};
}

// With a bias Gemm, which quantizing runtimes know as one layer.
absl::Status MatMul(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool transpose_a,
                           graph::GetBoolOr(n.def(), "transpose_a", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool transpose_b,
                           graph::GetBoolOr(n.def(), "transpose_b", false));
  const FoundBias bias = FindBias(n);
  if (bias.node != graph::kNoNode || transpose_a || transpose_b) {
    std::vector<ValueId> inputs = {n.In(0), n.In(1)};
    if (bias.node != graph::kNoNode)
      inputs.push_back(n.graph().In(bias.tensor));
    std::vector<OnnxAttribute> attributes;
    if (transpose_a) attributes.push_back({"transA", int64_t{1}});
    if (transpose_b) attributes.push_back({"transB", int64_t{1}});
    const ValueId result =
        n.Emit("Gemm", std::move(inputs), std::move(attributes));
    n.Set(result);
    if (bias.node != graph::kNoNode) n.graph().Set({bias.node, 0}, result);
    return absl::OkStatus();
  }
  n.Set(n.Emit("MatMul", {n.In(0), n.In(1)}));
  return absl::OkStatus();
}

// The input with its last two axes swapped where that is asked for.
absl::StatusOr<ValueId> Matrices(NodeRaiser& n, int index, bool swapped) {
  if (!swapped) return n.In(index);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(index));
  if (rank < 2) {
    return absl::InvalidArgumentError("a factor has fewer than two axes");
  }
  AxisOrder order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return n.In(index, order);
}

absl::Status BatchMatMul(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool adj_x,
                           graph::GetBoolOr(n.def(), "adj_x", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool adj_y,
                           graph::GetBoolOr(n.def(), "adj_y", false));
  OPTFARM_ASSIGN_OR_RETURN(const ValueId x, Matrices(n, 0, adj_x));
  OPTFARM_ASSIGN_OR_RETURN(const ValueId y, Matrices(n, 1, adj_y));
  n.Set(n.Emit("MatMul", {x, y}));
  return absl::OkStatus();
}

absl::Status Einsum(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string equation,
                           graph::GetString(n.def(), "equation"));
  std::vector<ValueId> inputs;
  for (int i = 0; i < n.input_count(); ++i) inputs.push_back(n.In(i));
  n.Set(n.Emit("Einsum", std::move(inputs), {{"equation", equation}}));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"MatMul", MatMul},
    {"BatchMatMul", BatchMatMul},
    {"BatchMatMulV2", BatchMatMul},
    {"BatchMatMulV3", BatchMatMul},
    {"Einsum", Einsum},
};

}  // namespace

absl::Span<const RaisingRow> MatrixRaisings() { return kRows; }

}  // namespace optfarm::formats
