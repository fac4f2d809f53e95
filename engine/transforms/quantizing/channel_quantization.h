// Weights as signed 8-bit values with a range for each output channel (formula
// 25 of docs/quantization.md).

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_CHANNEL_QUANTIZATION_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_CHANNEL_QUANTIZATION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace optfarm::transforms {

struct ChannelQuantized {
  std::vector<int8_t> values;
  // The largest weight of each channel, which the value 127 stands for; the
  // range of channel c is [-largest[c], largest[c]].
  std::vector<float> largest;
};

// Quantized values of weights in which the channels are the last dimension, or,
// with `channels_first`, the first. `bias` has a value for each channel, or
// none: a channel's step must be large enough for its bias to be a multiple of
// it. REQUIRES: finite weights, a multiple of `channels` of them.
ChannelQuantized QuantizeByChannel(absl::Span<const float> weights,
                                   int64_t channels, bool channels_first,
                                   absl::Span<const float> bias);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_CHANNEL_QUANTIZATION_H_
