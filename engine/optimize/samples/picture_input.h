// A picture file becomes one value of a model's input, as a recipe's
// preprocessing says.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_PICTURE_INPUT_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_PICTURE_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/optimize/samples/normalization.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

// The plan for one input, made before any picture is read.
struct PictureInput {
  // UNITS: pixels. 0: the picture's own.
  int height = 0;
  int width = 0;
  int channels = 3;
  bool bgr = false;
  // The input is [channels, height, width], as ONNX models have it.
  bool channels_first = false;
  v1::Preprocessing::Resize resize = v1::Preprocessing::STRETCH;
  // UNITS: fraction kept before the resize.
  double central_crop = 1;
  // One a channel, in the order the model sees them.
  std::vector<double> mean;
  std::vector<double> std;
  // Neither recipe nor source says how values are scaled.
  bool scale_unknown = false;
  tensorflow::DataType dtype = tensorflow::DT_FLOAT;
  // The tensor's shape; 0 stands for the picture's own height and width.
  std::vector<int64_t> shape;

  // "resized to 128x128, (v-127.5)/127.5, RGB".
  std::string Describe() const;
};

// An input of int8 is fed the grey levels less 128.
// ERRORS: InvalidArgument when the input cannot take pictures (dtype, rank,
// several pictures at once), when its size is known neither from the model nor
// from the recipe, or when the number of means is not that of channels.
absl::StatusOr<PictureInput> PlanPictureInput(
    const ModelTensor& input, const v1::Preprocessing& preprocessing,
    const Normalization& normalization);

// The value of a JPEG or PNG file's bytes.
// ERRORS: those of decoding them; InvalidArgument when a picture that must not
// be resized has the wrong size.
absl::StatusOr<runtime::Tensor> PictureFromBytes(absl::string_view bytes,
                                                 const PictureInput& plan);

// The same for a file. ERRORS: as above, naming the file, and the file's.
absl::StatusOr<runtime::Tensor> ReadPicture(const std::string& path,
                                            const PictureInput& plan);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_PICTURE_INPUT_H_
