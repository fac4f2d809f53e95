// quantize_product_weights: stores constants that are multiplied as matrices
// with 4 bits in blocks along the axis that is summed over, each block with a
// scale and a zero point, followed by a DequantizeBlocks under the old name.
// The graph computes in float as before; with blocks of 32 a weight takes 4.625
// bits, 0.145 of its size.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/quantizing/block_codes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

// Nodes between a constant and its product; more are no chain.
constexpr int kMostHops = 4;

struct Options {
  int64_t block = 0;
  int64_t minimum = 0;
  bool with_tables = false;
  absl::flat_hash_set<std::string> ignored_ops;
  // Constants and their readers.
  absl::flat_hash_set<std::string> excluded;
};

// The axis of matrix `input` of a product that is summed over.
std::optional<int> SummedAxis(const graph::Node& node, int input, int rank) {
  const bool is_plain = node.op() == "MatMul";
  const char* const flag = is_plain
                               ? (input == 0 ? "transpose_a" : "transpose_b")
                               : (input == 0 ? "adj_x" : "adj_y");
  const auto turned = graph::GetBoolOr(node.def(), flag, false);
  if (rank < 2 || input > 1 || !turned.ok()) return std::nullopt;
  return (input == 0) != *turned ? rank - 1 : rank - 2;
}

// The axis of the constant that the reader sums over; nothing where the reader
// is no product.
std::optional<int> AxisFor(const graph::Node& reader, int input, int rank,
                           bool with_tables) {
  const std::string& op = reader.op();
  if (op == "MatMul" || absl::StartsWith(op, "BatchMatMul")) {
    return SummedAxis(reader, input, rank);
  }
  // Rows are gates.
  const bool is_sequence =
      op == "LstmSequence" || op == "GruSequence" || op == "RnnSequence";
  if ((is_sequence && (input == 1 || input == 2)) ||
      (op == "LiteLstmSequence" && (input == 3 || input == 4))) {
    return rank >= 2 ? std::optional<int>(rank - 1) : std::nullopt;
  }
  if (with_tables && input == 0 && rank == 2 &&
      (op == "Gather" || op == "GatherV2")) {
    return rank - 1;
  }
  return std::nullopt;
}

// The one axis that all readers of the node sum over, in loops too.
class AxisFinder {
 public:
  AxisFinder(const Graph& graph, int rank, const Options& options)
      : graph_(graph), rank_(rank), options_(options) {}

  std::optional<int> Find(NodeId id) {
    return Look(id, 0) && axis_ >= 0 ? std::optional<int>(axis_) : std::nullopt;
  }

 private:
  bool Look(NodeId id, int hops) {
    for (const graph::Use& use : graph_.node(id).uses()) {
      if (use.is_control()) continue;
      const graph::Node& reader = graph_.node(use.consumer);
      if (graph::IsForwarding(reader.op()) || graph::IsEnter(reader.op())) {
        if (hops == kMostHops || !Look(use.consumer, hops + 1)) return false;
        continue;
      }
      if (options_.ignored_ops.contains(reader.op()) ||
          options_.excluded.contains(reader.name())) {
        return false;
      }
      const auto axis = AxisFor(reader, use.input, rank_, options_.with_tables);
      if (!axis.has_value() || (axis_ >= 0 && axis_ != *axis)) return false;
      axis_ = *axis;
    }
    return true;
  }

  const Graph& graph_;
  const int rank_;
  const Options& options_;
  int axis_ = -1;
};

// Turns the Const into a DequantizeBlocks of three new ones. They wait for what
// the Const waited for, so that they run in the same branch or loop.
void ReplaceByBlocks(NodeId id, const runtime::BlockGrid& grid,
                     const BlockCodes& codes, Graph* graph) {
  const std::string name = graph->node(id).name();
  const std::string device = graph->node(id).device();
  const std::vector<NodeId> controls(graph->node(id).control_inputs().begin(),
                                     graph->node(id).control_inputs().end());
  std::vector<graph::Endpoint> inputs;
  const auto add = [&](const char* suffix, const runtime::Tensor& value) {
    tensorflow::NodeDef def = MakeConst(absl::StrCat(name, suffix), value);
    def.set_device(device);
    inputs.push_back({graph->Add(std::move(def), {}, controls, id), 0});
  };
  add("_blocks", codes.values);
  add("_block_scales", codes.scales);
  add("_block_zeros", codes.zero_points);
  tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
  def->set_op("DequantizeBlocks");
  def->clear_attr();
  graph::SetType(def, "S", tensorflow::DT_HALF);
  graph::SetInt(def, "axis", grid.axis());
  graph::SetInt(def, "block_size", grid.block());
  auto* const shape = (*def->mutable_attr())["shape"].mutable_shape();
  for (const int64_t dim : grid.shape().dims()) shape->add_dim()->set_size(dim);
  graph->ClearControlInputs(id);
  graph->SetInputs(id, inputs);
}

