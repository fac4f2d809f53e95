// What in a graph a runtime does not have, and which transform takes it away.

#ifndef OPTFARM_ENGINE_INSPECT_COMPATIBILITY_H_
#define OPTFARM_ENGINE_INSPECT_COMPATIBILITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace optfarm::inspect {

enum class CompatibilityTarget {
  // This build of our own runtime: ops, dtypes and attribute values. Functions
  // are looked into, as the runtime inlines what calls them.
  kRuntime,
  // TensorFlow 1.4: ops, attributes that came later, and dtypes that an op's
  // signature refuses. Which kernels a build of it has is not known.
  kTensorFlow14,
  // Later versions of TensorFlow, as they are usually built.
  kLaterTensorFlow,
};

// One thing that is missing, with all nodes that it is missing for.
struct Incompatibility {
  std::string op;
  // "has no kernel", "attribute 'dilations' came after TensorFlow 1.4".
  std::string problem;
  // A transform or command that takes it away; "" when none does.
  std::string remedy;
  int64_t nodes = 0;
  // One of the nodes.
  std::string example;
};

// Problems in the order of the graph's nodes. `outputs` are what the graph is
// run for: for other nodes the remedy is to strip them. Without outputs all
// nodes count as needed.
std::vector<Incompatibility> FindIncompatibilities(
    const graph::Graph& graph, absl::Span<const graph::NodeId> inputs,
    absl::Span<const graph::NodeId> outputs, CompatibilityTarget target);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_COMPATIBILITY_H_
