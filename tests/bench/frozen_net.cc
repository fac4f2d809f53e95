#include "tests/bench/frozen_net.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/freezing/freeze_ranges.h"
#include "engine/transforms/freezing/range_log.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::bench {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// The code of zero, so that it has to be corrected for.
constexpr int32_t kZeroCode = 131;

// Whole layers with signed weights.
bool IsSignedLayer(const graph::Node& node) {
  return absl::StartsWith(node.op(), "Quantized") &&
         absl::StrContains(node.op(), "WithBias");
}

// The largest weight of each channel: a range's end, or what Neg makes the
// other end of.
absl::StatusOr<Tensor> LargestWeights(const Graph& graph,
                                      const graph::Node& layer) {
  return transforms::ConstValue(graph.node(layer.inputs()[6].node));
}

absl::Status UseUnsigned(NodeId id, Graph* graph) {
  const graph::Node& layer = graph->node(id);
  OPTFARM_ASSIGN_OR_RETURN(
      const Tensor codes,
      transforms::ConstValue(graph->node(layer.inputs()[1].node)));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor largest, LargestWeights(*graph, layer));
  const auto all = largest.flat<float>();
  const float most = *std::max_element(all.begin(), all.end());
  const float step = most / static_cast<float>(255 - kZeroCode);
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor made, Tensor::Allocate(tensorflow::DT_QUINT8, codes.shape()));
  const auto* in = static_cast<const int8_t*>(codes.raw());
  auto* out = made.data<uint8_t>();
  const int64_t channels = largest.num_elements();
  for (int64_t i = 0; i < codes.num_elements(); ++i) {
    const float weight = static_cast<float>(in[i]) * all[i % channels] / 127.0f;
    const int code = static_cast<int>(std::lround(weight / step)) + kZeroCode;
    out[i] = static_cast<uint8_t>(std::clamp(code, 0, 255));
  }
  const std::string name = layer.name();
  graph->SetInput(
      id, 1,
      {graph->Add(transforms::MakeConst(absl::StrCat(name, "/u8"), made), {},
                  {}, id),
       0});
  const float ends[] = {-kZeroCode * step,
                        static_cast<float>(255 - kZeroCode) * step};
  for (int i = 0; i < 2; ++i) {
    const NodeId end = graph->Add(
        transforms::MakeScalarConst(absl::StrCat(name, "/u8_", i), ends[i]), {},
        {}, id);
    graph->SetInput(id, 5 + i, {end, 0});
  }
  const bool is_matrix = absl::StartsWith(layer.op(), "QuantizedMatMul");
  graph::SetType(graph->mutable_node(id)->mutable_def(),
                 is_matrix ? "T2" : "Tfilter", tensorflow::DT_QUINT8);
  return absl::OkStatus();
}

}  // namespace

absl::Status FreezeOn(absl::Span<const std::vector<Tensor>> samples,
                      absl::Span<const graph::TensorName> inputs,
                      Graph* graph) {
  std::vector<graph::TensorName> fetches;
  std::vector<std::string> names;
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!absl::StartsWith(node.op(), "RequantizationRange")) continue;
    names.push_back(node.name());
    fetches.push_back({node.name(), 0});
    fetches.push_back({node.name(), 1});
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           runtime::Session::Create(*graph, inputs, fetches));
  transforms::RangeLog log;
  for (const std::vector<Tensor>& feeds : samples) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> ends,
                             session->Run(feeds));
    for (size_t i = 0; i < names.size(); ++i) {
      log[names[i]].push_back(
          {ends[2 * i].data<float>()[0], ends[2 * i + 1].data<float>()[0]});
    }
  }
  return transforms::FreezeRanges(graph, log).status();
}

absl::Status UseUnsignedWeights(Graph* graph) {
  for (NodeId id : graph->Ids()) {
    if (!IsSignedLayer(graph->node(id))) continue;
    OPTFARM_RETURN_IF_ERROR(UseUnsigned(id, graph));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::bench
