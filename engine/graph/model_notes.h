// What a model file of another format says for those who use the model: how
// pictures are fed, names of classes, free properties. Readers write it into
// attributes of the node of the first output; a TensorFlow graph has none.

#ifndef OPTFARM_ENGINE_GRAPH_MODEL_NOTES_H_
#define OPTFARM_ENGINE_GRAPH_MODEL_NOTES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::graph {

// list(string); list(float) twice; list(string): keys and values in turn.
inline constexpr absl::string_view kLabelsAttr = "_labels";
inline constexpr absl::string_view kInputMeanAttr = "_input_mean";
inline constexpr absl::string_view kInputStdAttr = "_input_std";
inline constexpr absl::string_view kModelMetadataAttr = "_model_metadata";

struct ModelNotes {
  // Names of the classes, in the order of the first output's last dimension.
  std::vector<std::string> labels;
  // UNITS: grey levels, 0..255. The first input is fed (level - mean) / std;
  // one number, or one for each channel. As many of both, or none.
  std::vector<float> mean, std;
  // Other entries of the file by name.
  std::vector<std::pair<std::string, std::string>> properties;

  bool empty() const {
    return labels.empty() && mean.empty() && properties.empty();
  }
};

// Whether pictures can be scaled so: as many of both, at most 4096, finite, and
// nothing divided by 0.
bool IsScale(absl::Span<const float> mean, absl::Span<const float> std);

// Writes the notes into attributes of the node; what is empty is left out.
void SetModelNotes(const ModelNotes& notes, tensorflow::NodeDef* node);

// Those of the first node that has any.
ModelNotes ReadModelNotes(const Graph& graph);
ModelNotes ReadModelNotes(const tensorflow::GraphDef& graph);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_MODEL_NOTES_H_
