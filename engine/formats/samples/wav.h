// WAV files with 16-bit samples, the only kind TensorFlow's DecodeWav reads.

#ifndef OPTFARM_ENGINE_FORMATS_SAMPLES_WAV_H_
#define OPTFARM_ENGINE_FORMATS_SAMPLES_WAV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::formats {

struct WavInfo {
  int channels = 0;
  // UNITS: samples a second.
  int sample_rate = 0;
  // Samples of each channel.
  int64_t frames = 0;
  // The sample bytes within the file. OWNERSHIP: the caller's bytes.
  absl::string_view data;
};

// Checks that bytes are a whole WAV file. ERRORS: InvalidArgument saying why
// not (not a WAV, cut off, not 16-bit PCM).
absl::StatusOr<WavInfo> ParseWav(absl::string_view bytes);

// Samples as DecodeWav gives them: value / 32768, channels interleaved.
std::vector<float> WavSamples(const WavInfo& info);

// A mono WAV file; samples are cut to -1..1. UNITS: sample_rate in samples a
// second. REQUIRES: fewer than 2^30 samples.
std::string SerializeWav(absl::Span<const float> samples, int sample_rate);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_SAMPLES_WAV_H_
