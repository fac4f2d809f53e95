// State that lasts from one run of a model to the next (the variables of
// TensorFlow Lite files) as inputs and outputs, for formats that have no state:
// who runs the model hands each run what the run before gave.

#ifndef OPTFARM_ENGINE_EXPORT_EXPOSE_STATE_H_
#define OPTFARM_ENGINE_EXPORT_EXPOSE_STATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::exporting {

// A variable that became an input and an output of the same type and shape.
struct ExposedState {
  // Nodes, and tensors in the file: "state_in/NAME", "state_out/NAME".
  std::string input, output;
  // What the first run is handed.
  runtime::Tensor initial;
};

// Replaces the reads of each variable by a placeholder, and what stores its
// last value by an output, which are declared behind the others. A variable
// that the model never stores becomes its initial value. In the order of the
// variables' names.
// ERRORS: FailedPrecondition for a variable whose initial value depends on the
// inputs or which something else reads; the graph is then of no use.
absl::StatusOr<std::vector<ExposedState>> ExposeState(graph::Graph* graph);

// What the user of the file has to know: each input, its output, and what it is
// at first. One line for each.
std::string DescribeState(const std::vector<ExposedState>& states);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_EXPOSE_STATE_H_
