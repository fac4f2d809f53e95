// What AudioSpectrogram's attributes mean.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_AUDIO_SPECTROGRAM_ATTRS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_AUDIO_SPECTROGRAM_ATTRS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// UNITS: samples.
struct SpectrogramAttrs {
  int64_t window = 0;
  int64_t stride = 0;
  // Powers instead of magnitudes.
  bool is_squared = false;
  // The next power of two from the window on.
  int64_t fft_size = 0;

  int64_t bins() const { return fft_size / 2 + 1; }
  int64_t slices(int64_t samples) const {
    return samples < window ? 0 : 1 + (samples - window) / stride;
  }
};

// ERRORS: InvalidArgument for numbers that cannot be.
absl::StatusOr<SpectrogramAttrs> ReadSpectrogramAttrs(
    const tensorflow::NodeDef& node);

// The result's shape: channels, slices, bins.
// ERRORS: InvalidArgument for an input that is no matrix of floats.
absl::StatusOr<Shape> SpectrogramShape(const SpectrogramAttrs& attrs,
                                       const Tensor& input);

// A periodic Hann window.
std::vector<double> HannWindow(int64_t window);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_AUDIO_SPECTROGRAM_ATTRS_H_
