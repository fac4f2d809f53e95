// The heart of spectrograms and of mel frequency coefficients, in double
// precision, for one instruction set.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_FAST_AUDIO_FUNCTIONS_H_
#define OPTFARM_ENGINE_RUNTIME_FAST_AUDIO_FUNCTIONS_H_

#include <cstdint>

namespace optfarm::runtime {

// One pass of a Fourier transform whose results come out in order: butterflies
// of `radix` values that stand size / radix from one another, for each of
// `count` turns and each of `stride` places. stride * radix * count is the
// size.
struct FourierPass {
  int radix = 0;
  int64_t stride = 0;
  int64_t count = 0;
  // What result k of turn p is multiplied by, k from 1 on. In the first pass,
  // where stride is 1, turns stand side by side: [k - 1][p]; in others
  // [p][k - 1].
  const double* re = nullptr;
  const double* im = nullptr;
};

// Transforms of slices of `window` real samples, filled up with zeros to
// 2 * size values.
struct SpectrogramSlices {
  const float* samples = nullptr;
  // UNITS: samples from one slice to the next.
  int64_t stride = 0;
  int64_t slices = 0;
  // A multiple of kWindowBlock.
  int64_t window = 0;
  // The window's factors, those of even samples and those of odd ones.
  const double* even = nullptr;
  const double* odd = nullptr;
  // Complex values of the transform, a power of two from kLeastFourier on.
  int64_t size = 0;
  const FourierPass* passes = nullptr;
  int pass_count = 0;
  // exp(-pi i k / size) for k up to size / 2 + 8.
  const double* root_re = nullptr;
  const double* root_im = nullptr;
  // Powers instead of magnitudes.
  bool is_squared = false;
  // size + 1 for each slice.
  float* out = nullptr;
  // 4 * size values of working memory, aligned to 64 bytes.
  double* scratch = nullptr;
};

inline constexpr int64_t kWindowBlock = 16;
inline constexpr int64_t kLeastFourier = 64;

// Coefficients of slices of a spectrogram.
struct MelSlices {
  const float* spectrum = nullptr;
  int64_t bins = 0;
  int64_t slices = 0;
  int64_t bands = 0;
  // Band b takes the rest of what bins [edges[b], edges[b + 1]) give to the
  // band before, and bins [edges[b + 1], edges[b + 2]) with their weight.
  const int64_t* edges = nullptr;
  // By bin.
  const double* weights = nullptr;
  double least = 0;
  int64_t coefficients = 0;
  // By coefficient and band.
  const double* cosines = nullptr;
  float* out = nullptr;
  // kMostAudioLanes * (bins + bands) values of working memory, aligned to 64
  // bytes.
  double* scratch = nullptr;
};

inline constexpr int kMostAudioLanes = 8;

struct AudioFunctions {
  void (*spectrogram)(const SpectrogramSlices& slices);
  void (*mel)(const MelSlices& slices);
};

// OWNERSHIP: they live as long as the process.
const AudioFunctions& Avx512AudioFunctions();
const AudioFunctions& Avx2AudioFunctions();

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FAST_AUDIO_FUNCTIONS_H_
