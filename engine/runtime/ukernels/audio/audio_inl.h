// audio_functions.h for any vector type of doubles (doubles_avx512_inl.h says
// what it has), with the transforms of fourier_inl.h.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_AUDIO_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_AUDIO_INL_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/audio/audio_functions.h"
#include "engine/runtime/ukernels/audio/fourier_inl.h"

namespace optfarm::runtime {
namespace {

// What sums of a single slice need of a vector.
struct OneDouble {
  using Register = double;
  using Words = uint64_t;
  static constexpr int kLanes = 1;

  static OPTFARM_INLINE double Broadcast(double x) { return x; }
  static OPTFARM_INLINE double Load(const double* p) { return *p; }
  static OPTFARM_INLINE void Store(double* p, double x) { *p = x; }
  // The second operand comes through when it is NaN.
  static OPTFARM_INLINE double Max(double a, double b) { return b < a ? a : b; }
  static OPTFARM_INLINE double MultiplyAdd(double a, double b, double c) {
    return __builtin_fma(a, b, c);
  }
  static OPTFARM_INLINE void StoreFloats(float* p, double x) {
    *p = static_cast<float>(x);
  }
};

}  // namespace

template <typename Vector>
struct AudioOf {
  using Register = typename Vector::Register;
  using Words = typename Vector::Words;
  static constexpr int kLanes = Vector::kLanes;

  // Where a spectrum's values are: in order, or in a transform's rows.
  struct Places {
    int64_t rows = 1;
    // UNITS: values from one slice to the next.
    int64_t slice = 0;

    int64_t Of(int64_t bin) const {
      return bin % rows * FourierPitch(kLanes) + bin / rows;
    }
  };

  // Bins [begin, end) of one slice from its rows.
  static void PutInOrder(const float* from, int64_t rows, int64_t begin,
                         int64_t end, float* to) {
    int64_t bin = begin / rows * rows;
    for (; bin + rows <= end; bin += rows) {
      const float* column = from + bin / rows;
      for (int64_t row = 0; row < rows; ++row) {
        to[bin + row] = column[row * FourierPitch(kLanes)];
      }
    }
    const Places places = {rows, 0};
    for (; bin < end; ++bin) to[bin] = from[places.Of(bin)];
  }

  static void Spectrogram(const SpectrogramSlices& s) {
    for (int64_t slice = 0; slice < s.slices; ++slice) {
      FourierOf<Vector>::Transform(s, s.samples + slice * s.stride, s.rows);
      PutInOrder(s.rows, s.size / FourierRow(kLanes), 0, s.size + 1,
                 s.out + slice * (s.size + 1));
    }
  }

  // The natural logarithm of values that are not denormal, but for the last
  // bit: x = 2^e * m with m in [sqrt(1/2), sqrt(2)), and
  // log m = 2 artanh((m - 1) / (m + 1)) as a series.
  static OPTFARM_INLINE Register Log(Register x) {
    // sqrt(1/2), and the exponent's bits of one.
    constexpr uint64_t kHalfRoot = 0x3fe6a09e667f3bcd;
    constexpr uint64_t kOne = uint64_t{1023} << 52;
    const Words moved = reinterpret_cast<Words>(x) + (kOne - kHalfRoot);
    // 2^52 and the exponent as its last digits.
    const Words digits = (moved >> 52) | (uint64_t{1075} << 52);
    const Register exponent = reinterpret_cast<Register>(digits) -
                              Vector::Broadcast(4503599627370496.0 + 1023.0);
    const Register m = reinterpret_cast<Register>(
        (moved & ((uint64_t{1} << 52) - 1)) + kHalfRoot);
    const Register one = Vector::Broadcast(1);
    const Register t = (m - one) / (m + one);
    const Register square = t * t;
    Register series = Vector::Broadcast(1.0 / 21);
    for (int n = 19; n >= 3; n -= 2) {
      series = Vector::MultiplyAdd(series, square, Vector::Broadcast(1.0 / n));
    }
    const Register log_m = Vector::MultiplyAdd(series * square, t + t, t + t);
    return Vector::IfFinite(
        x, Vector::MultiplyAdd(
               exponent, Vector::Broadcast(0.69314718055994530942), log_m));
  }

