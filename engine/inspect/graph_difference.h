// Where two graphs differ, as TensorFlow's compare_graphs sees it: by node
// name, whatever the order of nodes; versions, function libraries and
// attributes whose names begin with "_" do not count.

#ifndef OPTFARM_ENGINE_INSPECT_GRAPH_DIFFERENCE_H_
#define OPTFARM_ENGINE_INSPECT_GRAPH_DIFFERENCE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::inspect {

// Up to `most` differences, one sentence each, in the order of `first`'s nodes,
// then of those that only `second` has. "x" and "x:0" are one input, control
// inputs are a set, and tensors are equal when their values are, however they
// are stored.
std::vector<std::string> FindGraphDifferences(
    const tensorflow::GraphDef& first, const tensorflow::GraphDef& second,
    size_t most);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_GRAPH_DIFFERENCE_H_
