// What TensorFlow's summarize_graph finds in a graph. Works on graphs that are
// too broken for graph::Graph: reporting that is its use.

#ifndef OPTFARM_ENGINE_INSPECT_GRAPH_SUMMARY_H_
#define OPTFARM_ENGINE_INSPECT_GRAPH_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::inspect {

// A placeholder or a variable.
struct SummaryTensor {
  enum class ShapeKind { kNotGiven, kNotAShape, kUnknownRank, kDims };

  // The node's.
  std::string name;
  // The file's; `name` where the file is a TensorFlow graph.
  std::string name_in_file;
  // DT_INVALID: not given.
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  ShapeKind shape_kind = ShapeKind::kNotGiven;
  // UNITS: elements, as the file has them; -1: not known. Of kDims.
  std::vector<int64_t> dims;
};

struct SummaryOutput {
  // The node's.
  std::string name;
  // As SummaryTensor has it.
  std::string name_in_file;
  std::string op;
};

struct InvalidInput {
  // As the file writes it.
  std::string input;
  // The node that reads it.
  std::string node;
};

struct GraphSummary {
  std::vector<SummaryTensor> inputs;
  std::vector<SummaryTensor> variables;
  // What the file declares, in its order; for a TensorFlow graph, which
  // declares nothing, the nodes that nobody reads as far as they can be
  // outputs.
  std::vector<SummaryOutput> outputs;
  // UNITS: elements; what cannot be decoded counts nothing.
  int64_t const_parameters = 0;
  int64_t variable_parameters = 0;
  int64_t control_edges = 0;
  // UNITS: nodes by device, of those that have one.
  std::map<std::string, int64_t> devices;
  // Inputs that name no node of the graph.
  std::vector<InvalidInput> invalid_inputs;
  // Ops of nodes and of function bodies, the most frequent first. UNITS: nodes.
  std::vector<std::pair<std::string, int64_t>> ops;
};

GraphSummary SummarizeGraph(const tensorflow::GraphDef& graph);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_GRAPH_SUMMARY_H_
