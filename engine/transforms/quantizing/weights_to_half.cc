// weights_to_half: stores large float constants as 16-bit floats, followed by a
// Cast under the old name. The graph computes in float as before; the file has
// half its size. A value changes by at most 2^-11 of itself (formula 21 of
// docs/quantization.md).

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/half.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// The largest number of 16-bit floats.
constexpr float kMostHalf = 65504.0f;

// ERRORS: why the values cannot be stored so.
absl::StatusOr<Tensor> ToHalf(const Tensor& values) {
  for (const float value : values.flat<float>()) {
    // NaN fails too.
    if (!(std::abs(value) <= kMostHalf)) {
      return absl::FailedPreconditionError(
          absl::StrCat("it holds ", value, ", which no 16-bit float can be"));
    }
  }
  return runtime::FloatAsHalf(values, tensorflow::DT_HALF);
}

// The new Const waits for what the old one waited for, so that it runs in the
// same branch or loop.
void ReplaceByCast(NodeId id, const Tensor& halves, Graph* graph) {
  const std::vector<NodeId> controls(graph->node(id).control_inputs().begin(),
                                     graph->node(id).control_inputs().end());
  tensorflow::NodeDef constant =
      MakeConst(absl::StrCat(graph->node(id).name(), "_half_const"), halves);
  constant.set_device(graph->node(id).device());
  const NodeId stored = graph->Add(std::move(constant), {}, controls, id);
  tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
  def->set_op("Cast");
  def->clear_attr();
  graph::SetType(def, "SrcT", tensorflow::DT_HALF);
  graph::SetType(def, "DstT", tensorflow::DT_FLOAT);
  graph->ClearControlInputs(id);
  graph->SetInputs(id, {{stored, 0}});
}

absl::Status WeightsToHalf(Graph* graph, TransformContext* context) {
  const int64_t minimum = context->arguments().Int("minimum_size");
  const std::vector<std::string> nodes =
      context->arguments().Strings("exclude_node");
  const absl::flat_hash_set<std::string> excluded(nodes.begin(), nodes.end());
  for (const NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!IsConst(node) || excluded.contains(node.name())) continue;
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                             graph::GetTensor(node.def(), "value"));
    if (proto->dtype() != tensorflow::DT_FLOAT) continue;
    OPTFARM_ASSIGN_OR_RETURN(const Tensor values, ConstValue(node));
    if (values.num_elements() < std::max<int64_t>(minimum, 1)) continue;
    const absl::StatusOr<Tensor> halves = ToHalf(values);
    if (!halves.ok()) {
      context->Skip(node.name(), halves.status().message());
      continue;
    }
    ReplaceByCast(id, *halves, graph);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef WeightsToHalfTransform() {
  return {
      .name = "weights_to_half",
      .summary =
          "Stores large float constants as 16-bit floats, half their "
          "size; the graph still computes in float.",
      .parameters = {{.name = "minimum_size",
                      .type = ParameterType::kInt,
                      .help = "Constants with fewer elements are not changed.",
                      .default_value = "1024"},
                     {.name = "exclude_node",
                      .help = "Name of a constant that is not changed.",
                      .repeated = true}},
      .run = WeightsToHalf};
}

}  // namespace optfarm::transforms
