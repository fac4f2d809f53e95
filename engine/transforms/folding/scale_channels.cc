#include "engine/transforms/folding/scale_channels.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/folding/shift_constants.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

constexpr uint64_t kMaxFileBytes = 256 << 20;
// Places of a layer's inputs.
constexpr size_t kBias = 2, kMin = 5, kMax = 6;
// Joins and pools that are looked through.
constexpr int kMostNodes = 256;

// A depthwise layer that reads a layer's channels from `offset` on.
struct Reader {
  NodeId layer = graph::kNoNode;
  int64_t offset = 0;
};

bool IsDepthwise(const graph::Node& node) {
  return graph::IsQuantizedLayer(node.op()) &&
         graph::RowOf(node.op()).layer.product ==
             graph::LayerProduct::kDepthwise &&
         node.inputs().size() > kMax;
}

// Channels of a layer whose largest weights are a constant of its own, which
// nobody else reads but the node that gives their negative; 0 for others.
int64_t OwnChannels(const Graph& graph, NodeId id) {
  const graph::Node& node = graph.node(id);
  if (!graph::IsQuantizedLayer(node.op()) || node.inputs().size() <= kMax) {
    return 0;
  }
  const NodeId min = node.inputs()[kMin].node, max = node.inputs()[kMax].node;
  if (!graph::IsNegate(graph.node(min).op()) || !IsConst(graph.node(max)) ||
      graph.node(min).inputs()[0].node != max) {
    return 0;
  }
  for (const graph::Use& use : graph.node(max).uses()) {
    if (use.consumer != id && use.consumer != min) return 0;
  }
  for (const graph::Use& use : graph.node(min).uses()) {
    if (use.consumer != id) return 0;
  }
  const auto value = FloatView::Of(graph.node(max));
  return value.ok() ? value->shape().num_elements() : 0;
}

bool OwnsBias(const Graph& graph, NodeId id) {
  const graph::Node& bias = graph.node(graph.node(id).inputs()[kBias].node);
  return IsConst(bias) && bias.uses().size() == 1 && FloatView::Of(bias).ok();
}

bool IsMaxPool(const graph::Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kQuantizedMaxPool);
}

// The axis comes behind what is joined.
bool IsJoin(const graph::Node& node) {
  const graph::OpRow& row = graph::RowOf(node.op());
  return row.role == graph::OpRole::kQuantizedConcat && !row.has_axis_first;
}

// Channels of quantized values, through pools and joins; 0 when they are not
// known.
int64_t ChannelsOf(const Graph& graph, NodeId id, int* budget) {
  if (--*budget < 0) return 0;
  const graph::Node& node = graph.node(id);
  if (IsMaxPool(node)) {
    return ChannelsOf(graph, node.inputs()[0].node, budget);
  }
  if (!IsJoin(node)) return OwnChannels(graph, id);
  const int64_t parts = graph::GetInt(node.def(), "N").value_or(0);
  int64_t sum = 0;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t part = ChannelsOf(graph, node.inputs()[i].node, budget);
    if (part == 0) return 0;
    sum += part;
  }
  return sum;
}

bool JoinsChannels(const Graph& graph, const graph::Node& node) {
  const int64_t parts = graph::GetInt(node.def(), "N").value_or(0);
  const graph::Node& axis = graph.node(node.inputs()[parts].node);
  if (!IsConst(axis)) return false;
  const auto value = ConstValue(axis);
  return value.ok() && value->num_elements() == 1 &&
         value->dtype() == tensorflow::DT_INT32 &&
         (value->data<int32_t>()[0] == 3 || value->data<int32_t>()[0] == -1);
}

// Adds all who read the quantized values of `id`. False when one is not a
// depthwise layer.
bool AddReaders(const Graph& graph, NodeId id, int64_t offset, int* budget,
                std::vector<Reader>* readers) {
  if (--*budget < 0) return false;
  for (const graph::Use& use : graph.node(id).uses()) {
    const graph::Node& node = graph.node(use.consumer);
    if (use.is_control()) return false;
    // Ranges go where the quantized values go; both have to.
    if (use.port > 0) {
      if (IsDepthwise(node) || IsJoin(node) || IsMaxPool(node)) {
        continue;
      }
      return false;
    }
    if (IsDepthwise(node) && node.inputs()[0] == Endpoint{id, 0} &&
        OwnChannels(graph, use.consumer) > 0) {
      readers->push_back({use.consumer, offset});
      continue;
    }
    int64_t at = offset;
    if (IsJoin(node) && JoinsChannels(graph, node)) {
      // A tensor that is joined to itself comes here once for each place.
      for (int i = 0; i < use.input; ++i) {
        const int64_t part = ChannelsOf(graph, node.inputs()[i].node, budget);
        if (part == 0) return false;
        at += part;
      }
    } else if (!IsMaxPool(node)) {
      return false;
    }
    if (!AddReaders(graph, use.consumer, at, budget, readers)) return false;
  }
  return true;
}

