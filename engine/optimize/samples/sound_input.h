// A WAV file becomes the values of a model's inputs.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SOUND_INPUT_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SOUND_INPUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::optimize {

// UNITS: bytes. An hour of 16-bit stereo at 48 kHz.
inline constexpr uint64_t kMaxWavBytes = uint64_t{700} << 20;

// What an input is fed of a file.
enum class SoundPart {
  // Its bytes as one string.
  kFile,
  // What DecodeWav makes of it: samples, and the sample rate.
  kSamples,
  kRate,
};

// Samples are cut or filled up with silence to the length the input wants:
// [samples, channels], or for one channel any shape with one axis longer than
// 1.
// ERRORS: InvalidArgument for bytes that are no WAV file, and for an input that
// no sound fits.
absl::StatusOr<runtime::Tensor> SoundValue(SoundPart part,
                                           const ModelTensor& input,
                                           absl::string_view bytes);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SOUND_INPUT_H_
