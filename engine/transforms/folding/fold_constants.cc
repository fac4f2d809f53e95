// fold_constants: evaluates what depends on constants alone, puts the results
// in its place, and removes what the outputs then do not need. It also writes
// out default attributes, as importing the graph into TensorFlow does, which
// the folds that follow rely on.
//
// Where TensorFlow fails the whole transform because one node cannot be
// evaluated, ours leaves that node alone and reports it.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_proto.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_folding.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/placeholder_shapes.h"
#include "engine/transforms/nodes/static_shapes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

absl::Status CheckFeedsAndFetches(const TransformContext& context) {
  if (context.outputs().empty()) {
    return absl::InvalidArgumentError(
        "Must specify at least one target to fetch or execute.");
  }
  const absl::Span<const graph::TensorName> inputs = context.inputs();
  for (auto input = inputs.begin(); input != inputs.end(); ++input) {
    if (std::find(inputs.begin(), input, *input) != input) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Endpoint \"", ToString(*input), "\" fed more than once."));
    }
    if (std::find(context.outputs().begin(), context.outputs().end(), *input) !=
        context.outputs().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(*input), " is both fed and fetched."));
    }
  }
  return absl::OkStatus();
}

// Attributes as importing a graph leaves them.
absl::Status NormalizeAttributes(bool clear_output_shapes, Graph* graph) {
  for (NodeId id : graph->Ids()) {
    tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
    if (clear_output_shapes) def->mutable_attr()->erase("_output_shapes");
    if (const tensorflow::OpDef* op_def = graph::FindOpDef(def->op())) {
      OPTFARM_RETURN_IF_ERROR(graph::ApplyDefaultAttributes(*op_def, def));
    }
  }
  return absl::OkStatus();
}

// An optional placeholder that is a declared input is always fed.
void CutOptionalInputs(const TransformContext& context, Graph* graph) {
  for (const graph::TensorName& input : context.inputs()) {
    const NodeId id = graph->Find(input.node);
    if (id == graph::kNoNode ||
        !graph::IsOptionalPlaceholder(graph->node(id).op())) {
      continue;
    }
    graph->mutable_node(id)->mutable_def()->set_op("Placeholder");
    graph->SetInputs(id, {});
    graph->ClearControlInputs(id);
  }
}

// What the outputs need, and the inputs with what they need. Indexed by number.
std::vector<bool> FindNeeded(const TransformContext& context,
                             const Graph& graph) {
  std::vector<NodeId> roots;
  for (const auto& names : {context.outputs(), context.inputs()}) {
    for (const graph::TensorName& name : names) {
      const NodeId id = graph.Find(name.node);
      if (id != graph::kNoNode) roots.push_back(id);
    }
  }
  return graph::ReachableFrom(graph, roots);
}

// Removes what is not needed.
void Prune(const TransformContext& context, Graph* graph) {
  const std::vector<bool> needed = FindNeeded(context, *graph);
  std::vector<NodeId> unused;
  for (NodeId id : graph->Ids()) {
    if (!needed[id]) unused.push_back(id);
  }
  graph->RemoveAll(unused);
}

// A constant tensor that a node reads which is not constant.
struct Boundary {
  Endpoint endpoint;
  // Not set when the tensor is the value of the Const `source`.
  Tensor value;
  std::vector<NodeId> waits_for;
  NodeId source = graph::kNoNode;
};

// The Const whose tensor comes out of `endpoint` as it is, so that it need not
// be decoded and encoded; kNoNode when there is none. Weights are read through
// an Identity in most graphs.
NodeId HandedOn(const Graph& graph, Endpoint endpoint,
                const ConstantAnalysis& analysis) {
  while (endpoint.port == 0 && analysis.IsConstant(endpoint.node)) {
    const graph::Node& node = graph.node(endpoint.node);
    if (IsConst(node)) {
      const tensorflow::AttrValue* dtype = node.FindAttr("dtype");
      const tensorflow::AttrValue* value = node.FindAttr("value");
      const bool is_raw =
          dtype != nullptr && value != nullptr && value->has_tensor() &&
          value->tensor().dtype() == dtype->type() &&
          IsRawTensor(value->tensor()) &&
          graph::ElementCount(value->tensor().tensor_shape()).value_or(1) != 1;
      return is_raw ? endpoint.node : graph::kNoNode;
    }
    if ((!graph::IsIdentity(node.op()) && node.op() != "StopGradient") ||
        node.inputs().size() != 1) {
      break;
    }
    endpoint = node.inputs()[0];
  }
  return graph::kNoNode;
}

