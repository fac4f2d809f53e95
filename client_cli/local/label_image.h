// What a classifier says about a picture: TensorFlow's label_image.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_LABEL_IMAGE_H_
#define OPTFARM_CLIENT_CLI_LOCAL_LABEL_IMAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/loaded_model.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::client_cli {

struct LabelImageRequest {
  // A JPEG or PNG file.
  std::string image;
  // A file with one label a line; empty: `names`.
  std::string labels;
  std::vector<std::string> names;
  // What the model takes. UNITS: pixels.
  int input_width = 299;
  int input_height = 299;
  // The three channels are the first axis of a picture, not the last.
  bool channels_first = false;
  // DT_FLOAT; DT_UINT8 and DT_INT8: a pixel v is fed as v and as v - 128.
  tensorflow::DataType input_type = tensorflow::DT_FLOAT;
  // A pixel v of 0..255 is fed as (v - input_mean) / input_std: one number, or
  // one for each of the three channels.
  std::vector<float> input_mean = {0};
  std::vector<float> input_std = {255};
  graph::TensorName input_layer, output_layer;
};

struct ImageLabel {
  // "" where the file has no line for the index.
  std::string label;
  int64_t index = 0;
  float score = 0;
};

struct LabelledImage {
  // The five best labels, or as many as the file has lines, the best first; of
  // equal scores the lower index. Never empty.
  std::vector<ImageLabel> best;
  // How many there are: where they differ, names and indices may not fit.
  int64_t labels = 0;
  int64_t scores = 0;
};

// `package` has what the model's ImmutableConst nodes name.
// Scores that are bytes are shown as they are.
// ERRORS: those of the files and of the session; InvalidArgument when the
// output is of another type or has no scores.
absl::StatusOr<LabelledImage> LabelImage(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    std::shared_ptr<const formats::MemmappedPackage> package,
    const LabelImageRequest& request);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_LABEL_IMAGE_H_
