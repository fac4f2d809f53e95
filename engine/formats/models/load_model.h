// The common door for model files: a graph from a file of any format that we
// read. The format is found by content, never by the file's name. Programs that
// only run graphs, such as the device agent, take loaded_graph.h in its place
// and do without the readers of other formats.

#ifndef OPTFARM_ENGINE_FORMATS_MODELS_LOAD_MODEL_H_
#define OPTFARM_ENGINE_FORMATS_MODELS_LOAD_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/authenticated_encryption.h"
#include "engine/formats/tensorflow/binary_graph.h"
#include "engine/formats/tensorflow/mapped_graph.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// A GraphDef of any kind that LoadGraph takes, a TensorFlow Lite model, or an
// ONNX model, whose external data are read from the file's folder; encrypted
// ones with the environment's key. Graphs of other formats declare their inputs
// and outputs (engine/graph/model_interface.h). ERRORS: LoadGraph's; the
// reader's (onnx/reader.h, tflite/reader.h).
absl::StatusOr<LoadedGraph> LoadModel(const std::string& path,
                                      uint64_t max_bytes = kMaxGraphBytes);

// The same with all constants in the graph itself, none left in the file.
absl::StatusOr<tensorflow::GraphDef> LoadModelDef(
    const std::string& path, uint64_t max_bytes = kMaxGraphBytes);

// LoadModel from a file's bytes, which are not needed any more afterwards.
// `folder` is where external data are; empty: there are none. `name` stands in
// messages. With a key, encrypted bytes are decrypted with it, else with the
// environment's.
absl::StatusOr<LoadedGraph> LoadModelFromMemory(
    absl::string_view bytes, const std::optional<AeadKey>& key,
    const std::string& name, const std::string& folder = "");

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_MODELS_LOAD_MODEL_H_
