// SavedModel folders and MetaGraphs: a graph together with what is known of its
// inputs, outputs and variables.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_SAVED_MODEL_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_SAVED_MODEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace optfarm::formats {

// Whether the folder has a saved_model.pb or saved_model.pbtxt.
bool IsSavedModelFolder(const std::string& path);

// Parses saved_model.pb or .pbtxt, or a MetaGraphDef (a checkpoint's .meta
// file), binary or text. `name` stands in messages.
// ERRORS: InvalidArgument for bytes that are something else or damaged, or an
// unknown schema version; ResourceExhausted beyond the limits of graph files.
absl::StatusOr<tensorflow::SavedModel> ParseSavedModel(absl::string_view bytes,
                                                       absl::string_view name);
absl::StatusOr<tensorflow::MetaGraphDef> ParseMetaGraph(absl::string_view bytes,
                                                        absl::string_view name);

// ERRORS: the above; the file's; NotFound for a folder without SavedModel.
absl::StatusOr<tensorflow::SavedModel> LoadSavedModel(
    const std::string& folder);
absl::StatusOr<tensorflow::MetaGraphDef> LoadMetaGraph(const std::string& path);

// Takes the graph whose set of tags is the given one; a SavedModel with one
// graph only gives that when `tags` is empty.
// ERRORS: NotFound listing the tags that there are.
absl::StatusOr<tensorflow::MetaGraphDef> TakeMetaGraph(
    tensorflow::SavedModel model, const std::vector<std::string>& tags);

// One end of a signature.
struct SignatureTensor {
  // What a caller knows it by.
  std::string key;
  // "node" or "node:port".
  std::string tensor;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  // Sizes, -1 for one that is not known; absent when the rank is not known.
  std::optional<std::vector<int64_t>> shape;
};

// Sorted by key.
struct Signature {
  std::string key;
  std::string method;
  std::vector<SignatureTensor> inputs;
  std::vector<SignatureTensor> outputs;
};

// The signature of that name. For an empty name "serving_default", or the only
// one there is.
// ERRORS: NotFound listing the signatures; Unimplemented for sparse and
// composite tensors; InvalidArgument for a malformed tensor name.
absl::StatusOr<Signature> FindSignature(
    const tensorflow::MetaGraphDef& meta_graph, absl::string_view key);

// Names of the signatures that a caller may ask for, sorted.
std::vector<std::string> SignatureNames(
    const tensorflow::MetaGraphDef& meta_graph);

// The node that a loader runs after the variables are restored; "" for none.
// ERRORS: InvalidArgument when a collection that must name one node names
// another number.
absl::StatusOr<std::string> InitOpOf(
    const tensorflow::MetaGraphDef& meta_graph);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_SAVED_MODEL_H_
