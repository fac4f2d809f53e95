// fold_scale_and_shift: takes multiplications and additions per channel that
// follow a convolution or matrix product, however a batch norm was written,
// into its weights and one BiasAdd. Beyond TensorFlow's two folds it knows the
// constant on either side, Sub, RealDiv and AddV2, a bias in between, and goes
// through BatchToSpaceND, Transpose and any concatenation of foldable parts.
//
//   a2 * (a1 * conv(x, w) + b1) + b2  =  conv(x, a2 a1 w) + (a2 b1 + b2)
//
// The outermost operation is the head; below it everything must be read by the
// next one alone, down to the convolutions.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/folding/scale_and_shift_plan.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/channel_affine.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

class Folder {
 public:
  Folder(const TransformContext& context, Graph* graph)
      : context_(context), graph_(graph) {}

  void Apply(const ScaleAndShiftPlan& plan) {
    const NodeId head = plan.removed.front();
    std::vector<NodeId> freed;
    std::vector<NodeId> controls = ControlsOf(plan.removed, &freed);
    NodeId result = plan.top;
    for (const auto& [slot, node] : plan.rewired) {
      graph_->SetInput(slot.node, slot.port, {node, 0});
    }
    for (const ScaledProduct& leaf : plan.products) {
      const NodeId end = Scale(leaf, controls);
      if (leaf.reader == graph::kNoNode) {
        result = end;
      } else {
        graph_->SetInput(leaf.reader, leaf.input, {end, 0});
      }
    }
    const std::string name = graph_->node(head).name();
    for (NodeId control : controls) graph_->AddControlInput(result, control);
    // The operations still read one another, and the lowest what stays.
    graph_->RedirectUses({head, 0}, {result, 0});
    graph_->RedirectControlUses(head, result);
    graph_->RemoveAll(plan.removed);
    graph_->Rename(result, name);
    RemoveUnusedWithInputs(std::move(freed), context_, graph_);
  }

 private:
  // What the nodes and their constants wait for; the constants go into `freed`.
  std::vector<NodeId> ControlsOf(const std::vector<NodeId>& removed,
                                 std::vector<NodeId>* freed) const {
    const absl::flat_hash_set<NodeId> inside(removed.begin(), removed.end());
    std::vector<NodeId> controls;
    const auto add = [&](NodeId node) {
      for (NodeId control : graph_->node(node).control_inputs()) {
        if (!inside.contains(control)) controls.push_back(control);
      }
    };
    for (NodeId id : removed) {
      add(id);
      for (const Endpoint& e : graph_->node(id).inputs()) {
        if (!IsConst(graph_->node(e.node))) continue;
        add(e.node);
        freed->push_back(e.node);
      }
    }
    std::sort(controls.begin(), controls.end());
    controls.erase(std::unique(controls.begin(), controls.end()),
                   controls.end());
    // A constant that is only waited for is no reason to stay.
    controls.erase(std::remove_if(controls.begin(), controls.end(),
                                  [&](NodeId id) {
                                    return std::find(freed->begin(),
                                                     freed->end(),
                                                     id) != freed->end();
                                  }),
                   controls.end());
    return controls;
  }

  // Returns the node that gives the scaled and shifted result.
  NodeId Scale(const ScaledProduct& leaf, const std::vector<NodeId>& controls) {
    const graph::Node& product = graph_->node(leaf.product);
    if (std::any_of(leaf.scale.begin(), leaf.scale.end(),
                    [](float s) { return s != 1.0f; })) {
      ScaleWeights(product, leaf.scale,
                   graph_->mutable_node(product.inputs()[1].node));
    }
    if (std::all_of(leaf.shift.begin(), leaf.shift.end(),
                    [](float s) { return s == 0.0f; })) {
      return leaf.product;
    }
    tensorflow::NodeDef offset =
        MakeConst(absl::StrCat(product.name(), "_bn_offset"),
                  Tensor::FromValues<float>(
                      {static_cast<int64_t>(leaf.shift.size())}, leaf.shift));
    offset.set_device(product.device());
    // In a branch or a loop a constant has to wait to be in it.
    const NodeId offset_id = graph_->Add(std::move(offset), {}, controls);
    tensorflow::NodeDef bias;
    bias.set_name(absl::StrCat(product.name(), "/biasadd"));
    bias.set_op("BiasAdd");
    bias.set_device(product.device());
    graph::SetType(&bias, "T", tensorflow::DT_FLOAT);
    if (!graph::IsFloatMatMul(product.op())) {
      graph::CopyAttr(product.def(), "data_format", &bias);
    }
    return graph_->Add(std::move(bias), {{leaf.product, 0}, {offset_id, 0}});
  }

  const TransformContext& context_;
  Graph* graph_;
};

// Whether one of the operations does more than add, or would but for an error:
// biases alone are no reason to speak.
bool HasScaling(const Graph& graph, const std::vector<NodeId>& operations) {
  return operations.empty() ||
         std::any_of(operations.begin(), operations.end(), [&](NodeId id) {
           const auto affine = ReadAffineNode(graph, id);
           return !affine.ok() ||
                  (affine->has_value() && (*affine)->affine.scales);
         });
}

absl::Status FoldScaleAndShift(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::ExecutionOrder(*graph));
  // Operations whose reason was told with that of one above them. Below a
  // failure the next one is tried, but not for ever along a long chain.
  absl::flat_hash_set<NodeId> told;
  absl::flat_hash_set<NodeId> hopeless;
  int64_t tries = int64_t{16} * graph->node_count();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (!graph->Has(*id) || context->IsInput(graph->node(*id).name()) ||
        hopeless.contains(*id) || (tries <= 0 && told.contains(*id))) {
      continue;
    }
    const absl::StatusOr<std::optional<AffineNode>> affine =
        ReadAffineNode(*graph, *id);
    if (affine.ok() && !affine->has_value()) continue;
    ScaleAndShiftPlanner planner(*graph, *context);
    const absl::StatusOr<ScaleAndShiftPlan> plan = planner.Make(*id);
    if (!plan.ok()) {
      const std::vector<NodeId>& visited = planner.visited();
      if (plan.status().code() == absl::StatusCode::kNotFound) {
        hopeless.insert(visited.begin(), visited.end());
        continue;
      }
      if (!told.contains(*id) && HasScaling(*graph, visited)) {
        context->Skip(graph->node(*id).name(), plan.status().message());
      }
      tries -= static_cast<int64_t>(visited.size());
      told.insert(visited.begin(), visited.end());
      continue;
    }
    // An addition alone is as good where it is.
    if (plan->scalings == 0 &&
        (plan->removed.size() < 2 || plan->products.size() > 1)) {
      continue;
    }
    Folder(*context, graph).Apply(*plan);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef FoldScaleAndShiftTransform() {
  return {.name = "fold_scale_and_shift",
          .summary =
              "Folds per-channel multiplications and additions of constants "
              "after a convolution or matrix multiply into its weights and a "
              "BiasAdd.",
          .parameters = {},
          .run = FoldScaleAndShift};
}

}  // namespace optfarm::transforms
