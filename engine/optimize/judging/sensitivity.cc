#include "engine/optimize/judging/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/optimize/judging/layer_alone.h"
#include "engine/optimize/layers/comparison.h"
#include "engine/optimize/layers/layers.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"

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

// UNITS: bytes of quantized values among the node's inputs that are constants.
int64_t QuantizedWeightBytes(const Graph& graph, const graph::Node& node) {
  int64_t bytes = 0;
  for (const graph::Endpoint& input : node.inputs()) {
    const graph::Node& constant = graph.node(input.node);
    if (!graph::IsConst(constant.op())) continue;
    const auto value = graph::GetTensor(constant.def(), "value");
    if (!value.ok() || ((*value)->dtype() != tensorflow::DT_QUINT8 &&
                        (*value)->dtype() != tensorflow::DT_QINT8)) {
      continue;
    }
    bytes += static_cast<int64_t>((*value)->tensor_content().size());
  }
  return bytes;
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
// gone from the result because they were folded into it. Nodes of `layers` are
// gone too, for their 8-bit ops have other names; their time is their own.
double TimeInOriginal(const std::map<std::string, double>& times,
                      const Graph& original, const Graph& result,
                      const std::set<std::string>& layers, NodeId id) {
  std::vector<NodeId> open = {id};
  std::set<NodeId> seen = {id};
  double sum = 0;
  for (size_t i = 0; i < open.size() && i < kMostNeighbours; ++i) {
    const graph::Node& node = original.node(open[i]);
    const auto time = times.find(node.name());
    if (time != times.end()) sum += time->second;
    for (const graph::Endpoint& input : node.inputs()) {
      const std::string& name = original.node(input.node).name();
      const bool is_gone =
          !layers.contains(name) && result.Find(name) == graph::kNoNode;
      if (is_gone && seen.insert(input.node).second) open.push_back(input.node);
    }
  }
  return sum;
}

// What a layer takes in the result: its 8-bit op, what makes quantized values
// of its input and what cuts or decodes its output.
double TimeInResult(const std::map<std::string, double>& times,
                    const std::string& quantized) {
  const std::string layer = LayerOf(quantized);
  const std::string parts = absl::StrCat(layer, "/eightbit/");
  const std::string inputs = absl::StrCat(layer, "_eightbit/");
  double sum = 0;
  for (const auto& [name, time] : times) {
    const bool is_part = name == layer || name == quantized ||
                         name.starts_with(parts) || name.starts_with(inputs);
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

// The ranges of quantized values that are the same for all samples.
absl::StatusOr<FixedRanges> FindFixedRanges(const SensitivityJob& job) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> may_be_cut,
                           MayBeCutOff(*job.result));
  FixedRanges ranges;
  std::vector<NodeId> nodes;
  std::vector<TensorName> fetches;
  for (const NodeId id : job.result->Ids()) {
    if (may_be_cut[id] || !GivesQuantized(job.result->node(id))) continue;
    nodes.push_back(id);
    for (const int port : {1, 2}) {
      fetches.push_back({job.result->node(id).name(), port});
    }
  }
  if (nodes.empty()) return ranges;
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           MakeSession(*job.result, job.inputs, fetches));
  std::set<NodeId> others;
  for (const std::vector<Tensor>& sample : job.samples) {
    OPTFARM_ASSIGN_OR_RETURN(const auto ends, session->Run(sample));
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Tensor& min = ends[2 * i];
      const Tensor& max = ends[2 * i + 1];
      // A range for each channel is one of 32-bit values.
      if (min.num_elements() != 1 || max.num_elements() != 1) {
        others.insert(nodes[i]);
        continue;
      }
      const runtime::Range range = {min.flat<float>()[0], max.flat<float>()[0]};
      const auto [at, is_new] = ranges.emplace(nodes[i], range);
      if (at->second.min != range.min || at->second.max != range.max) {
        others.insert(nodes[i]);
      }
    }
  }
  for (const NodeId id : others) ranges.erase(id);
  return ranges;
}

