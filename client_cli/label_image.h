// What a classifier says about a picture: TensorFlow's label_image.

#ifndef OPTFARM_CLIENT_CLI_LABEL_IMAGE_H_
#define OPTFARM_CLIENT_CLI_LABEL_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::client_cli {

struct LabelImageRequest {
  // A JPEG or PNG file.
  std::string image;
  // One label a line.
  std::string labels;
  // What the model takes. UNITS: pixels.
  int input_width = 299;
  int input_height = 299;
  // A pixel v of 0..255 is fed as (v - input_mean) / input_std.
  float input_mean = 0;
  float input_std = 255;
  graph::TensorName input_layer, output_layer;
};

struct ImageLabel {
  // "" where the file has no line for the index.
  std::string label;
  int64_t index = 0;
  float score = 0;
};

// The five best labels, or as many as the file has lines, the best first; of
// equal scores the lower index.
// ERRORS: those of the files and of the session; InvalidArgument when the
// output is not of floats or has no scores.
absl::StatusOr<std::vector<ImageLabel>> LabelImage(
    const graph::Graph& graph, const LabelImageRequest& request);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LABEL_IMAGE_H_
