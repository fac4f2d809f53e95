// Small trees of nodes, found by what they are and read by name:
//
//   const Pattern kScaledConv = Inner("Mul", "mul",
//       {Inner("Conv2D|MatMul", "conv", {Leaf("*", "x"), Leaf("Const", "w")}),
//        Leaf("Const", "scale")});
//   RewriteMatches(graph, kScaledConv, [&](const Match& match) {
//     match["conv"] ...
//   });
//
// A leaf matches whatever its inputs are, and one node may be a leaf of many
// matches. Whether an inner node is used elsewhere is the rewrite's question:
// WhyShared answers it.

#ifndef OPTFARM_ENGINE_TRANSFORMS_MACHINERY_PATTERN_H_
#define OPTFARM_ENGINE_TRANSFORMS_MACHINERY_PATTERN_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

struct Pattern {
  // Accepted ops; none: any.
  std::vector<std::string> ops;
  // Name of the node in the match.
  std::string capture;
  bool is_leaf = true;
  // One for each data input; unused in a leaf.
  std::vector<Pattern> inputs;
};

// `ops` is "*", one op, or several with "|" between them.
Pattern Leaf(absl::string_view ops, absl::string_view capture);
Pattern Inner(absl::string_view ops, absl::string_view capture,
              std::vector<Pattern> inputs);

class Match {
 public:
  // REQUIRES: the pattern has that capture.
  graph::NodeId operator[](absl::string_view capture) const;

 private:
  friend bool MatchNode(const graph::Graph& graph, const Pattern& pattern,
                        graph::NodeId node, Match* match);
  std::map<std::string, graph::NodeId, std::less<>> nodes_;
};

// The match whose head is `head`. Control inputs do not count as inputs; a "*"
// stands for any output of any node.
std::optional<Match> MatchAt(const graph::Graph& graph, const Pattern& pattern,
                             graph::NodeId head);

// Offers every node as a head, in the execution order of the graph as it was
// at the start, and calls `rewrite` for each match; the graph may be changed by
// it, and later matches are sought in the changed graph.
// ERRORS: the first error of `rewrite`; InvalidArgument for a cyclic graph.
absl::Status RewriteMatches(
    graph::Graph* graph, const Pattern& pattern,
    absl::FunctionRef<absl::Status(const Match&)> rewrite);

// Whether something reads an output of the node other than its first.
bool HasOtherOutputsRead(const graph::Node& node);

// Why `node` cannot be changed together with its only consumer: it is used by
// another node (control edges count), or is a graph output; "" when it can.
std::string WhyShared(const graph::Graph& graph,
                      const TransformContext& context, graph::NodeId node,
                      graph::NodeId consumer);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_MACHINERY_PATTERN_H_
