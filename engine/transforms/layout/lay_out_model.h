// remove_transposes for models of other formats, as soon as they are read.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAY_OUT_MODEL_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAY_OUT_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace optfarm::transforms {

// Takes out the Transposes that a reader of another format had to put around
// nodes. A graph of TensorFlow stays as it is. Declared inputs and outputs
// (engine/graph/model_interface.h) keep their order, and so do the tensors
// `kept`, named as a user does; names that are not in the graph say nothing.
// ERRORS: those of remove_transposes.
absl::Status LayOutModel(absl::Span<const std::string> kept,
                         graph::Graph* graph);

// How many Transposes there are.
int CountTransposes(const graph::Graph& graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAY_OUT_MODEL_H_
