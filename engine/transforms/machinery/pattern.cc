#include "engine/transforms/machinery/pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace optfarm::transforms {

using graph::Graph;
using graph::NodeId;

Pattern Leaf(absl::string_view ops, absl::string_view capture) {
  Pattern pattern;
  if (ops != "*") pattern.ops = absl::StrSplit(ops, '|');
  pattern.capture = std::string(capture);
  return pattern;
}

Pattern Inner(absl::string_view ops, absl::string_view capture,
              std::vector<Pattern> inputs) {
  Pattern pattern = Leaf(ops, capture);
  pattern.is_leaf = false;
  pattern.inputs = std::move(inputs);
  return pattern;
}

NodeId Match::operator[](absl::string_view capture) const {
  const auto it = nodes_.find(capture);
  OPTFARM_CHECK(it != nodes_.end());
  return it->second;
}

// Recursion is as deep as the pattern, which is ours and not the model's.
bool MatchNode(const Graph& graph, const Pattern& pattern, NodeId id,
               Match* match) {
  const graph::Node& node = graph.node(id);
  if (!pattern.ops.empty() && std::find(pattern.ops.begin(), pattern.ops.end(),
                                        node.op()) == pattern.ops.end()) {
    return false;
  }
  if (!pattern.is_leaf) {
    if (node.inputs().size() != pattern.inputs.size()) return false;
    for (size_t i = 0; i < pattern.inputs.size(); ++i) {
      const Pattern& wanted = pattern.inputs[i];
      const graph::Endpoint& input = node.inputs()[i];
      // A node that is asked for by op has one output; only a model that is
      // damaged reads another.
      if ((!wanted.ops.empty() && input.port != 0) ||
          !MatchNode(graph, wanted, input.node, match)) {
        return false;
      }
    }
  }
  match->nodes_[pattern.capture] = id;
  return true;
}

std::optional<Match> MatchAt(const Graph& graph, const Pattern& pattern,
                             NodeId head) {
  Match match;
  if (!MatchNode(graph, pattern, head, &match)) return std::nullopt;
  return match;
}

absl::Status RewriteMatches(
    Graph* graph, const Pattern& pattern,
    absl::FunctionRef<absl::Status(const Match&)> rewrite) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::ExecutionOrder(*graph));
  for (NodeId id : order) {
    if (!graph->Has(id)) continue;
    const std::optional<Match> match = MatchAt(*graph, pattern, id);
    if (match.has_value()) OPTFARM_RETURN_IF_ERROR(rewrite(*match));
  }
  return absl::OkStatus();
}

bool HasOtherOutputsRead(const graph::Node& node) {
  return std::any_of(node.uses().begin(), node.uses().end(),
                     [](const graph::Use& use) { return use.port > 0; });
}

std::string WhyShared(const Graph& graph, const TransformContext& context,
                      NodeId node, NodeId consumer) {
  const std::string& name = graph.node(node).name();
  if (context.IsInputOrOutput(name)) {
    return absl::StrCat("'", name, "' is an input or output of the graph");
  }
  for (const graph::Use& use : graph.node(node).uses()) {
    if (use.consumer != consumer) {
      return absl::StrCat("'", name, "' is also used by '",
                          graph.node(use.consumer).name(), "'");
    }
  }
  return "";
}

}  // namespace optfarm::transforms
