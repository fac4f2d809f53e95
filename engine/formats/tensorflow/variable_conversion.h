// Turns variables whose values are known into constants, and what reads them
// into ops that read a constant. Only freeze.cc includes this file.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_VARIABLE_CONVERSION_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_VARIABLE_CONVERSION_H_

#include "absl/status/status.h"
#include "engine/formats/tensorflow/variable_values.h"
#include "engine/graph/graph.h"

namespace optfarm::formats {

// Takes the values. REQUIRES: the keys are variables of the graph.
// ERRORS: InvalidArgument for a node that writes to a variable; Unimplemented
// for a use of a resource that no constant can have. Both name the node.
absl::Status ConvertVariables(VariableValues values, graph::Graph* graph);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_VARIABLE_CONVERSION_H_
