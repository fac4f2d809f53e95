#include "engine/transforms/quantizing/channel_quantization.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace optfarm::transforms {
namespace {

// The least range of a channel over its bias. With it the bias is at most
// 127 * 256 / s steps of a sum whose activations have steps s, and fits into 30
// bits for any s above 3e-5.
constexpr float kLeastOfBias = 1.0f / 256;

// Below it a channel counts as zeros: 1 / 127 of it must be a normal number.
constexpr float kNothing = 1e-30f;

}  // namespace

ChannelQuantized QuantizeByChannel(absl::Span<const float> weights,
                                   int64_t channels, bool channels_first,
                                   absl::Span<const float> bias) {
  ChannelQuantized result;
  const auto count = static_cast<size_t>(channels);
  result.values.resize(weights.size());
  result.largest.resize(count, 0.0f);
  if (count == 0 || weights.empty()) return result;
  const size_t row = weights.size() / count;
  const auto channel_of = [&](size_t i) {
    return channels_first ? i / row : i % count;
  };
  for (size_t i = 0; i < weights.size(); ++i) {
    float& largest = result.largest[channel_of(i)];
    largest = std::max(largest, std::abs(weights[i]));
  }
  for (size_t c = 0; c < count; ++c) {
    float& largest = result.largest[c];
    if (c < bias.size()) {
      largest = std::max(largest, std::abs(bias[c]) * kLeastOfBias);
    }
    if (largest < kNothing) largest = 1.0f;
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const double step = double{result.largest[channel_of(i)]} / 127.0;
    result.values[i] = static_cast<int8_t>(
        std::clamp(std::round(weights[i] / step), -127.0, 127.0));
  }
  return result;
}

}  // namespace optfarm::transforms