// What a group of layers loses. ERRORS: those of making and running the graph.
absl::StatusOr<Loss> MeasureAlone(const SensitivityJob& job,
                                  const FixedRanges& ranges,
                                  absl::Span<const NodeId> group) {
  OPTFARM_ASSIGN_OR_RETURN(const AloneGraph alone,
                           PutAlone(*job.floats, *job.result, ranges, group));
  std::vector<TensorName> fetches(job.outputs);
  for (const std::string& name : alone.computed) fetches.push_back({name, 0});
  OPTFARM_ASSIGN_OR_RETURN(const auto before,
                           MakeSession(*job.floats, job.inputs, fetches));
  OPTFARM_ASSIGN_OR_RETURN(const auto after,
                           MakeSession(alone.graph, job.inputs, fetches));
  std::vector<TensorComparer> outputs(job.outputs.size());
  std::vector<TensorComparer> own(alone.computed.size());
  for (const std::vector<Tensor>& sample : job.samples) {
    OPTFARM_ASSIGN_OR_RETURN(const auto a, before->Run(sample));
    OPTFARM_ASSIGN_OR_RETURN(const auto b, after->Run(sample));
    for (size_t k = 0; k < fetches.size(); ++k) {
      TensorComparer& comparer =
          k < outputs.size() ? outputs[k] : own[k - outputs.size()];
      OPTFARM_RETURN_IF_ERROR(comparer.Add(a[k], b[k]));
    }
  }
  return Loss{LeastSnr(own), LeastSnr(outputs)};
}

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

// Places of the layers that are measured.
std::vector<size_t> ChooseLayers(const Graph& graph,
                                 absl::Span<const NodeId> layers) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers.size() > kMostLayers &&
        QuantizedWeightBytes(graph, graph.node(layers[i])) == 0) {
      continue;
    }
    chosen.push_back(i);
  }
  chosen.resize(std::min(chosen.size(), kMostLayers));
  return chosen;
}

}  // namespace

absl::StatusOr<std::vector<v1::LayerSensitivity>> MeasureSensitivity(
    const SensitivityJob& job) {
  OPTFARM_ASSIGN_OR_RETURN(const LayerSet all, FindLayerSet(*job.result));
  const std::vector<size_t> chosen = ChooseLayers(*job.result, all.layers);
  OPTFARM_ASSIGN_OR_RETURN(const FixedRanges ranges, FindFixedRanges(job));
  OPTFARM_ASSIGN_OR_RETURN(const auto float_times,
                           TimeNodes(*job.original, job));
  OPTFARM_ASSIGN_OR_RETURN(const auto result_times,
                           TimeNodes(*job.result, job));
  std::set<size_t> wanted;
  for (const size_t place : chosen) wanted.insert(all.group_of[place]);
  const std::vector<size_t> groups(wanted.begin(), wanted.end());
  std::vector<Loss> losses(all.groups.size());
  runtime::ThreadPool pool(std::max(1, job.threads));
  pool.ParallelFor(
      static_cast<int64_t>(groups.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          const size_t group = groups[i];
          const auto loss = MeasureAlone(job, ranges, all.groups[group]);
          if (loss.ok()) losses[group] = *loss;
        }
      });
  std::set<std::string> layers;
  for (const NodeId layer : all.layers) {
    layers.insert(LayerOf(job.result->node(layer).name()));
  }
  std::vector<v1::LayerSensitivity> table;
  for (const size_t place : chosen) {
    v1::LayerSensitivity& row = table.emplace_back();
    const graph::Node& quantized = job.result->node(all.layers[place]);
    row.set_name(LayerOf(quantized.name()));
    const NodeId id = job.original->Find(row.name());
    const Loss& loss = losses[all.group_of[place]];
    row.set_alone_snr_db(loss.layer);
    row.set_output_snr_db(loss.outputs);
    row.set_cumulative_snr_db(id == graph::kNoNode ? kNaN
                                                   : CumulativeSnr(job, id));
    // A quantized value of one byte was a float of four.
    row.set_float_bytes_more(3 * QuantizedWeightBytes(*job.result, quantized));
    if (id != graph::kNoNode) {
      row.set_op(job.original->node(id).op());
      row.set_float_milliseconds(
          TimeInOriginal(float_times, *job.original, *job.result, layers, id));
    }
    row.set_result_milliseconds(TimeInResult(result_times, quantized.name()));
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
