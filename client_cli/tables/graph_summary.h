// What TensorFlow's summarize_graph says about a graph, as text. Works on
// graphs that are too broken for graph::Graph: telling that is its use.

#ifndef OPTFARM_CLIENT_CLI_TABLES_GRAPH_SUMMARY_H_
#define OPTFARM_CLIENT_CLI_TABLES_GRAPH_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::client_cli {

struct GraphSummary {
  // The whole text, lines ended.
  std::string text;
  // The same facts for programs: one JSON object, lines ended.
  std::string json;
  // "Invalid input X for node Y", one a line without newline; empty: none.
  std::vector<std::string> invalid_inputs;
};

// Inputs, variables, outputs, counts of parameters, control edges and ops, and
// a command line that measures the graph: `benchmark` ("optctl graph
// benchmark") with flags, `path` as its graph. When there are invalid inputs
// the text ends before the ops.
GraphSummary SummarizeGraph(const tensorflow::GraphDef& graph,
                            const std::string& path,
                            absl::string_view benchmark);

// "999", "1.00k", "4.25M": TensorFlow's short form of a count.
std::string ShortCount(int64_t count);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_GRAPH_SUMMARY_H_
