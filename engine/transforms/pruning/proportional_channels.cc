#include "engine/transforms/pruning/proportional_channels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/transforms/nodes/channel_affine.h"
#include "engine/transforms/pruning/channel_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ShapeMap;

// What floats that are meant to be equal differ by.
constexpr double kRounding = 1e-6;

using Weights = std::vector<float>;

double Dot(const Weights& a, const Weights& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double Sum(const Weights& a) {
  return std::accumulate(a.begin(), a.end(), 0.0);
}

// The factor with the least squared difference between b and factor * a;
// nullopt when that is more than a share of b.
std::optional<double> FactorOf(const Weights& a, const Weights& b,
                               double share) {
  const double aa = Dot(a, a), ab = Dot(a, b), bb = Dot(b, b);
  if (!(aa > 0) || !std::isfinite(aa) || !std::isfinite(bb)) {
    return std::nullopt;
  }
  const double factor = ab / aa;
  double error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = b[i] - factor * a[i];
    error += difference * difference;
  }
  if (!(std::sqrt(error) <= share * std::sqrt(bb))) return std::nullopt;
  return factor;
}

// The weights of each channel that comes out.
std::vector<Weights> ColumnsOf(const Graph& graph, const ShapeMap& shapes,
                               NodeId product) {
  const auto weights = ReadProductWeights(graph, shapes, product);
  const absl::Span<const float> values = weights->view.values();
  const auto count = static_cast<size_t>(
      weights->outputs() * (weights->is_depthwise ? weights->inputs() : 1));
  std::vector<Weights> columns(count);
  for (Weights& column : columns) column.reserve(values.size() / count);
  for (size_t i = 0; i < values.size(); ++i) {
    columns[static_cast<size_t>(weights->OutputOf(static_cast<int64_t>(i)))]
        .push_back(values[i]);
  }
  return columns;
}

// A proportion along the flow, and how large the channel may be.
struct Running {
  Proportion proportion;
  double size = 0;
};

