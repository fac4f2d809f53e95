// How a graph's text names a tensor, parsed once at the border: "node" is
// output 0 of the node, "node:2" is output 2, "^node" is a control edge.

#ifndef OPTFARM_ENGINE_GRAPH_TENSOR_NAME_H_
#define OPTFARM_ENGINE_GRAPH_TENSOR_NAME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::graph {

// The port number that stands for a control edge.
inline constexpr int kControlPort = -1;

struct TensorName {
  std::string node;
  // Output number, or kControlPort.
  int port = 0;

  bool is_control() const { return port == kControlPort; }
  friend bool operator==(const TensorName&, const TensorName&) = default;
  friend auto operator<=>(const TensorName&, const TensorName&) = default;
};

// Parses "name", "name:port" or "^name".
// ERRORS: InvalidArgument for an empty name or a port that is no number in
// 0..2^31-1.
absl::StatusOr<TensorName> ParseTensorName(absl::string_view text);

// Parses a comma-separated list; an empty text gives an empty list.
absl::StatusOr<std::vector<TensorName>> ParseTensorNames(
    absl::string_view text);

// The spelling TensorFlow writes: ":0" is left out.
std::string ToString(const TensorName& name);
std::string ToString(absl::string_view node, int port);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_TENSOR_NAME_H_
