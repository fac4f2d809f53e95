// The nodes with which a training graph saves its variables into checkpoints
// and restores them (tf.train.Saver): adding variables to them, and asking them
// under which name a variable is saved.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_SAVED_VARIABLES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_SAVED_VARIABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// Lets each SaveV2 of the graph save these float scalar variables too, under
// their nodes' names, and whatever restores the others restore them. A saver
// that is not understood is left alone with a warning.
void AddToSavers(const std::vector<graph::NodeId>& variables,
                 TransformContext* context, graph::Graph* graph);

// Where a variable's value lies in a checkpoint.
struct SavedAs {
  // Key of the tensor; the variable's own name when nothing restores it.
  std::string name;
  // TensorFlow's shape-and-slice text, "" for the whole tensor: the variable is
  // a part of a partitioned one.
  std::string slice;
};
// ERRORS: InvalidArgument when the restoring nodes are malformed.
absl::StatusOr<SavedAs> FindSavedName(const graph::Graph& graph,
                                      graph::NodeId variable);

// The offset and the length along each axis that a shape-and-slice text
// ("10 4 0,5:-": rows 0 to 4 of a 10 by 4 tensor) chooses.
struct SliceRange {
  int64_t begin = 0;
  int64_t length = 0;
};
// ERRORS: InvalidArgument for text of another form, or a range outside.
absl::StatusOr<std::vector<SliceRange>> ParseSlice(absl::string_view text);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_SAVED_VARIABLES_H_
