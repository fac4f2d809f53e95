#include "engine/optimize/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/optimize/comparison.h"
#include "engine/optimize/layers.h"
#include "engine/runtime/session.h"
#include "engine/runtime/thread_pool.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorName;
using runtime::Session;
using runtime::Tensor;

constexpr size_t kMostLayers = 64;
// Nodes looked at behind a layer for a tensor that both graphs have.
constexpr size_t kMostNeighbours = 64;
constexpr int kTimedRuns = 3;
constexpr char kEightBit[] = "/eightbit";
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

absl::StatusOr<std::unique_ptr<Session>> MakeSession(
    const Graph& graph, absl::Span<const TensorName> inputs,
    absl::Span<const TensorName> fetches) {
  runtime::SessionOptions options;
  // One thread: layers are measured at once.
  options.threads = 1;
  options.print = [](absl::string_view) {};
  return Session::Create(graph, inputs, fetches, options);
}

// UNITS: bytes of codes among the node's inputs that are constants.
int64_t CodedWeightBytes(const Graph& graph, const graph::Node& node) {
  int64_t bytes = 0;
  for (const graph::Endpoint& input : node.inputs()) {
    const graph::Node& constant = graph.node(input.node);
    if (constant.op() != "Const") continue;
    const auto value = graph::GetTensor(constant.def(), "value");
    if (!value.ok() || ((*value)->dtype() != tensorflow::DT_QUINT8 &&
                        (*value)->dtype() != tensorflow::DT_QINT8)) {
      continue;
    }
    bytes += static_cast<int64_t>((*value)->tensor_content().size());
  }
  return bytes;
}

// Names, before quantize_weights, of the constants that an 8-bit layer reads.
std::vector<std::string> CodedWeights(const Graph& graph,
                                      const std::string& layer) {
  std::vector<std::string> names;
  const NodeId id = graph.Find(absl::StrCat(layer, kEightBit));
  if (id == graph::kNoNode) return names;
  for (const graph::Endpoint& input : graph.node(id).inputs()) {
    absl::string_view name = graph.node(input.node).name();
    if (absl::ConsumeSuffix(&name, "_quantized_const")) {
      names.emplace_back(name);
    }
  }
  return names;
}

// The node of the original that a layer's name stands for.
NodeId FindOriginal(const Graph& original, absl::string_view layer) {
  return original.Find(std::string(absl::StripSuffix(layer, "/normalized")));
}

// The nodes at or behind `id` that are nearest to it among those named.
std::set<std::string> NearestBehind(const Graph& graph, NodeId id,
                                    const std::set<std::string>& names) {
  std::set<std::string> found;
  std::vector<NodeId> open = {id};
  std::set<NodeId> seen = {id};
  for (size_t i = 0; i < open.size() && i < kMostNeighbours; ++i) {
    const graph::Node& node = graph.node(open[i]);
    if (names.count(node.name()) > 0) {
      found.insert(node.name());
      continue;
    }
    for (const graph::Use& use : node.uses()) {
      if (use.is_control()) continue;
      if (seen.insert(use.consumer).second) open.push_back(use.consumer);
    }
  }
  return found;
}

// Time of each node, the fastest of a few runs; the nodes of a step that runs
// as one share its time. UNITS: milliseconds.
absl::StatusOr<std::map<std::string, double>> TimeNodes(
    const Graph& graph, const SensitivityJob& job) {
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           MakeSession(graph, job.inputs, job.outputs));
  std::map<std::string, double> times;
  for (int run = 0; run < kTimedRuns && !job.samples.empty(); ++run) {
    runtime::RunTrace trace;
    OPTFARM_RETURN_IF_ERROR(session->Run(job.samples[0], &trace).status());
    std::map<std::string, double> once;
    for (const runtime::NodeTiming& node : trace.nodes) {
      const double time = absl::ToDoubleMilliseconds(node.duration);
      if (node.fused_names.empty()) once[node.name] += time;
      for (const std::string& name : node.fused_names) {
        once[name] += time / static_cast<double>(node.fused_names.size());
      }
    }
    for (const auto& [name, time] : once) {
      const auto [at, is_new] = times.emplace(name, time);
      if (!is_new) at->second = std::min(at->second, time);
    }
  }
  return times;
}

