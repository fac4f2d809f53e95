// Binary graphs between memory and file, a node at a time: a model's weights
// are in memory once, not once as a graph and once more as bytes.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_STREAM_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_STREAM_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/files.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// Whether a node's op looks like one: other messages that happen to parse have
// none where a node has it.
bool IsOpName(absl::string_view op);

// Reads a binary graph in which nothing is wrong; nullopt when the file needs a
// closer look (ParseGraphDef of graph_file.h). What this accepts, that accepts
// as well.
std::optional<tensorflow::GraphDef> ReadGraphStream(const std::string& path,
                                                    uint64_t max_bytes);

// Writes the graph's bytes, the same in every process; false when the stream
// fails. REQUIRES: graph.ByteSizeLong() was called since the last change and is
// at most kMaxGraphBytes.
bool WriteGraph(const tensorflow::GraphDef& graph,
                google::protobuf::io::ZeroCopyOutputStream* stream);

// The same into a file; large tensors go straight from where they are.
// ERRORS: the file's.
absl::Status WriteGraph(const tensorflow::GraphDef& graph, AtomicFile* file);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_STREAM_H_
