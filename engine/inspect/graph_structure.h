// The nodes of a graph in the order of execution, with the first values of
// constants, as summarize_graph --print_structure lists them.

#ifndef OPTFARM_ENGINE_INSPECT_GRAPH_STRUCTURE_H_
#define OPTFARM_ENGINE_INSPECT_GRAPH_STRUCTURE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::inspect {

// The beginning of a constant.
struct ConstantPreview {
  // Why there is no value: "none", or what is wrong with it. Else empty.
  std::string problem;

  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  runtime::Shape shape;
  // At most three, as TensorFlow writes numbers; "?" where the type has no
  // text.
  std::vector<std::string> first_values;
};

struct StructureNode {
  std::string name;
  std::string op;
  // As the file writes them: "x:0" is not "x" to a reader who searches.
  std::vector<std::string> inputs;
  // Of Const nodes.
  std::optional<ConstantPreview> constant;
};

// ERRORS: InvalidArgument for a graph with a cycle, duplicate names or unknown
// inputs.
absl::StatusOr<std::vector<StructureNode>> ListGraphStructure(
    const tensorflow::GraphDef& graph);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_GRAPH_STRUCTURE_H_
