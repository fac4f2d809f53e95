// The heart of spectrograms and of mel frequency coefficients, in double
// precision, for one instruction set.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_AUDIO_FUNCTIONS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_AUDIO_FUNCTIONS_H_

#include <cstdint>

namespace optfarm::runtime {

// One pass of a Fourier transform whose results come out in order: butterflies
// of `radix` values that stand `stride` from one another, for each of `count`
// turns and each of `stride` places. stride * radix * count is the size.
struct FourierPass {
  int radix = 0;
  int64_t stride = 0;
  int64_t count = 0;
  // UNITS: values from a result's place 0 to the next result's.
  int64_t pitch = 0;
  // What values of turn p are multiplied by, [p][FourierRoots(radix)]; none in
  // the first pass.
  const double* re = nullptr;
  const double* im = nullptr;
};

// A turn's root and its powers that a butterfly needs: the fourth and second,
// itself, and itself turned by an eighth; of radix 4 the second and itself.
constexpr int FourierRoots(int radix) { return radix == 8 ? 4 : 2; }
// Values that are transformed within registers of `lanes` places; what rows of
// them take in memory.
constexpr int64_t FourierRow(int64_t lanes) { return lanes * lanes; }
constexpr int64_t FourierPitch(int64_t lanes) { return lanes * (lanes + 1); }
// What `size` complex values take in rows.
constexpr int64_t FourierRoom(int64_t size, int64_t lanes) {
  return size / FourierRow(lanes) * FourierPitch(lanes);
}

// Transforms of slices of `window` real samples, filled up with zeros to
// 2 * size values.
struct SpectrogramSlices {
  const float* samples = nullptr;
  // UNITS: samples from one slice to the next.
  int64_t stride = 0;
  int64_t slices = 0;
  // A multiple of kWindowBlock.
  int64_t window = 0;
  // Half of the window's factors.
  const double* factors = nullptr;
  // Complex values of the transform, a power of two from kLeastFourier on.
  int64_t size = 0;
  const FourierPass* passes = nullptr;
  int pass_count = 0;
  // Roots of a row's columns, [row][FourierRoots(lanes)], and of the places
  // within them, with [lanes] more.
  const double* column_re = nullptr;
  const double* column_im = nullptr;
  const double* place_re = nullptr;
  const double* place_im = nullptr;
  // exp(-pi i k / size), in rows.
  const double* apart_re = nullptr;
  const double* apart_im = nullptr;
  // Powers instead of magnitudes.
  bool is_squared = false;
  // Places of each row whose values are wanted, and whether those above
  // size / 2 are.
  int64_t first = 0;
  int64_t last = 0;
  bool with_upper = true;
  // size + 1 for each slice; not used for coefficients.
  float* out = nullptr;
  // FourierRoom(size) values for each of the slices that are worked on at a
  // time: one, and kMostAudioLanes for coefficients.
  float* rows = nullptr;
  // 4 * FourierRoom(size) values of working memory, aligned to 64 bytes.
  double* scratch = nullptr;
};

inline constexpr int64_t kWindowBlock = 16;
inline constexpr int64_t kLeastFourier = 64;

// Coefficients of slices of a spectrogram.
struct MelSlices {
  // Of Mfcc alone: `bins` for each slice, one behind the other.
  const float* spectrum = nullptr;
  int64_t slices = 0;
  int64_t bins = 0;
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
  // With a spectrogram: `bins` values of working memory.
  float* ordered = nullptr;
  // kMostAudioLanes * (bins + bands) values of working memory, aligned to 64
  // bytes.
  double* scratch = nullptr;
};

inline constexpr int kMostAudioLanes = 8;

struct AudioFunctions {
  int lanes = 0;
  void (*spectrogram)(const SpectrogramSlices& slices);
  void (*mel)(const MelSlices& slices);
  // Both, without the spectrogram between them.
  void (*coefficients)(const SpectrogramSlices& slices, const MelSlices& mel);
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_AUDIO_FUNCTIONS_H_
