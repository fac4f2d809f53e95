#include "engine/optimize/judging/keep_float.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/folding/scale_channels.h"

namespace optfarm::optimize {
namespace {

using graph::NodeId;
using transforms::TransformStep;

bool HasParameter(const TransformStep& step, absl::string_view key,
                  const std::string& value) {
  return std::any_of(
      step.parameters.begin(), step.parameters.end(),
      [&](const auto& p) { return p.key == key && p.value == value; });
}

// UNITS: decibel. Stands for no difference.
constexpr double kClean = 100;
// Nodes looked at for a measured neighbour.
constexpr size_t kMaxNeighbours = 64;

// Noise power over signal power. UNITS: snr in decibel.
double Noise(double snr) { return std::pow(10.0, -snr / 10); }

enum class Direction { kUp, kDown };

// The lowest signal-to-noise ratio among the measured tensors that are nearest
// to the node: its own or those of the nodes that read it, or (kUp) those that
// it reads. A folded batch norm, for one, changes a convolution's output on
// purpose, so that only what comes after it can be compared.
double NearestSnr(const graph::Graph& graph,
                  const std::map<NodeId, double>& measured, NodeId id,
                  Direction direction) {
  std::vector<NodeId> open = {id};
  std::set<NodeId> seen = {id};
  double snr = kClean;
  for (size_t i = 0; i < open.size() && i < kMaxNeighbours; ++i) {
    const auto found = measured.find(open[i]);
    const bool counts = direction == Direction::kDown || open[i] != id;
    if (counts && found != measured.end()) {
      snr = std::min(snr, found->second);
      continue;
    }
    const graph::Node& node = graph.node(open[i]);
    if (direction == Direction::kUp) {
      for (const graph::Endpoint& input : node.inputs()) {
        if (seen.insert(input.node).second) open.push_back(input.node);
      }
    } else {
      for (const graph::Use& use : node.uses()) {
        if (use.is_control()) continue;
        if (seen.insert(use.consumer).second) open.push_back(use.consumer);
      }
    }
  }
  return snr;
}

std::string DescribeRanges(const RangeChoice& ranges) {
  const std::string name =
      absl::AsciiStrToLower(v1::Calibration::RangeMethod_Name(ranges.method));
  if (ranges.method != v1::Calibration::PERCENTILE) {
    return absl::StrCat("ranges by ", name);
  }
  return absl::StrCat("ranges by ", name, " ", ranges.min_percentile, " and ",
                      ranges.max_percentile);
}

}  // namespace

std::string DescribeSpared(const Spared& spared) {
  if (spared.empty()) return "everything quantized";
  std::string text;
  if (!spared.ops.empty()) {
    absl::StrAppend(&text, absl::StrJoin(spared.ops, ", "));
  }
  if (!spared.nodes.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", spared.nodes.size(),
                    spared.nodes.size() == 1 ? " layer" : " layers");
  }
  if (!text.empty()) absl::StrAppend(&text, " in float");
  if (!spared.left_out.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "without ",
                    absl::StrJoin(spared.left_out, ", "));
  }
  if (!spared.chain.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "another chain");
  }
  if (spared.ranges.is_set()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    DescribeRanges(spared.ranges));
  }
  if (spared.adapts_rounding) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "rounding adapted");
  }
  if (spared.corrects_biases) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "biases corrected");
  }
  return text;
}

Spared SparedByRecipe(const v1::KeepFloat& keep_float) {
  Spared spared;
  spared.ops.insert(keep_float.ops().begin(), keep_float.ops().end());
  spared.nodes.insert(keep_float.nodes().begin(), keep_float.nodes().end());
  spared.corrects_biases = keep_float.correct_biases();
  spared.adapts_rounding = keep_float.adapt_rounding();
  return spared;
}

Spared SparedByAttempt(const v1::KeepFloat& keep_float,
                       const v1::ChainChange& attempt) {
  Spared spared = SparedByRecipe(keep_float);
  spared.ops.insert(attempt.keep_ops().begin(), attempt.keep_ops().end());
  spared.left_out.insert(attempt.leave_out().begin(),
                         attempt.leave_out().end());
  spared.chain = attempt.transform_string();
  spared.corrects_biases = attempt.correct_biases();
  spared.adapts_rounding = attempt.adapt_rounding();
  spared.ranges = {attempt.range_method(), attempt.min_percentile(),
                   attempt.max_percentile()};
  return spared;
}

v1::Calibration WithRanges(v1::Calibration calibration, const Spared& spared) {
  if (!spared.ranges.is_set()) return calibration;
  calibration.set_range_method(spared.ranges.method);
  calibration.set_min_percentile(spared.ranges.min_percentile);
  calibration.set_max_percentile(spared.ranges.max_percentile);
  return calibration;
}

