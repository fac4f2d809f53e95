// What TensorFlow's Python tools strip_unused and optimize_for_inference do to
// a graph. They predate the transforms and differ from those of similar names
// in details that other tools have come to rely on.

#ifndef OPTFARM_ENGINE_TRANSFORMS_CLEANUP_INFERENCE_GRAPH_H_
#define OPTFARM_ENGINE_TRANSFORMS_CLEANUP_INFERENCE_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/pipeline.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::transforms {

// The nodes between which a graph is cut out.
struct GraphBorder {
  // Names of nodes, without ports.
  std::vector<std::string> inputs, outputs;
  // Of the Placeholders that inputs become: one for all, or one each.
  std::vector<tensorflow::DataType> input_types = {tensorflow::DT_FLOAT};
};

// Keeps what the outputs need, control inputs included. Every input becomes a
// Placeholder of its declared type that keeps the attributes `shape` and
// `_output_shapes`, even one that was a Placeholder before.
// ERRORS: InvalidArgument for a name with a port, without outputs or with a
// wrong number of types; NotFound for a name that is not in the graph, with
// the nearest names. The graph is as it was then.
absl::Status StripUnused(const GraphBorder& border, graph::Graph* graph);

// Takes out CheckNumerics, and Identity where no control edge is involved;
// nodes named in `keep` stay.
void RemoveTrainingNodes(absl::Span<const std::string> keep,
                         graph::Graph* graph);

// Both of the above, then batch norms of the old kinds are folded into their
// convolutions and, with `fuse_convolutions`, resizing and padding fused with
// the convolutions behind them. The report tells of the steps after the first
// two.
// ERRORS: StripUnused's and RunTransforms's.
absl::StatusOr<PipelineReport> OptimizeForInference(const GraphBorder& border,
                                                    bool fuse_convolutions,
                                                    graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_CLEANUP_INFERENCE_GRAPH_H_
