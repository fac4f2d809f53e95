// The steps of one recurrent layer as nodes.

#ifndef OPTFARM_ENGINE_EXPORT_RECURRENT_STEPS_H_
#define OPTFARM_ENGINE_EXPORT_RECURRENT_STEPS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::exporting {

enum class LayerKind { kLstm, kGru, kRnn };
// nullopt for an op that is no LstmSequence, GruSequence or RnnSequence.
std::optional<LayerKind> LayerKindOf(absl::string_view op);

struct UnrolledLayer {
  // What stands for the node's outputs.
  std::vector<graph::Endpoint> outputs;
  tensorflow::DataType type = tensorflow::DT_FLOAT;
};

// Adds the steps of a layer; nullopt where their number is not known or above
// 512, and for batches of unknown size. Nodes are only added.
// ERRORS: InvalidArgument for a layer that is not well formed; Unimplemented
// for an activation that we do not know.
absl::StatusOr<std::optional<UnrolledLayer>> UnrollSequence(
    graph::NodeId id, const graph::ShapeMap& shapes, graph::Graph* graph);
absl::StatusOr<std::optional<UnrolledLayer>> UnrollLiteLstm(
    graph::NodeId id, const graph::ShapeMap& shapes, graph::Graph* graph);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_RECURRENT_STEPS_H_
