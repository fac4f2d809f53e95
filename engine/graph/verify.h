// Whether a graph makes sense as a whole: what graph.h does not check while
// reading. Dangling inputs and duplicate names cannot be in a Graph.

#ifndef OPTFARM_ENGINE_GRAPH_VERIFY_H_
#define OPTFARM_ENGINE_GRAPH_VERIFY_H_

#include "absl/status/status.h"
#include "engine/graph/graph.h"

namespace optfarm::graph {

struct VerifyOptions {
  // Whether an op that is neither in our table nor a function of the graph is
  // a problem. When it is not, its edges are checked as far as the other end
  // is known.
  bool refuse_unknown_ops = false;
  // Whether a NaN in a constant is a problem. Reads every float constant.
  bool refuse_nan = false;
  // After this many problems the rest is not told.
  int max_problems = 8;
};

// Checks that
//   - names can be written in an input ("a:1", "^a" are no names);
//   - each node has as many data inputs as its op takes, reads only ports that
//     exist, and what it reads has the type that it takes;
//   - a cycle goes through NextIteration -> Merge;
//   - constants have a value of their declared type, whose bytes fit its shape
//     (checked without making the tensor, whatever it claims).
// Functions of the graph's library count as ops; their bodies are not looked
// into.
// ERRORS: InvalidArgument; the message has one line for each problem, naming
// node and op.
absl::Status Verify(const Graph& graph, const VerifyOptions& options = {});

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_VERIFY_H_
