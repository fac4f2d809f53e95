// A graph from bytes that are known to be a binary GraphDef.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_BINARY_GRAPH_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_BINARY_GRAPH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// UNITS: bytes. Protobuf cannot hold more in one message.
inline constexpr uint64_t kMaxGraphBytes = (uint64_t{1} << 31) - 1;
// A node costs more memory than its two bytes in a hostile file.
inline constexpr int64_t kMaxGraphNodes = 2'000'000;

// ERRORS: ResourceExhausted beyond kMaxGraphBytes; `name` stands in the
// message.
absl::Status CheckGraphSize(absl::string_view bytes, absl::string_view name);

// Parses a graph, whatever its bytes look like; unknown fields are kept.
// ERRORS: InvalidArgument where it is cut off, damaged or no graph;
// ResourceExhausted beyond kMaxGraphBytes or kMaxGraphNodes.
absl::StatusOr<tensorflow::GraphDef> ParseBinaryGraphDef(
    absl::string_view bytes, absl::string_view name);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_BINARY_GRAPH_H_
