// fix_reshapes: where all dimensions but one of a Reshape's result are known,
// gives it that shape as a constant:
//
//   Reshape(x, Pack(StridedSlice(Shape(x), ...), 576))
//   becomes Reshape(x, [-1, 576]), and likewise with -1 in the place of 576
//
// What computed the shape is left for strip_unused_nodes: around the layers of
// a detector that is a good part of the nodes.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/loop_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// -1 stands for the dimension that is not known. nullopt when more are, or when
// it would not follow from the number of elements.
std::optional<std::vector<int32_t>> KnownDims(
    const graph::PartialShape& shape) {
  if (!shape.has_rank()) return std::nullopt;
  std::vector<int32_t> dims;
  int unknown = 0;
  bool has_zero = false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) > std::numeric_limits<int32_t>::max()) return std::nullopt;
    unknown += shape.dim(i) < 0 ? 1 : 0;
    has_zero |= shape.dim(i) == 0;
    dims.push_back(static_cast<int32_t>(std::max<int64_t>(shape.dim(i), -1)));
  }
  if (unknown > 1 || (unknown == 1 && has_zero)) return std::nullopt;
  return dims;
}

// Whether the tensor is a known whole number, or a list of only that.
bool IsNumber(const graph::ShapeMap& shapes, graph::Endpoint tensor,
              int64_t number) {
  const graph::PartialValue* value = shapes.ValueOf(tensor);
  return value != nullptr && value->is_known() && value->elements.size() == 1 &&
         *value->elements[0] == number;
}

// Whether the tensor is Shape(x)[0], the first dimension of `x`.
bool IsFirstDim(const Graph& graph, const graph::ShapeMap& shapes,
                graph::Endpoint tensor, graph::Endpoint x) {
  const graph::Node& slice = graph.node(tensor.node);
  const auto mask = [&](absl::string_view name) {
    return graph::GetIntOr(slice.def(), name, 0).value_or(-1);
  };
  if (slice.op() != "StridedSlice" || slice.inputs().size() != 4 ||
      mask("shrink_axis_mask") != 1 || mask("new_axis_mask") != 0 ||
      mask("ellipsis_mask") != 0) {
    return false;
  }
  const graph::Node& shape = graph.node(slice.inputs()[0].node);
  return graph::HasRole(shape.op(), graph::OpRole::kShape) &&
         shape.inputs().size() == 1 && shape.inputs()[0] == x &&
         IsNumber(shapes, slice.inputs()[1], 0);
}

// Reshape(x, [Shape(x)[0], -1]): all but the first dimension become one, which
// is known when they are, although inference of shapes cannot tell.
graph::PartialShape ShapeOf(const Graph& graph, const graph::ShapeMap& shapes,
                            NodeId id) {
  const graph::PartialShape& known = shapes.Of({id, 0});
  const graph::Node& node = graph.node(id);
  if (!graph::IsReshape(node.op()) || node.inputs().size() != 2) return known;
  const graph::Endpoint x = node.inputs()[0];
  const graph::Node& pack = graph.node(node.inputs()[1].node);
  const graph::PartialShape& in = shapes.Of(x);
  if (pack.op() != "Pack" || pack.inputs().size() != 2 || !in.has_rank() ||
      in.rank() < 2 || !IsNumber(shapes, pack.inputs()[1], -1) ||
      !IsFirstDim(graph, shapes, pack.inputs()[0], x)) {
    return known;
  }
  int64_t rest = 1;
  for (int i = 1; i < in.rank(); ++i) {
    if (in.dim(i) < 0 || __builtin_mul_overflow(rest, in.dim(i), &rest)) {
      return known;
    }
  }
  graph::PartialShape flat = graph::PartialShape::OfRank(2);
  flat.set_dim(0, in.dim(0));
  flat.set_dim(1, rest);
  return flat;
}

class Fixer {
 public:
  explicit Fixer(Graph* graph)
      : graph_(graph),
        in_loop_(NodesInLoops(*graph)),
        candidates_(graph->Ids()) {}

  // The nodes that were there at first.
  const std::vector<NodeId>& candidates() const { return candidates_; }

  // Whether there was something to do.
  bool Fix(NodeId id, const graph::PartialShape& shape) {
    const graph::Node& node = graph_->node(id);
    const auto type =
        graph::GetTypeOr(node.def(), "Tshape", tensorflow::DT_INT32);
    if (!graph::IsReshape(node.op()) || node.inputs().size() != 2 ||
        !type.ok() || *type != tensorflow::DT_INT32 ||
        IsConst(graph_->node(node.inputs()[1].node))) {
      return false;
    }
    const auto dims = KnownDims(shape);
    if (!dims.has_value()) return false;
    graph_->SetInput(id, 1, {ConstantFor(id, *dims), 0});
    return true;
  }

 private:
  // One constant for all that have the same shape, outside of loops; inside it
  // waits for what is reshaped.
  NodeId ConstantFor(NodeId id, const std::vector<int32_t>& dims) {
    const NodeId anchor =
        in_loop_[id] ? graph_->node(id).inputs()[0].node : graph::kNoNode;
    const auto [it, is_new] =
        constants_.emplace(std::pair(dims, anchor), graph::kNoNode);
    if (!is_new) return it->second;
    const Tensor value =
        Tensor::FromValues<int32_t>({static_cast<int64_t>(dims.size())}, dims);
    it->second = graph_->Add(
        MakeConst(absl::StrCat(graph_->node(id).name(), "/fixed"), value), {},
        {}, id);
    if (anchor != graph::kNoNode) graph_->AddControlInput(it->second, anchor);
    return it->second;
  }

  Graph* graph_;
  std::vector<bool> in_loop_;
  std::vector<NodeId> candidates_;
  std::map<std::pair<std::vector<int32_t>, NodeId>, NodeId> constants_;
};

// What is fixed tells more of the shapes behind it.
constexpr int kMostRounds = 4;

absl::Status FixReshapes(Graph* graph, TransformContext* context) {
  Fixer fixer(graph);
  bool has_changed = true;
  for (int round = 0; round < kMostRounds && has_changed; ++round) {
    has_changed = false;
    OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                             InferShapesWithInputs(*graph, *context));
    for (NodeId id : fixer.candidates()) {
      if (!fixer.Fix(id, ShapeOf(*graph, shapes, id))) continue;
      context->CountChange();
      has_changed = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef FixReshapesTransform() {
  return {.name = "fix_reshapes",
          .summary =
              "Gives Reshape nodes a constant shape if all but one dimension "
              "of their output are known.",
          .parameters = {},
          .run = FixReshapes};
}

}  // namespace optfarm::transforms