class Folder {
 public:
  Folder(TransformContext* context, Graph* graph)
      : context_(context),
        graph_(graph),
        max_bytes_(context->arguments().Int("max_constant_size_in_bytes")) {
    for (std::string& op : context->arguments().Strings("exclude_op")) {
      options_.exclude_ops.insert(std::move(op));
    }
    for (std::string& node : context->arguments().Strings("exclude_node")) {
      options_.exclude_nodes.insert(std::move(node));
    }
    // What is fed is known only at the run.
    for (const graph::TensorName& input : context->inputs()) {
      options_.exclude_nodes.insert(input.node);
    }
  }

  absl::Status Fold() {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                             graph::ExecutionOrder(*graph_));
    OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                             InferShapesWithInputs(*graph_, *context_));
    ExcludeHugeTensors(shapes);
    const std::vector<Boundary> boundaries = FindBoundaries(order, shapes);
    // The order in which TensorFlow leaves the nodes: as they execute, the new
    // constants after them, the inputs last.
    for (NodeId id : order) graph_->MoveToEnd(id);
    for (size_t i = 0; i < boundaries.size(); ++i) Replace(boundaries[i], i);
    FillHandedOn();
    Prune(*context_, graph_);
    for (const graph::TensorName& input : context_->inputs()) {
      const NodeId id = graph_->Find(input.node);
      if (id != graph::kNoNode) graph_->MoveToEnd(id);
    }
    return absl::OkStatus();
  }

 private:
  // A Fill or Tile of a few bytes may ask for more memory than there is; what
  // would be larger than any weights is not evaluated ahead of time.
  void ExcludeHugeTensors(const graph::ShapeMap& shapes) {
    constexpr int64_t kMaxElements = int64_t{1} << 28;
    for (NodeId id : graph_->Ids()) {
      const graph::PartialShape& shape = shapes.Of({id, 0});
      if (!shape.is_static() || IsConst(graph_->node(id)) ||
          shape.elements().value_or(kMaxElements + 1) <= kMaxElements) {
        continue;
      }
      options_.exclude_nodes.insert(graph_->node(id).name());
    }
  }

  std::vector<Boundary> FindBoundaries(const std::vector<NodeId>& order,
                                       const graph::ShapeMap& shapes) {
    ConstantAnalysis analysis(*graph_, order, KnownShapeValues(*graph_, shapes),
                              options_);
    std::vector<Boundary> boundaries;
    for (NodeId id : order) {
      if (!analysis.IsConstant(id) || IsConst(graph_->node(id))) continue;
      for (int port : PortsReadAtRun(id, analysis)) {
        Boundary boundary{.endpoint = {id, port},
                          .value = {},
                          .waits_for = analysis.WaitsFor(id),
                          .source = HandedOn(*graph_, {id, port}, analysis)};
        if (boundary.source != graph::kNoNode &&
            ContentBytes(boundary.source) <= max_bytes_) {
          boundaries.push_back(std::move(boundary));
          continue;
        }
        absl::StatusOr<Tensor> value = analysis.Evaluate({id, port});
        if (!value.ok()) {
          context_->Skip(graph_->node(id).name(), value.status().message());
        } else if (value->TotalBytes() > max_bytes_) {
          context_->Skip(
              graph_->node(id).name(),
              absl::StrCat("its value has ", value->TotalBytes(),
                           " bytes, more than max_constant_size_in_bytes"));
        } else {
          boundary.source = graph::kNoNode;
          boundary.value = *std::move(value);
          boundaries.push_back(std::move(boundary));
        }
      }
    }
    return boundaries;
  }

  std::vector<int> PortsReadAtRun(NodeId id, const ConstantAnalysis& analysis) {
    std::vector<int> ports;
    for (const graph::Use& use : graph_->node(id).uses()) {
      if (!use.is_control() && !analysis.IsConstant(use.consumer)) {
        ports.push_back(use.port);
      }
    }
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
    return ports;
  }

  void Replace(const Boundary& boundary, size_t index) {
    const std::string name =
        absl::StrCat(graph_->node(boundary.endpoint.node).name(), "/_", index,
                     "__cf__", context_->counters()->folded_constants++);
    tensorflow::NodeDef def;
    if (boundary.source == graph::kNoNode) {
      def = MakeReadableConst(name, boundary.value);
    } else {
      def.set_name(name);
      def.set_op("Const");
      graph::CopyAttr(graph_->node(boundary.source).def(), "dtype", &def);
    }
    def.set_device(graph_->node(boundary.endpoint.node).device());
    const NodeId folded = graph_->Add(std::move(def), {}, boundary.waits_for);
    graph_->RedirectUses(boundary.endpoint, {folded, 0});
    if (boundary.source != graph::kNoNode) {
      handed_on_[boundary.source].push_back(folded);
    }
    context_->CountChange();
  }

  int64_t ContentBytes(NodeId id) const {
    return static_cast<int64_t>(
        graph_->node(id).FindAttr("value")->tensor().tensor_content().size());
  }

  // Gives the new constants their tensors: the last one takes what its source
  // does not need any more.
  void FillHandedOn() {
    const std::vector<bool> needed = FindNeeded(*context_, *graph_);
    for (const auto& [source, targets] : handed_on_) {
      tensorflow::TensorProto* tensor = MutableTensor(source);
      for (size_t i = 0; i < targets.size(); ++i) {
        if (i + 1 == targets.size() && !needed[source]) {
          *MutableTensor(targets[i]) = std::move(*tensor);
        } else {
          *MutableTensor(targets[i]) = *tensor;
        }
      }
    }
  }

  tensorflow::TensorProto* MutableTensor(NodeId id) {
    auto* attributes = graph_->mutable_node(id)->mutable_def()->mutable_attr();
    return (*attributes)["value"].mutable_tensor();
  }

  TransformContext* context_;
  Graph* graph_;
  const int64_t max_bytes_;
  ConstantAnalysisOptions options_;
  // New constants without a tensor yet, by the Const that has it.
  std::map<NodeId, std::vector<NodeId>> handed_on_;
};

