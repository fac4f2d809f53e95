// Graphs in protobuf's text format. A runtime that is built small
// (OPTFARM_LITE_RUNTIME) has none: text needs descriptors of all messages.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_TEXT_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// ERRORS: InvalidArgument with line and column; Unimplemented in a small
// runtime.
absl::StatusOr<tensorflow::GraphDef> ParseGraphText(absl::string_view bytes,
                                                    absl::string_view name);

// Without unknown fields, which have no place in text.
// ERRORS: ResourceExhausted; Unimplemented in a small runtime.
absl::StatusOr<std::string> PrintGraphText(const tensorflow::GraphDef& graph);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_GRAPH_TEXT_H_
