// sparsify_gather: replaces the lookup of rows in a large column of weights, of
// which most are (nearly) zero, by a hash table of the others. A linear model
// over many words or ids becomes as small as its weights that matter.
//
// The tables are filled by the nodes that `group_init_node` waits for: it has
// to be run once before the graph is.

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_proto.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/loop_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/nodes/saved_variables.h"
#include "engine/transforms/nodes/unused_nodes.h"
#include "engine/transforms/nodes/weight_leftovers.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// Smaller weights count as zero.
constexpr float kLeastWeight = 1e-5f;

// The rows of a column that are not zero.
struct SparseColumn {
  std::vector<int64_t> indices;
  std::vector<float> values;
};

SparseColumn MakeSparse(absl::Span<const float> weights) {
  SparseColumn column;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::abs(weights[i]) < kLeastWeight) continue;
    column.indices.push_back(static_cast<int64_t>(i));
    column.values.push_back(weights[i]);
  }
  // A table cannot be empty.
  if (column.indices.empty()) return {{0}, {0}};
  return column;
}

class GatherSparsifier {
 public:
  GatherSparsifier(TransformContext* context, Graph* graph)
      : context_(context),
        graph_(graph),
        group_name_(context->arguments().String("group_init_node")),
        checkpoint_(context->arguments().String("input_checkpoint")),
        in_loop_(NodesInLoops(*graph)) {}

  absl::Status Run() {
    for (const char* gather : {"Gather", "GatherV2"}) {
      std::vector<Pattern> inputs = {
          Inner("Identity", "identity",
                {Leaf("Const|Variable|VariableV2", "weights")}),
          Leaf("*", "ids")};
      if (absl::string_view(gather) == "GatherV2") {
        inputs.push_back(Leaf("Const", "axis"));
      }
      OPTFARM_RETURN_IF_ERROR(RewriteMatches(
          graph_, Inner(gather, "gather", std::move(inputs)),
          [&](const Match& match) {
            const absl::Status done = Sparsify(match);
            if (!done.ok()) {
              context_->Skip(graph_->node(match["gather"]).name(),
                             done.message());
            }
            return absl::OkStatus();
          }));
    }
    for (NodeId weights : replaced_) {
      if (const auto obstacle = RemoveWeights(weights, *context_, graph_)) {
        context_->Skip(graph_->node(weights).name(), *obstacle);
      }
    }
    if (!tables_.empty()) {
      context_->Warn(absl::StrCat("run '", group_name_,
                                  "' once, which fills the tables, before the "
                                  "graph is run"));
    }
    return absl::OkStatus();
  }

 private:
  // ERRORS: why the match stays as it is.
  absl::Status Sparsify(const Match& match) {
    const NodeId gather = match["gather"];
    OPTFARM_RETURN_IF_ERROR(CheckAxis(gather));
    if (in_loop_[gather]) {
      return absl::FailedPreconditionError("it runs inside a loop");
    }
    if (HasOtherOutputsRead(graph_->node(gather)) ||
        context_->IsInput(graph_->node(gather).name())) {
      return absl::FailedPreconditionError("its output is fed or malformed");
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const tensorflow::DataType ids,
        graph::GetType(graph_->node(gather).def(), "Tindices"));
    if (ids != tensorflow::DT_INT32 && ids != tensorflow::DT_INT64) {
      return absl::FailedPreconditionError(
          absl::StrCat("its ids are ", graph::DataTypeName(ids)));
    }
    OPTFARM_ASSIGN_OR_RETURN(const NodeId table, TableOf(match["weights"]));
    Lookup(gather, table, ids);
    RemoveUnused({match["identity"]}, *context_, graph_);
    context_->CountChange();
    return absl::OkStatus();
  }