  // What bins [begin, end) give: their sum with their weights, and all of them.
  struct Shares {
    Register weighted;
    Register all;
  };
  static OPTFARM_INLINE Shares SumBins(const MelSlices& s, int64_t begin,
                                       int64_t end, const double* magnitudes) {
    Shares shares = {Vector::Broadcast(0), Vector::Broadcast(0)};
    for (int64_t i = begin; i < end; ++i) {
      const Register magnitude = Vector::Load(magnitudes + i * kLanes);
      shares.weighted = Vector::MultiplyAdd(
          magnitude, Vector::Broadcast(s.weights[i]), shares.weighted);
      shares.all = shares.all + magnitude;
    }
    return shares;
  }

  static OPTFARM_INLINE void SumBands(const MelSlices& s,
                                      const double* magnitudes, double* sums) {
    Shares before = SumBins(s, s.edges[0], s.edges[1], magnitudes);
    for (int64_t band = 0; band < s.bands; ++band) {
      const Shares shares =
          SumBins(s, s.edges[band + 1], s.edges[band + 2], magnitudes);
      Vector::Store(
          sums + band * kLanes,
          Vector::Max(Vector::Broadcast(s.least),
                      before.all - before.weighted + shares.weighted));
      before = shares;
    }
  }

  // The magnitudes of the bins that bands take, of kLanes slices, slice by
  // slice in the places of a vector. There is room for `bins` of them.
  static OPTFARM_INLINE void FindMagnitudes(const MelSlices& s,
                                            const float* spectrum,
                                            const Places& places,
                                            const int32_t* offsets,
                                            double* magnitudes) {
    const int64_t end = s.edges[s.bands + 1];
    const int64_t step = places.rows * kLanes;
    int64_t i = s.edges[0] / step * step;
    // A few that are left are taken one by one.
    for (; end - i >= kLanes && i + step <= s.bins; i += step) {
      for (int64_t row = 0; row < places.rows; ++row) {
        Register powers[kLanes];
        Vector::LoadColumns(spectrum + places.Of(i + row), offsets, powers);
        double* to = magnitudes + (i + row) * kLanes;
        for (int k = 0; k < kLanes; ++k) {
          Vector::Store(to + k * places.rows * kLanes, Vector::Sqrt(powers[k]));
        }
      }
    }
    for (; i < end; ++i) {
      Vector::Store(
          magnitudes + i * kLanes,
          Vector::Sqrt(Vector::LoadAt(spectrum + places.Of(i), offsets)));
    }
  }

  // kCount coefficients from `first` on, of `count` slices.
  template <int kCount>
  static OPTFARM_INLINE void RunCosines(const MelSlices& s, const double* logs,
                                        int64_t first, int count, float* out) {
    const double* cosines = s.cosines + first * s.bands;
    Register sums[kCount];
    for (int i = 0; i < kCount; ++i) sums[i] = Vector::Broadcast(0);
    for (int64_t band = 0; band < s.bands; ++band) {
      const Register log = Vector::Load(logs + band * kLanes);
      for (int i = 0; i < kCount; ++i) {
        sums[i] = Vector::MultiplyAdd(
            log, Vector::Broadcast(cosines[i * s.bands + band]), sums[i]);
      }
    }
    for (int i = 0; i < kCount; ++i) {
      float values[kLanes];
      Vector::StoreFloats(values, sums[i]);
      for (int lane = 0; lane < count; ++lane) {
        out[lane * s.coefficients + first + i] = values[lane];
      }
    }
  }

  static OPTFARM_INLINE void RunAllCosines(const MelSlices& s,
                                           const double* logs, int count,
                                           float* out) {
    // Several sums, because each waits for its products.
    constexpr int kTogether = 5;
    int64_t i = 0;
    for (; i + kTogether <= s.coefficients; i += kTogether) {
      RunCosines<kTogether>(s, logs, i, count, out);
    }
    for (; i < s.coefficients; ++i) RunCosines<1>(s, logs, i, count, out);
  }