// What a layer took in the original: its node, and those before it that are
// gone from the result because they were folded into it.
double TimeInOriginal(const std::map<std::string, double>& times,
                      const Graph& original, const Graph& result, NodeId id) {
  std::vector<NodeId> open = {id};
  std::set<NodeId> seen = {id};
  double sum = 0;
  for (size_t i = 0; i < open.size() && i < kMostNeighbours; ++i) {
    const graph::Node& node = original.node(open[i]);
    const auto time = times.find(node.name());
    if (time != times.end()) sum += time->second;
    for (const graph::Endpoint& input : node.inputs()) {
      const bool is_gone =
          result.Find(original.node(input.node).name()) == graph::kNoNode;
      if (is_gone && seen.insert(input.node).second) open.push_back(input.node);
    }
  }
  return sum;
}

// What a layer takes in the result: its 8-bit op, what makes codes of its input
// and what cuts or decodes its output.
double TimeInResult(const std::map<std::string, double>& times,
                    const std::string& layer) {
  const std::string own = absl::StrCat(layer, kEightBit);
  const std::string inputs = absl::StrCat(layer, "_eightbit/");
  double sum = 0;
  for (const auto& [name, time] : times) {
    const bool is_part = name == layer || name == own ||
                         name.starts_with(absl::StrCat(own, "/")) ||
                         name.starts_with(inputs);
    if (is_part) sum += time;
  }
  return sum;
}

double LeastSnr(const std::vector<TensorComparer>& comparers) {
  double least = kNaN;
  for (const TensorComparer& comparer : comparers) {
    const v1::TensorComparison result = comparer.Result();
    if (result.samples() == 0) continue;
    least =
        std::isnan(least) ? result.snr_db() : std::min(least, result.snr_db());
  }
  return least;
}

// Signal to noise of the layer's own tensors and of the outputs.
struct Loss {
  double layer = kNaN;
  double outputs = kNaN;
};

class AloneMeasurer {
 public:
  AloneMeasurer(const SensitivityJob& job, std::vector<std::string> layers)
      : job_(job), layers_(std::move(layers)) {}

  // ERRORS: those of the transforms and of running a graph.
  absl::StatusOr<Loss> Measure(const std::string& layer) const {
    Spared others = job_.spared;
    for (const std::string& other : layers_) {
      if (other == layer) continue;
      others.nodes.insert(other);
      // Their weights too: what stays float must not be rounded.
      const auto weights = CodedWeights(*job_.result, other);
      others.nodes.insert(weights.begin(), weights.end());
    }
    OPTFARM_ASSIGN_OR_RETURN(const TransformedGraph alone,
                             job_.transform(others));
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<Layer> all,
        FindLayers(*job_.original, alone.graph, alone.name_map, job_.inputs,
                   std::numeric_limits<size_t>::max()));
    std::set<std::string> names;
    for (const Layer& found : all) names.insert(found.name);
    const NodeId id = FindOriginal(*job_.original, layer);
    if (id == graph::kNoNode) return Loss();
    const std::set<std::string> nearest =
        NearestBehind(*job_.original, id, names);
    std::vector<Layer> compared;
    for (const Layer& found : all) {
      if (nearest.count(found.name) > 0) compared.push_back(found);
    }
    return Compare(alone.graph, compared);
  }

 private:
  absl::StatusOr<Loss> Compare(const Graph& alone,
                               absl::Span<const Layer> layers) const {
    std::vector<TensorName> wanted(job_.outputs), have(job_.outputs);
    for (const Layer& layer : layers) {
      wanted.push_back({layer.name, 0});
      have.insert(have.end(), layer.result.begin(), layer.result.end());
    }
    OPTFARM_ASSIGN_OR_RETURN(const auto before,
                             MakeSession(*job_.original, job_.inputs, wanted));
    OPTFARM_ASSIGN_OR_RETURN(const auto after,
                             MakeSession(alone, job_.inputs, have));
    std::vector<TensorComparer> outputs(job_.outputs.size());
    std::vector<TensorComparer> own(layers.size());
    for (const std::vector<Tensor>& sample : job_.samples) {
      OPTFARM_ASSIGN_OR_RETURN(const auto a, before->Run(sample));
      OPTFARM_ASSIGN_OR_RETURN(const auto b, after->Run(sample));
      for (size_t k = 0; k < outputs.size(); ++k) {
        OPTFARM_RETURN_IF_ERROR(outputs[k].Add(a[k], b[k]));
      }
      size_t at = outputs.size();
      for (size_t k = 0; k < layers.size(); ++k) {
        OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ValueOf(layers[k], b, at));
        at += layers[k].result.size();
        OPTFARM_RETURN_IF_ERROR(own[k].Add(a[outputs.size() + k], value));
      }
    }
    return Loss{LeastSnr(own), LeastSnr(outputs)};
  }

  const SensitivityJob& job_;
  std::vector<std::string> layers_;
};