  absl::Status CheckAxis(NodeId gather) const {
    const graph::Node& node = graph_->node(gather);
    if (node.inputs().size() == 2) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(
        const tensorflow::TensorProto* axis,
        graph::GetTensor(graph_->node(node.inputs()[2].node).def(), "value"));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                             graph::GetIntOr(node.def(), "batch_dims", 0));
    const auto value = graph::ReadIntegers(*axis, 1);
    if (!value.has_value() || value->size() != 1 || value->front() != 0 ||
        batch_dims != 0) {
      return absl::FailedPreconditionError(
          "it does not look up rows: its axis is not 0");
    }
    return absl::OkStatus();
  }

  // The table for these weights, one for all that look up in them.
  absl::StatusOr<NodeId> TableOf(NodeId weights) {
    if (const auto made = tables_.find(weights); made != tables_.end()) {
      return made->second;
    }
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ValueOf(weights));
    if (value.dtype() != tensorflow::DT_FLOAT || value.rank() != 2 ||
        value.dim(1) != 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("the weights '", graph_->node(weights).name(), "' are ",
                       graph::DataTypeName(value.dtype()), " ",
                       value.shape().ToString(), ", not one column of float"));
    }
    const NodeId table = AddTable(weights, MakeSparse(value.flat<float>()));
    tables_[weights] = table;
    replaced_.push_back(weights);
    return table;
  }

  absl::StatusOr<Tensor> ValueOf(NodeId weights) {
    const graph::Node& node = graph_->node(weights);
    if (IsConst(node)) return ConstValue(node);
    if (checkpoint_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the weights '", node.name(),
          "' are a variable; give input_checkpoint, or freeze the graph"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const SavedAs saved,
                             FindSavedName(*graph_, weights));
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto proto,
                             context_->ReadVariable(checkpoint_, saved.name));
    OPTFARM_ASSIGN_OR_RETURN(const Tensor whole, Tensor::FromProto(proto));
    return PartOf(whole, saved.slice);
  }

  // The rows of a partitioned column that the variable holds.
  static absl::StatusOr<Tensor> PartOf(const Tensor& whole,
                                       absl::string_view slice) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<SliceRange> ranges,
                             ParseSlice(slice));
    if (ranges.empty()) return whole;
    if (whole.dtype() != tensorflow::DT_FLOAT || whole.rank() != 2 ||
        whole.dim(1) != 1 || ranges.size() != 2 || ranges[1].length != 1 ||
        ranges[0].begin + ranges[0].length > whole.dim(0)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "'", slice, "' is no part of a column ", whole.shape().ToString()));
    }
    return Tensor::FromValues<float>(
        {ranges[0].length, 1},
        whole.flat<float>().subspan(ranges[0].begin, ranges[0].length));
  }

  NodeId AddTable(NodeId weights, const SparseColumn& column) {
    const graph::Node& node = graph_->node(weights);
    const auto count = static_cast<int64_t>(column.indices.size());
    const auto add = [&](absl::string_view name, tensorflow::NodeDef def,
                         const std::vector<Endpoint>& inputs) {
      def.set_name(absl::StrCat(node.name(), "/", name));
      def.set_device(node.device());
      return graph_->Add(std::move(def), inputs, {}, weights);
    };
    const NodeId indices =
        add("indices",
            MakeConst("", Tensor::FromValues<int64_t>({count}, column.indices)),
            {});
    const NodeId values = add(
        "values",
        MakeConst("", Tensor::FromValues<float>({count}, column.values)), {});
    tensorflow::NodeDef def = MakeNode("", "HashTable", node);
    graph::SetType(&def, "key_dtype", tensorflow::DT_INT64);
    graph::SetType(&def, "value_dtype", tensorflow::DT_FLOAT);
    const NodeId table = add("HashTable", std::move(def), {});
    def = MakeNode("", "InitializeTable", node);
    graph::SetType(&def, "Tkey", tensorflow::DT_INT64);
    graph::SetType(&def, "Tval", tensorflow::DT_FLOAT);
    const NodeId init = add("InitializeTable", std::move(def),
                            {{table, 0}, {indices, 0}, {values, 0}});
    graph_->AddControlInput(Group(), init);
    return table;
  }

  // The node that waits for all tables to be filled.
  NodeId Group() {
    const NodeId group = graph_->Find(group_name_);
    if (group != graph::kNoNode) return group;
    tensorflow::NodeDef def;
    def.set_name(group_name_);
    def.set_op("NoOp");
    return graph_->Add(std::move(def), {});
  }

  // Turns the gathering node into [find(ids)] with a last dimension of 1.
  void Lookup(NodeId gather, NodeId table, tensorflow::DataType id_type) {
    const graph::Node& node = graph_->node(gather);
    const auto below = [&](absl::string_view name) {
      return absl::StrCat(node.name(), "/", name);
    };
    Endpoint ids = node.inputs()[1];
    if (id_type != tensorflow::DT_INT64) {
      tensorflow::NodeDef cast = MakeNode(below("Cast"), "Cast", node);
      graph::SetType(&cast, "SrcT", id_type);
      graph::SetType(&cast, "DstT", tensorflow::DT_INT64);
      ids = {graph_->Add(std::move(cast), {ids}, {}, gather), 0};
    }
    const NodeId absent =
        graph_->Add(MakeScalarConst(below("Const"), 0.0f), {}, {}, gather);
    tensorflow::NodeDef find =
        MakeNode(below("LookupTableFind"), "LookupTableFind", node);
    graph::SetType(&find, "Tin", tensorflow::DT_INT64);
    graph::SetType(&find, "Tout", tensorflow::DT_FLOAT);
    const NodeId found = graph_->Add(
        std::move(find), {{table, 0}, ids, {absent, 0}}, {}, gather);
    const NodeId last = graph_->Add(
        MakeConst(below("ExpandDims/Const"), Tensor::Scalar<int32_t>(-1)), {},
        {}, gather);
    std::vector<NodeId> read;
    for (const Endpoint& input : node.inputs()) read.push_back(input.node);
    tensorflow::NodeDef* def = graph_->mutable_node(gather)->mutable_def();
    def->set_op("ExpandDims");
    def->clear_attr();
    graph::SetType(def, "T", tensorflow::DT_FLOAT);
    graph::SetType(def, "Tdim", tensorflow::DT_INT32);
    graph_->SetInputs(gather, {{found, 0}, {last, 0}});
    // The axis; weights may be needed for other matches still.
    if (read.size() == 3) RemoveUnused({read[2]}, *context_, graph_);
  }

  TransformContext* context_;
  Graph* graph_;
  const std::string group_name_;
  const std::string checkpoint_;
  const std::vector<bool> in_loop_;
  absl::flat_hash_map<NodeId, NodeId> tables_;
  // In the order of the graph.
  std::vector<NodeId> replaced_;
};

absl::Status SparsifyGather(Graph* graph, TransformContext* context) {
  if (context->arguments().String("group_init_node").empty()) {
    return absl::InvalidArgumentError("parameter 'group_init_node' is empty");
  }
  for (NodeId id : graph->Ids()) {
    graph->mutable_node(id)->mutable_def()->mutable_attr()->erase(
        "_output_shapes");
  }
  return GatherSparsifier(context, graph).Run();
}

}  // namespace

TransformDef SparsifyGatherTransform() {
  return {
      .name = "sparsify_gather",
      .summary =
          "Replaces lookups in a column of mostly zero weights with a hash "
          "table of the nonzero ones.",
      .parameters =
          {{.name = "group_init_node",
            .help = "Node that waits until the tables are filled; created if "
                    "missing.",
            .default_value = "group_deps"},
           {.name = "input_checkpoint",
            .help = "Checkpoint with the values of variable weights."}},
      .run = SparsifyGather};
}

}  // namespace optfarm::transforms