std::vector<TransformStep> WithSpared(std::vector<TransformStep> steps,
                                      const Spared& spared) {
  std::erase_if(steps, [&](const TransformStep& step) {
    return spared.left_out.count(step.name) > 0;
  });
  static const auto* const kSteps = new std::set<absl::string_view>{
      "quantize_layers", "quantize_nodes", "quantize_product_weights",
      "quantize_weights"};
  for (TransformStep& step : steps) {
    if (!kSteps->contains(step.name)) continue;
    for (const std::string& op : spared.ops) {
      if (!HasParameter(step, "ignore_op", op)) {
        step.parameters.push_back({"ignore_op", op});
      }
    }
    for (const std::string& node : spared.nodes) {
      if (!HasParameter(step, "exclude_node", node)) {
        step.parameters.push_back({"exclude_node", node});
      }
    }
  }
  return steps;
}

std::vector<std::string> WorstLayers(
    const graph::Graph& original, const graph::Graph& result,
    absl::Span<const v1::TensorComparison> layers, size_t most,
    absl::Span<const transforms::RenamedNode> name_map) {
  std::map<absl::string_view, absl::string_view> made_as;
  for (const transforms::RenamedNode& renamed : name_map) {
    made_as[renamed.after] = renamed.before;
  }
  std::map<NodeId, double> measured;
  for (const v1::TensorComparison& layer : layers) {
    const NodeId id = original.Find(layer.name());
    if (layer.samples() == 0 || id == graph::kNoNode) continue;
    measured[id] = std::clamp(layer.snr_db(), -kClean, kClean);
  }
  struct Loss {
    // UNITS: noise power over signal power.
    double added;
    std::string name;
  };
  std::vector<Loss> losses;
  for (const NodeId quantized : result.Ids()) {
    // Names that quantize_nodes gives, and normalize_weights before it.
    absl::string_view name = result.node(quantized).name();
    if (const auto made = made_as.find(name); made != made_as.end()) {
      name = made->second;
    }
    name = absl::StripSuffix(name, transforms::kScaledSuffix);
    if (!absl::ConsumeSuffix(&name, "/eightbit")) continue;
    const NodeId id = original.Find(absl::StripSuffix(name, "/normalized"));
    if (id == graph::kNoNode) continue;
    // Noise powers add up: only what the layer itself adds counts, so that a
    // clean layer behind a noisy one is not blamed.
    const double own = NearestSnr(original, measured, id, Direction::kDown);
    const double read = NearestSnr(original, measured, id, Direction::kUp);
    losses.push_back({Noise(own) - Noise(read), std::string(name)});
  }
  std::stable_sort(
      losses.begin(), losses.end(),
      [](const Loss& a, const Loss& b) { return a.added > b.added; });
  std::vector<std::string> worst;
  for (const Loss& loss : losses) {
    if (worst.size() == most) break;
    worst.push_back(loss.name);
  }
  return worst;
}

std::vector<std::string> InputLayers(
    const graph::Graph& result,
    absl::Span<const transforms::RenamedNode> name_map) {
  std::map<absl::string_view, absl::string_view> made_as;
  for (const transforms::RenamedNode& renamed : name_map) {
    made_as[renamed.after] = renamed.before;
  }
  std::map<NodeId, std::string> layers;
  for (const NodeId id : result.Ids()) {
    absl::string_view name = result.node(id).name();
    if (const auto made = made_as.find(name); made != made_as.end()) {
      name = made->second;
    }
    name = absl::StripSuffix(name, transforms::kScaledSuffix);
    if (graph::IsQuantizedLayer(result.node(id).op()) &&
        absl::ConsumeSuffix(&name, "/eightbit")) {
      layers.emplace(id, name);
    }
  }
  // All that is behind a layer, but not around a loop: what stands first in it
  // reads inputs in every iteration.
  std::vector<NodeId> open;
  std::vector<bool> is_behind(result.id_limit(), false);
  const auto reach_readers = [&](NodeId id) {
    for (const graph::Use& use : result.node(id).uses()) {
      if (use.is_control() || is_behind[use.consumer] ||
          graph::IsNextIteration(result.node(use.consumer).op())) {
        continue;
      }
      is_behind[use.consumer] = true;
      open.push_back(use.consumer);
    }
  };
  for (const auto& [id, name] : layers) reach_readers(id);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    reach_readers(id);
  }
  std::vector<std::string> first;
  for (const auto& [id, name] : layers) {
    if (!is_behind[id]) first.push_back(name);
  }
  return first;
}

}  // namespace optfarm::optimize