absl::Status FoldConstants(Graph* graph, TransformContext* context) {
  OPTFARM_RETURN_IF_ERROR(CheckFeedsAndFetches(*context));
  OPTFARM_ASSIGN_OR_RETURN(const PlaceholderShapes shapes,
                           ReadShapes(context->arguments()));
  // A cycle is all that can be wrong further on: the promise of leaving the
  // graph alone on error rests on this.
  OPTFARM_RETURN_IF_ERROR(graph::ExecutionOrder(*graph).status());
  OPTFARM_RETURN_IF_ERROR(graph::DataflowOrder(*graph).status());
  SetShapes(shapes, graph);
  OPTFARM_RETURN_IF_ERROR(NormalizeAttributes(
      context->arguments().Bool("clear_output_shapes"), graph));
  CutOptionalInputs(*context, graph);
  Prune(*context, graph);
  return Folder(context, graph).Fold();
}

}  // namespace

TransformDef FoldConstantsTransform() {
  return {
      .name = "fold_constants",
      .summary =
          "Evaluates nodes that only depend on constants and replaces them "
          "with the results.",
      .parameters =
          {{.name = "clear_output_shapes",
            .type = ParameterType::kBool,
            .help = "Removes the attribute _output_shapes, which folding makes "
                    "stale.",
            .default_value = "true"},
           {.name = "exclude_op",
            .help = "Op whose nodes are not evaluated.",
            .repeated = true},
           {.name = "exclude_node",
            .help = "Name of a node that is not evaluated.",
            .repeated = true},
           {.name = "max_constant_size_in_bytes",
            .type = ParameterType::kInt,
            .help = "Results with more bytes are not stored in the graph.",
            .default_value = "10485760"},
           {.name = "shape",
            .type = ParameterType::kShape,
            .help = "Shape to give all placeholders first, as in TensorFlow "
                    "1.3."},
           {.name = "name",
            .help = "A placeholder with its own shape, given by the "
                    "shape_for_name at the same position.",
            .repeated = true},
           {.name = "shape_for_name",
            .type = ParameterType::kShape,
            .help = "Shape of the placeholder at the same position.",
            .repeated = true},
           {.name = "type",
            .type = ParameterType::kType,
            .help = "Accepted for TensorFlow 1.3's command lines; no effect."},
           {.name = "type_for_name",
            .type = ParameterType::kType,
            .help = "As type.",
            .repeated = true}},
      .run = FoldConstants,
      .is_all_or_nothing = true};
}

}  // namespace optfarm::transforms