class Finder {
 public:
  Finder(const Graph& graph, const ShapeMap& shapes, const ChannelFlow& flow,
         std::vector<Weights> columns, double tolerance)
      : flow_(flow),
        columns_(std::move(columns)),
        share_(std::max(tolerance, kRounding)),
        stages_(flow.steps.size()) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      const FlowStep& step = flow.steps[i];
      if (step.kind == StepKind::kAffine) {
        stages_[i].affine = (**ReadAffineNode(graph, step.node)).affine;
      } else if (step.kind == StepKind::kDepthwise) {
        stages_[i].filters = ColumnsOf(graph, shapes, step.node);
        stages_[i].sees_no_padding = SeesNoPadding(
            graph.node(step.node),
            ReadProductWeights(graph, shapes, step.node)->view.shape());
      } else if (step.kind == StepKind::kReader) {
        stages_[i].sees_no_padding = SeesNoPadding(
            graph.node(step.node),
            ReadProductWeights(graph, shapes, step.node)->view.shape());
      }
    }
  }

  std::vector<ProportionalChannel> Find(const std::vector<bool>& is_removed) {
    std::vector<std::pair<double, int64_t>> by_norm;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const double norm = std::sqrt(Dot(columns_[c], columns_[c]));
      if (is_removed[c] || !(norm > 0) || !std::isfinite(norm)) continue;
      by_norm.push_back({-norm, static_cast<int64_t>(c)});
    }
    std::sort(by_norm.begin(), by_norm.end());
    std::vector<ProportionalChannel> found;
    // Channels that stay, by what Project says of them.
    std::multimap<double, int64_t> kept;
    for (const auto& [negative_norm, channel] : by_norm) {
      const double place = Project(channel, -negative_norm);
      auto merged = BestAmong(kept, place, channel);
      if (merged) {
        found.push_back(*std::move(merged));
      } else {
        kept.emplace(place, channel);
      }
    }
    return found;
  }

 private:
  struct Stage {
    ChannelAffine affine;
    std::vector<Weights> filters;
    bool sees_no_padding = true;
  };

  // The direction of a channel's weights, measured along a fixed one: those of
  // channels whose weights nearly point the same way are near to each other.
  double Project(int64_t channel, double norm) const {
    const Weights& column = columns_[static_cast<size_t>(channel)];
    double sum = 0;
    uint32_t bits = 1;
    for (const float value : column) {
      bits = bits * 1664525u + 1013904223u;
      sum += (bits >> 31) != 0 ? value : -value;
    }
    return sum / norm / std::sqrt(static_cast<double>(column.size()));
  }

  std::optional<ProportionalChannel> BestAmong(
      const std::multimap<double, int64_t>& kept, double place,
      int64_t channel) const {
    // Directions whose sine is the share are at most so far apart.
    const double reach = std::sqrt(2.0) * share_ + kRounding;
    const auto end = kept.upper_bound(place + reach);
    for (auto it = kept.lower_bound(place - reach); it != end; ++it) {
      ProportionalChannel pair = {channel, it->second, {}};
      if (Follow(&pair)) return pair;
    }
    return std::nullopt;
  }

  // Whether the two stay proportional up to all readers.
  bool Follow(ProportionalChannel* pair) const {
    const Weights& own = columns_[static_cast<size_t>(pair->channel)];
    const auto factor =
        FactorOf(columns_[static_cast<size_t>(pair->other)], own, share_);
    if (!factor) return false;
    const Running first = {{*factor, 0}, std::sqrt(Dot(own, own))};
    std::vector<Running> running(stages_.size());
    for (size_t i = 0; i < stages_.size(); ++i) {
      const int parent = flow_.steps[i].parent;
      running[i] = parent < 0 ? first : running[static_cast<size_t>(parent)];
      if (!Pass(i, *pair, &running[i])) return false;
      pair->steps.push_back(running[i].proportion);
    }
    return true;
  }

  // Drops a shift that is nothing but rounding, or within the tolerance.
  bool DropShift(Running* running) const {
    Proportion& proportion = running->proportion;
    if (!(std::abs(proportion.shift) <= share_ * running->size)) return false;
    proportion.shift = 0;
    return true;
  }

  bool Pass(size_t i, const ProportionalChannel& pair, Running* running) const {
    Proportion& proportion = running->proportion;
    switch (flow_.steps[i].kind) {
      case StepKind::kSame:
        // A maximum of what is turned around would be a minimum.
        return proportion.factor > 0;
      case StepKind::kZeroPadded:
        return DropShift(running);
      case StepKind::kRelu:
        return proportion.factor > 0 && DropShift(running);
      case StepKind::kElementwise:
        if (!(std::abs(proportion.factor - 1) <= share_)) return false;
        return DropShift(running);
      case StepKind::kAffine:
        return PassAffine(i, pair, running);
      case StepKind::kDepthwise:
        return PassDepthwise(i, pair, running);
      case StepKind::kReader:
        return stages_[i].sees_no_padding || DropShift(running);
    }
    return false;
  }

  bool PassAffine(size_t i, const ProportionalChannel& pair,
                  Running* running) const {
    const ChannelAffine& affine = stages_[i].affine;
    const ChannelSpan& span = flow_.steps[i].span;
    if (span.width != 1) return false;
    const auto at = [&](const std::vector<double>& values, int64_t channel) {
      return values.size() == 1
                 ? values[0]
                 : values[static_cast<size_t>(span.offset + channel)];
    };
    const double other = at(affine.scale, pair.other);
    const double own = at(affine.scale, pair.channel);
    const double shift = at(affine.shift, pair.channel);
    if (other == 0 || own == 0) return false;
    Proportion& proportion = running->proportion;
    proportion.factor *= own / other;
    proportion.shift = own * proportion.shift + shift -
                       proportion.factor * at(affine.shift, pair.other);
    running->size = std::abs(own) * running->size + std::abs(shift);
    return std::isfinite(proportion.factor) && std::isfinite(proportion.shift);
  }

  bool PassDepthwise(size_t i, const ProportionalChannel& pair,
                     Running* running) const {
    const Stage& stage = stages_[i];
    const ChannelSpan& span = flow_.steps[i].span;
    // Several filters for a channel have a proportion each.
    if (span.width != 1 ||
        stage.filters.size() != static_cast<size_t>(span.period)) {
      return false;
    }
    if (!stage.sees_no_padding && !DropShift(running)) return false;
    const Weights& own =
        stage.filters[static_cast<size_t>(span.offset + pair.channel)];
    const auto factor =
        FactorOf(stage.filters[static_cast<size_t>(span.offset + pair.other)],
                 own, share_);
    if (!factor || *factor == 0) return false;
    running->proportion.factor *= *factor;
    running->proportion.shift *= Sum(own);
    running->size *= std::sqrt(Dot(own, own));
    return true;
  }

  const ChannelFlow& flow_;
  const std::vector<Weights> columns_;
  const double share_;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<ProportionalChannel> FindProportional(
    const Graph& graph, const ShapeMap& shapes, NodeId layer,
    const ChannelFlow& flow, const std::vector<bool>& is_removed,
    double tolerance) {
  return Finder(graph, shapes, flow, ColumnsOf(graph, shapes, layer), tolerance)
      .Find(is_removed);
}

}  // namespace optfarm::transforms