// What the whole result lost up to the layer.
double CumulativeSnr(const SensitivityJob& job, NodeId id) {
  std::map<std::string, double> measured;
  std::set<std::string> names;
  for (const v1::TensorComparison& layer : job.cumulative) {
    if (layer.samples() == 0) continue;
    measured[layer.name()] = layer.snr_db();
    names.insert(layer.name());
  }
  double least = kNaN;
  for (const std::string& name : NearestBehind(*job.original, id, names)) {
    least =
        std::isnan(least) ? measured[name] : std::min(least, measured[name]);
  }
  return least;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> QuantizedLayers(const Graph& graph,
                                                         size_t most) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(graph));
  std::vector<std::string> all, with_weights;
  for (const NodeId id : order) {
    const graph::Node& node = graph.node(id);
    absl::string_view name = node.name();
    if (!absl::ConsumeSuffix(&name, kEightBit)) continue;
    all.emplace_back(name);
    if (CodedWeightBytes(graph, node) > 0) with_weights.emplace_back(name);
  }
  std::vector<std::string>& chosen = all.size() > most ? with_weights : all;
  chosen.resize(std::min(chosen.size(), most));
  return chosen;
}

absl::StatusOr<std::vector<v1::LayerSensitivity>> MeasureSensitivity(
    const SensitivityJob& job) {
  // All of them: what is not looked at is spared too.
  OPTFARM_ASSIGN_OR_RETURN(
      std::vector<std::string> all,
      QuantizedLayers(*job.result, std::numeric_limits<size_t>::max()));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> layers,
                           QuantizedLayers(*job.result, kMostLayers));
  OPTFARM_ASSIGN_OR_RETURN(const auto float_times,
                           TimeNodes(*job.original, job));
  OPTFARM_ASSIGN_OR_RETURN(const auto result_times,
                           TimeNodes(*job.result, job));
  const AloneMeasurer measurer(job, std::move(all));
  std::vector<Loss> losses(layers.size());
  runtime::ThreadPool pool(std::max(1, job.threads));
  pool.ParallelFor(static_cast<int64_t>(layers.size()), 1,
                   [&](int64_t first, int64_t last) {
                     for (int64_t i = first; i < last; ++i) {
                       const auto loss = measurer.Measure(layers[i]);
                       if (loss.ok()) losses[i] = *loss;
                     }
                   });
  std::vector<v1::LayerSensitivity> table;
  for (size_t i = 0; i < layers.size(); ++i) {
    v1::LayerSensitivity& row = table.emplace_back();
    const NodeId id = FindOriginal(*job.original, layers[i]);
    row.set_name(layers[i]);
    if (id != graph::kNoNode) {
      row.set_name(job.original->node(id).name());
      row.set_op(job.original->node(id).op());
    }
    row.set_alone_snr_db(losses[i].layer);
    row.set_output_snr_db(losses[i].outputs);
    row.set_cumulative_snr_db(id == graph::kNoNode ? kNaN
                                                   : CumulativeSnr(job, id));
    const NodeId coded = job.result->Find(absl::StrCat(layers[i], kEightBit));
    // A code of one byte was a float of four.
    row.set_float_bytes_more(
        3 * CodedWeightBytes(*job.result, job.result->node(coded)));
    if (id != graph::kNoNode) {
      row.set_float_milliseconds(
          TimeInOriginal(float_times, *job.original, *job.result, id));
    }
    row.set_result_milliseconds(TimeInResult(result_times, layers[i]));
  }
  return table;
}

absl::StatusOr<double> MillisecondsOf(const Graph& graph,
                                      absl::Span<const TensorName> inputs,
                                      absl::Span<const TensorName> outputs,
                                      const std::vector<Tensor>& sample) {
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           MakeSession(graph, inputs, outputs));
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kTimedRuns; ++run) {
    const absl::Time start = absl::Now();
    OPTFARM_RETURN_IF_ERROR(session->Run(sample).status());
    least = std::min(least, absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  return least;
}

}  // namespace optfarm::optimize
