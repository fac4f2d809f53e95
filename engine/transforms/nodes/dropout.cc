#include "engine/transforms/nodes/dropout.h"

#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;

// A mask is made from random numbers in a few steps.
constexpr int kMostSteps = 16;

const graph::Node& NodeAt(const Graph& graph, Endpoint e) {
  return graph.node(e.node);
}

bool IsOp(const Graph& graph, Endpoint e,
          std::initializer_list<absl::string_view> ops, size_t inputs) {
  const graph::Node& node = NodeAt(graph, e);
  if (e.port != 0 || node.inputs().size() != inputs) return false;
  for (absl::string_view op : ops) {
    if (node.op() == op) return true;
  }
  return false;
}

Endpoint SkipIdentity(const Graph& graph, Endpoint e) {
  for (int steps = 0; steps < kMostSteps && IsOp(graph, e, {"Identity"}, 1);
       ++steps) {
    e = NodeAt(graph, e).inputs()[0];
  }
  return e;
}

// uniform * (max - min) + min and the like.
bool IsUniform(const Graph& graph, Endpoint e) {
  std::vector<Endpoint> left = {e};
  for (int steps = 0; steps < kMostSteps && !left.empty(); ++steps) {
    const Endpoint at = left.back();
    left.pop_back();
    if (IsOp(graph, at, {"RandomUniform"}, 1)) return true;
    if (IsOp(graph, at, {"Identity"}, 1) ||
        IsOp(graph, at, {"Add", "AddV2", "Mul"}, 2)) {
      for (const Endpoint& input : NodeAt(graph, at).inputs()) {
        left.push_back(input);
      }
    }
  }
  return false;
}

std::optional<float> ScalarOf(const Graph& graph, Endpoint e) {
  e = SkipIdentity(graph, e);
  if (!IsConst(NodeAt(graph, e))) return std::nullopt;
  const absl::StatusOr<FloatView> view = FloatView::Of(NodeAt(graph, e));
  if (!view.ok() || view->values().size() != 1) return std::nullopt;
  return view->values()[0];
}

bool IsSame(const Graph& graph, Endpoint a, Endpoint b) {
  if (SkipIdentity(graph, a) == SkipIdentity(graph, b)) return true;
  const std::optional<float> of_a = ScalarOf(graph, a);
  return of_a.has_value() && of_a == ScalarOf(graph, b);
}

// 1 - rate
bool IsOneMinus(const Graph& graph, Endpoint e, Endpoint rate) {
  const std::optional<float> value = ScalarOf(graph, e);
  const std::optional<float> of_rate = ScalarOf(graph, rate);
  if (value.has_value() && of_rate.has_value()) {
    return std::abs(*value - (1.0f - *of_rate)) < 1e-6f;
  }
  e = SkipIdentity(graph, e);
  return IsOp(graph, e, {"Sub"}, 2) &&
         ScalarOf(graph, NodeAt(graph, e).inputs()[0]) == 1.0f &&
         IsSame(graph, NodeAt(graph, e).inputs()[1], rate);
}

// 1 / (1 - rate)
bool IsInverse(const Graph& graph, Endpoint e, Endpoint rate) {
  const std::optional<float> value = ScalarOf(graph, e);
  const std::optional<float> of_rate = ScalarOf(graph, rate);
  if (value.has_value() && of_rate.has_value()) {
    return std::abs(*value * (1.0f - *of_rate) - 1.0f) < 1e-5f;
  }
  e = SkipIdentity(graph, e);
  return IsOp(graph, e, {"RealDiv", "Div"}, 2) &&
         ScalarOf(graph, NodeAt(graph, e).inputs()[0]) == 1.0f &&
         IsOneMinus(graph, NodeAt(graph, e).inputs()[1], rate);
}

struct Mask {
  // The probability to keep an element, or to drop it.
  Endpoint probability;
  bool keeps = false;
};

std::optional<Mask> ReadMask(const Graph& graph, Endpoint e) {
  if (IsOp(graph, e, {"Floor"}, 1)) {
    const Endpoint sum = NodeAt(graph, e).inputs()[0];
    if (!IsOp(graph, sum, {"Add", "AddV2"}, 2)) return std::nullopt;
    const auto terms = NodeAt(graph, sum).inputs();
    if (IsUniform(graph, terms[1])) return Mask{terms[0], true};
    if (IsUniform(graph, terms[0])) return Mask{terms[1], true};
  } else if (IsOp(graph, e, {"Cast"}, 1)) {
    const Endpoint comparison = NodeAt(graph, e).inputs()[0];
    if (!IsOp(graph, comparison, {"GreaterEqual"}, 2)) return std::nullopt;
    const auto sides = NodeAt(graph, comparison).inputs();
    if (IsUniform(graph, sides[0])) return Mask{sides[1], false};
  }
  return std::nullopt;
}

// x, when `e` is x divided by the probability to keep.
std::optional<Endpoint> ReadScaled(const Graph& graph, Endpoint e,
                                   const Mask& mask) {
  if (IsOp(graph, e, {"RealDiv", "Div"}, 2)) {
    const auto inputs = NodeAt(graph, e).inputs();
    const bool fits = mask.keeps
                          ? IsSame(graph, inputs[1], mask.probability)
                          : IsOneMinus(graph, inputs[1], mask.probability);
    if (fits) return inputs[0];
  } else if (IsOp(graph, e, {"Mul"}, 2) && !mask.keeps) {
    const auto inputs = NodeAt(graph, e).inputs();
    for (size_t factor : {1, 0}) {
      if (IsInverse(graph, inputs[factor], mask.probability)) {
        return inputs[1 - factor];
      }
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::optional<Endpoint>> FindDropout(const Graph& graph,
                                                    graph::NodeId node) {
  if (!IsOp(graph, {node, 0}, {"Mul"}, 2)) return std::nullopt;
  const auto inputs = graph.node(node).inputs();
  for (size_t i : {1, 0}) {
    const std::optional<Mask> mask = ReadMask(graph, inputs[i]);
    if (!mask.has_value()) continue;
    const std::optional<Endpoint> x = ReadScaled(graph, inputs[1 - i], *mask);
    if (x.has_value()) return x;
    return absl::FailedPreconditionError(
        "a random mask that no division makes up for: without it results "
        "would be larger on average");
  }
  return std::nullopt;
}

}  // namespace optfarm::transforms
