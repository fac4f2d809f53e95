// Where two graphs differ, as TensorFlow's compare_graphs sees it: by node
// name, whatever the order of nodes; versions, function libraries and
// attributes whose names begin with "_" do not count.

#ifndef OPTFARM_ENGINE_INSPECT_GRAPH_DIFFERENCE_H_
#define OPTFARM_ENGINE_INSPECT_GRAPH_DIFFERENCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::inspect {

// The first difference of the nodes of one name.
struct NodeDifference {
  enum class Kind {
    // Only the first or only the second graph has the node.
    kNode,
    kOp,
    kDevice,
    kInputCount,
    kInput,
    kControlInputs,
    kAttribute,
  };

  std::string node;
  Kind kind = Kind::kNode;
  // Of kInput: which.
  size_t input = 0;
  // Of kAttribute: its name.
  std::string attribute;
  // What each graph has, as text: an op, a count, "name:port", "^a, ^b", the
  // beginning of an attribute's value, of kNode the name. Absent: it has none.
  std::optional<std::string> first, second;
};

// Up to `most` differences, at most one a node, in the order of `first`'s
// nodes, then of those that only `second` has. "x" and "x:0" are one input,
// control inputs are a set, and tensors are equal when their values are,
// however they are stored. Takes what is no valid graph too.
std::vector<NodeDifference> FindGraphDifferences(
    const tensorflow::GraphDef& first, const tensorflow::GraphDef& second,
    size_t most);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_GRAPH_DIFFERENCE_H_