  // kLanes slices at once, one in each place of a vector.
  static void RunTogether(const MelSlices& s, const float* spectrum,
                          const Places& places, int count, float* out) {
    double* const magnitudes = s.scratch;
    double* const logs = s.scratch + s.bins * kLanes;
    // Places without a slice repeat the last one.
    int32_t offsets[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      offsets[lane] = static_cast<int32_t>((lane < count ? lane : count - 1) *
                                           places.slice);
    }
    FindMagnitudes(s, spectrum, places, offsets, magnitudes);
    SumBands(s, magnitudes, logs);
    for (int64_t band = 0; band < s.bands; ++band) {
      Vector::Store(logs + band * kLanes,
                    Log(Vector::Load(logs + band * kLanes)));
    }
    RunAllCosines(s, logs, count, out);
  }

  // Bins, and then bands, in the places of a vector.
  static void RunAlone(const MelSlices& s, const float* spectrum, float* out) {
    using One = AudioOf<OneDouble>;
    double* const magnitudes = s.scratch;
    double* const logs = s.scratch + s.bins * kLanes;
    const int64_t end = s.edges[s.bands + 1];
    int64_t i = s.edges[0];
    for (; i < end && i + kLanes <= s.bins; i += kLanes) {
      Vector::Store(magnitudes + i,
                    Vector::Sqrt(Vector::LoadFloats(spectrum + i)));
    }
    for (; i < end; ++i) {
      Vector::Store(magnitudes + i,
                    Vector::Sqrt(Vector::Broadcast(spectrum[i])));
    }
    One::SumBands(s, magnitudes, logs);
    // Those behind the last band are nobody's.
    for (int64_t band = 0; band < s.bands; band += kLanes) {
      Vector::Store(logs + band, Log(Vector::Load(logs + band)));
    }
    One::RunAllCosines(s, logs, 1, out);
  }

  // How many slices are taken together of those that are left. A quarter of a
  // vector takes as long one by one.
  static OPTFARM_INLINE int64_t Together(int64_t left) {
    if (left <= kLanes / 4) return 1;
    return left < kLanes ? left : kLanes;
  }

  static void Mel(const MelSlices& s) {
    for (int64_t first = 0; first < s.slices;) {
      const float* spectrum = s.spectrum + first * s.bins;
      float* const out = s.out + first * s.coefficients;
      const int64_t count = Together(s.slices - first);
      if (count == 1) {
        RunAlone(s, spectrum, out);
      } else {
        RunTogether(s, spectrum, {1, s.bins}, static_cast<int>(count), out);
      }
      first += count;
    }
  }

  static void Coefficients(const SpectrogramSlices& s, const MelSlices& mel) {
    const int64_t rows = s.size / FourierRow(kLanes);
    const int64_t room = rows * FourierPitch(kLanes);
    for (int64_t first = 0; first < s.slices;) {
      const int64_t count = Together(s.slices - first);
      for (int64_t i = 0; i < count; ++i) {
        FourierOf<Vector>::Transform(s, s.samples + (first + i) * s.stride,
                                     s.rows + i * room);
      }
      float* const out = mel.out + first * mel.coefficients;
      if (count == 1) {
        PutInOrder(s.rows, rows, mel.edges[0], mel.edges[mel.bands + 1],
                   mel.ordered);
        RunAlone(mel, mel.ordered, out);
      } else {
        RunTogether(mel, s.rows, {rows, room}, static_cast<int>(count), out);
      }
      first += count;
    }
  }
};

template <typename Vector>
constexpr AudioFunctions AudioFunctionsOf() {
  return {Vector::kLanes, &AudioOf<Vector>::Spectrogram, &AudioOf<Vector>::Mel,
          &AudioOf<Vector>::Coefficients};
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_AUDIO_INL_H_
