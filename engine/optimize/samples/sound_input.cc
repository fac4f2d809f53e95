#include "engine/optimize/samples/sound_input.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/formats/samples/wav.h"

namespace optfarm::optimize {
namespace {

using runtime::Shape;
using runtime::Tensor;

// The shape in which the input takes a sound: [samples, channels] where it may,
// else its own if there is one long axis for the samples. REQUIRES: a shape is
// known.
absl::StatusOr<std::vector<int64_t>> SoundShape(const formats::WavInfo& info,
                                                const ModelTensor& input) {
  const int64_t channels = info.channels;
  std::vector<int64_t> dims = *input.shape;
  if (dims.size() == 2 && (dims[1] < 0 || dims[1] == channels)) {
    return std::vector<int64_t>{dims[0] > 0 ? dims[0] : info.frames, channels};
  }
  if (dims.size() > 1 && dims[0] < 0) dims[0] = 1;
  const auto longer = [](int64_t dim) { return dim != 1; };
  if (channels == 1 && std::count_if(dims.begin(), dims.end(), longer) == 1) {
    int64_t& length = *std::find_if(dims.begin(), dims.end(), longer);
    if (length < 0) length = info.frames;
    return dims;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a sound of ", info.frames, " samples and ", channels,
      " channels is no value for input '", graph::ToString(input.name),
      "' of shape [", absl::StrJoin(*input.shape, ","),
      "]; give it data of that shape, --calibration=NAME=FILE.npy"));
}

absl::StatusOr<Tensor> Samples(const formats::WavInfo& info,
                               const ModelTensor& input) {
  std::vector<int64_t> dims = {info.frames, info.channels};
  if (input.shape.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(dims, SoundShape(info, input));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  if (shape.num_elements() > static_cast<int64_t>(kMaxWavBytes)) {
    return absl::InvalidArgumentError("the input wants too many samples");
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor,
                           Tensor::Zeros(tensorflow::DT_FLOAT, shape));
  const std::vector<float> samples = formats::WavSamples(info);
  std::copy_n(samples.begin(),
              std::min<size_t>(samples.size(), shape.num_elements()),
              tensor.data<float>());
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> SoundValue(SoundPart part, const ModelTensor& input,
                                  absl::string_view bytes) {
  OPTFARM_ASSIGN_OR_RETURN(const formats::WavInfo info,
                           formats::ParseWav(bytes));
  switch (part) {
    case SoundPart::kFile:
      return Tensor::Scalar<std::string>(std::string(bytes));
    case SoundPart::kRate:
      return Tensor::Scalar<int32_t>(info.sample_rate);
    default:
      return Samples(info, input);
  }
}

}  // namespace optfarm::optimize
