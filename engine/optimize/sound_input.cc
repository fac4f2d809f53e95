#include "engine/optimize/sound_input.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/wav.h"

namespace optfarm::optimize {
namespace {

using runtime::Shape;
using runtime::Tensor;

absl::StatusOr<Tensor> Samples(const formats::WavInfo& info,
                               const ModelTensor& input) {
  int64_t frames = info.frames;
  if (input.shape.has_value() && input.shape->size() == 2 &&
      (*input.shape)[0] > 0) {
    frames = (*input.shape)[0];
  }
  if (frames > static_cast<int64_t>(kMaxWavBytes)) {
    return absl::InvalidArgumentError("the input wants too many samples");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({frames, info.channels}));
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
