// Graph files: a GraphDef, binary or text. The format is found by content,
// never by the file's name, and a file that is something else is named for
// what it is.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_FILE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/tensorflow/binary_graph.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

enum class GraphEncoding { kBinary, kText };

// Parses a graph: binary, text, or in a memory-mapped package, whose constants
// are copied into it (loaded_graph.h leaves them where they are), or any of
// these encrypted (encrypted_model.h; the environment has the key). `name`
// stands in messages, quoted by the caller if it is a file ("'model.pb'", "the
// graph"). Unknown fields of binary graphs are kept. ERRORS: InvalidArgument
// saying what the bytes are instead (a SavedModel, a checkpoint, a TensorFlow
// Lite model, ...) and what to do, where a binary graph is cut off or damaged,
// or the line and column of an error in text; ResourceExhausted beyond
// kMaxGraphBytes or kMaxGraphNodes.
absl::StatusOr<tensorflow::GraphDef> ParseGraphDef(
    absl::string_view bytes, absl::string_view name = "the graph");

// Reads and parses a file.
// ERRORS: ParseGraphDef's; NotFound (saying so when `path` is a checkpoint's
// prefix), PermissionDenied and Unavailable for the file itself;
// InvalidArgument for a folder; ResourceExhausted when it is larger than
// `max_bytes`.
absl::StatusOr<tensorflow::GraphDef> LoadGraphDef(
    const std::string& path, uint64_t max_bytes = kMaxGraphBytes);

// The graph's bytes: the same graph gives the same bytes in every process.
// Text has no place for unknown fields, they are left out there.
// ERRORS: ResourceExhausted when the graph is too large for one message.
absl::StatusOr<std::string> SerializeGraphDef(
    const tensorflow::GraphDef& graph,
    GraphEncoding encoding = GraphEncoding::kBinary);

// Writes a file atomically. ERRORS: SerializeGraphDef's and the file's.
absl::Status SaveGraphDef(const tensorflow::GraphDef& graph,
                          const std::string& path,
                          GraphEncoding encoding = GraphEncoding::kBinary);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_FILE_H_