absl::StatusOr<Options> ReadOptions(const TransformArguments& arguments) {
  Options options;
  options.block = arguments.Int("block_size");
  // ONNX Runtime's products in blocks take these.
  constexpr int64_t kLeast = 16, kMost = 256;
  if (options.block < kLeast || options.block > kMost ||
      (options.block & (options.block - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'block_size' is ", options.block, "; give 16, 32, 64, 128 or 256"));
  }
  options.minimum = arguments.Int("minimum_size");
  options.with_tables = arguments.Bool("tables");
  for (const std::string& op : arguments.Strings("ignore_op")) {
    options.ignored_ops.insert(op);
  }
  for (const std::string& name : arguments.Strings("exclude_node")) {
    options.excluded.insert(name);
  }
  return options;
}

absl::Status QuantizeConstant(NodeId id, const Options& options, Graph* graph,
                              TransformContext* context) {
  const graph::Node& node = graph->node(id);
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           graph::GetTensor(node.def(), "value"));
  const int rank = proto->tensor_shape().dim_size();
  if (proto->dtype() != tensorflow::DT_FLOAT || rank < 2) {
    return absl::OkStatus();
  }
  const std::optional<int> axis = AxisFinder(*graph, rank, options).Find(id);
  if (!axis.has_value()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const FloatView weights, FloatView::Of(node));
  if (weights.shape().num_elements() < std::max<int64_t>(options.minimum, 1)) {
    return absl::OkStatus();
  }
  const runtime::BlockGrid grid(weights.shape(), *axis, options.block);
  const absl::StatusOr<BlockCodes> codes = EncodeBlocks(weights.values(), grid);
  if (absl::IsFailedPrecondition(codes.status())) {
    context->Skip(node.name(), codes.status().message());
    return absl::OkStatus();
  }
  OPTFARM_RETURN_IF_ERROR(codes.status());
  ReplaceByBlocks(id, grid, *codes, graph);
  context->CountChange();
  return absl::OkStatus();
}

absl::Status QuantizeProductWeights(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const Options options,
                           ReadOptions(context->arguments()));
  for (const NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!IsConst(node) || options.excluded.contains(node.name())) continue;
    OPTFARM_RETURN_IF_ERROR(QuantizeConstant(id, options, graph, context));
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef QuantizeProductWeightsTransform() {
  return {
      .name = "quantize_product_weights",
      .summary =
          "Stores weights of matrix products and recurrent layers in 4 bits, "
          "in blocks with a scale and a zero point, a seventh of their size; "
          "the graph still computes in float.",
      .parameters =
          {{.name = "block_size",
            .type = ParameterType::kInt,
            .help = "Values along the summed axis that share a scale and a "
                    "zero point: 16, 32, 64, 128 or 256.",
            .default_value = "32"},
           {.name = "minimum_size",
            .type = ParameterType::kInt,
            .help = "Constants with fewer elements are not changed.",
            .default_value = "1024"},
           {.name = "tables",
            .type = ParameterType::kBool,
            .help = "Also tables that rows are gathered from (embeddings), "
                    "in blocks along a row.",
            .default_value = "false"},
           {.name = "ignore_op",
            .help = "Constants that a node of this op reads are not changed.",
            .repeated = true},
           {.name = "exclude_node",
            .help = "Name of a constant that is not changed, or of a node "
                    "whose constants are not.",
            .repeated = true}},
      .run = QuantizeProductWeights};
}

}  // namespace optfarm::transforms