// Filters for each channel of a depthwise layer; 0 when `count` channels from
// the reader's offset on are more than it has.
size_t MultiplierOf(const Graph& graph, const Reader& reader, size_t count) {
  const graph::Node& depthwise = graph.node(reader.layer);
  const graph::Node& quantized = graph.node(depthwise.inputs()[1].node);
  if (!IsConst(quantized)) return 0;
  const auto proto = graph::GetTensor(quantized.def(), "value");
  if (!proto.ok() || (*proto)->tensor_shape().dim_size() != 4) return 0;
  const auto channels =
      static_cast<uint64_t>((*proto)->tensor_shape().dim(2).size());
  const auto multiplier =
      static_cast<size_t>((*proto)->tensor_shape().dim(3).size());
  const auto own = static_cast<uint64_t>(OwnChannels(graph, reader.layer));
  const uint64_t end = static_cast<uint64_t>(reader.offset) + count;
  return end <= channels && own == channels * multiplier ? multiplier : 0;
}

// nullopt when the layer is not scalable.
std::optional<std::vector<Reader>> ReadersOf(const Graph& graph, NodeId id) {
  if (graph::RowOf(graph.node(id).op()).layer.result !=
          graph::LayerResult::kQuantizedValues ||
      !absl::EndsWith(graph.node(id).name(), "/eightbit") ||
      OwnChannels(graph, id) == 0 || !OwnsBias(graph, id)) {
    return std::nullopt;
  }
  std::vector<Reader> readers;
  int budget = kMostNodes;
  if (!AddReaders(graph, id, 0, &budget, &readers) || readers.empty()) {
    return std::nullopt;
  }
  const auto count = static_cast<size_t>(OwnChannels(graph, id));
  for (const Reader& reader : readers) {
    if (MultiplierOf(graph, reader, count) == 0) return std::nullopt;
  }
  return readers;
}

void Scale(NodeId id, const std::vector<Reader>& readers,
           const std::vector<float>& factors, Graph* graph) {
  const graph::Node& layer = graph->node(id);
  for (size_t input : {kBias, kMax}) {
    const absl::Span<float> values =
        MutableFloats(graph->mutable_node(layer.inputs()[input].node));
    for (size_t c = 0; c < values.size(); ++c) values[c] *= factors[c];
  }
  for (const Reader& reader : readers) {
    const graph::Node& depthwise = graph->node(reader.layer);
    const size_t multiplier = MultiplierOf(*graph, reader, factors.size());
    const absl::Span<float> values =
        MutableFloats(graph->mutable_node(depthwise.inputs()[kMax].node));
    const size_t first = static_cast<size_t>(reader.offset) * multiplier;
    for (size_t i = 0; i < factors.size() * multiplier; ++i) {
      values[first + i] /= factors[i / multiplier];
    }
  }
  graph->Rename(id, absl::StrCat(layer.name(), kScaledSuffix));
}

absl::Status RunScaleChannels(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string path,
      context->ResolveFile(context->arguments().String("scale_file")));
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxFileBytes));
  const absl::StatusOr<ConstantShifts> lines = ParseConstantShifts(text);
  if (!lines.ok()) {
    return Annotate(lines.status(), absl::StrCat("'", path, "'"));
  }
  const ChannelFactors factors(lines->begin(), lines->end());
  OPTFARM_RETURN_IF_ERROR(ScaleChannels(factors, graph));
  context->CountChange(static_cast<int64_t>(factors.size()));
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ScalableLayers(const Graph& graph) {
  std::vector<std::string> names;
  for (NodeId id : graph.Ids()) {
    if (ReadersOf(graph, id).has_value()) {
      names.push_back(graph.node(id).name());
    }
  }
  return names;
}

absl::Status ScaleChannels(const ChannelFactors& factors, Graph* graph) {
  for (const auto& [name, values] : factors) {
    OPTFARM_ASSIGN_OR_RETURN(const NodeId id, graph->Get(name));
    const auto readers = ReadersOf(*graph, id);
    if (!readers.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the quantized values of node '", name,
                       "' go to others than depthwise layers"));
    }
    if (OwnChannels(*graph, id) != static_cast<int64_t>(values.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", name, "' has ", OwnChannels(*graph, id),
                       " channels, ", values.size(), " factors are given"));
    }
    for (float value : values) {
      if (!(value >= 1.0f && value <= kMostChannelFactor)) {
        return absl::InvalidArgumentError(
            absl::StrCat("a factor of node '", name, "' is ", value,
                         ", not within 1 and ", kMostChannelFactor));
      }
    }
    Scale(id, *readers, values, graph);
  }
  return absl::OkStatus();
}

TransformDef ScaleChannelsTransform() {
  return {.name = "scale_channels",
          .summary =
              "Scales channels that use few quantized values of their layer, "
              "if a following depthwise layer can reverse the factors.",
          .parameters = {{.name = "scale_file",
                          .help = "File with one line per layer: its name and "
                                  "a factor for each channel.",
                          .required = true}},
          .run = RunScaleChannels};
}

}  // namespace optfarm::transforms
