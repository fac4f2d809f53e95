// What TensorFlow's summarize_graph says about a graph, as text. Works on
// graphs that are too broken for graph::Graph: telling that is its use.

#ifndef OPTFARM_CLIENT_CLI_GRAPH_SUMMARY_H_
#define OPTFARM_CLIENT_CLI_GRAPH_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::client_cli {

struct GraphSummary {
  // The whole text, lines ended.
  std::string text;
  // "Invalid input X for node Y", one a line without newline; empty: none.
  std::vector<std::string> invalid_inputs;
};

// Inputs, variables, outputs, counts of parameters, control edges and ops, and
// a command line that measures the graph; `path` stands in that. When there are
// invalid inputs the text ends before the ops.
GraphSummary SummarizeGraph(const tensorflow::GraphDef& graph,
                            const std::string& path);

// One line a node in execution order: "name (Op): [in1, in2]"; constants with
// their first values.
// ERRORS: InvalidArgument for a graph with a cycle, duplicate names or unknown
// inputs.
absl::StatusOr<std::string> PrintGraphStructure(
    const tensorflow::GraphDef& graph);

// "999", "1.00k", "4.25M": TensorFlow's short form of a count.
std::string ShortCount(int64_t count);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_GRAPH_SUMMARY_H_
