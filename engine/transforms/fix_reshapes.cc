// fix_reshapes: where all dimensions but one of a Reshape's result are known,
// gives it that shape as a constant:
//
//   Reshape(x, Pack(StridedSlice(Shape(x), ...), 576))
//   becomes Reshape(x, [-1, 576])
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
#include "engine/transforms/builtin_transforms.h"
#include "engine/transforms/constant_nodes.h"
#include "engine/transforms/loop_nodes.h"
#include "engine/transforms/static_shapes.h"

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

class Fixer {
 public:
  explicit Fixer(Graph* graph)
      : graph_(graph), in_loop_(NodesInLoops(*graph)) {}

  // Whether there was something to do.
  bool Fix(NodeId id, const graph::PartialShape& shape) {
    const graph::Node& node = graph_->node(id);
    const auto type =
        graph::GetTypeOr(node.def(), "Tshape", tensorflow::DT_INT32);
    if (node.op() != "Reshape" || node.inputs().size() != 2 || !type.ok() ||
        *type != tensorflow::DT_INT32 ||
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
  std::map<std::pair<std::vector<int32_t>, NodeId>, NodeId> constants_;
};

absl::Status FixReshapes(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           InferShapesWithInputs(*graph, *context));
  Fixer fixer(graph);
  for (NodeId id : graph->Ids()) {
    if (fixer.Fix(id, shapes.Of({id, 0}))) context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef FixReshapesTransform() {
  return {.name = "fix_reshapes",
          .summary =
              "Gives Reshape nodes a constant shape where all but one "
              "dimension of their result is known.",
          .parameters = {},
          .run = FixReshapes};
}

}  // namespace optfarm::transforms
