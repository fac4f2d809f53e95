// audio_functions.h for any vector type of doubles (doubles_avx512_inl.h says
// what it has). A transform of real values is that of half as many complex
// ones, taken apart. Its passes are Stockham's, of radix 8 and 4: the places of
// the first lie side by side only after its results are transposed, those of
// all others do from the start, and nothing is put in order at the end.

#ifndef OPTFARM_ENGINE_RUNTIME_FAST_AUDIO_INL_H_
#define OPTFARM_ENGINE_RUNTIME_FAST_AUDIO_INL_H_

#include <cstdint>

#include "engine/runtime/fast/always_inline.h"
#include "engine/runtime/fast/audio_functions.h"

namespace optfarm::runtime {
namespace {

// What sums of a single slice need of a vector.
struct OneDouble {
  using Register = double;
  using Words = uint64_t;
  static constexpr int kLanes = 1;

  static OPTFARM_INLINE double Broadcast(double x) { return x; }
  static OPTFARM_INLINE double Load(const double* p) { return *p; }
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

  struct Complex {
    Register re;
    Register im;
  };

  static OPTFARM_INLINE Complex Sum(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  static OPTFARM_INLINE Complex Difference(Complex a, Complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  static OPTFARM_INLINE Complex Times(Complex a, Register re, Register im) {
    return {Vector::MultiplySubtract(a.re, re, a.im * im),
            Vector::MultiplyAdd(a.re, im, a.im * re)};
  }

  // The transform of four values.
  static OPTFARM_INLINE void Butterfly4(Complex* x) {
    const Complex s0 = Sum(x[0], x[2]), d0 = Difference(x[0], x[2]);
    const Complex s1 = Sum(x[1], x[3]), d1 = Difference(x[1], x[3]);
    x[0] = Sum(s0, s1);
    x[1] = {d0.re + d1.im, d0.im - d1.re};
    x[2] = Difference(s0, s1);
    x[3] = {d0.re - d1.im, d0.im + d1.re};
  }

  // The transform of eight values.
  static OPTFARM_INLINE void Butterfly8(Complex* x) {
    const Register half_root = Vector::Broadcast(0.70710678118654752440);
    Complex even[4], odd[4];
    for (int i = 0; i < 4; ++i) {
      even[i] = Sum(x[i], x[i + 4]);
      odd[i] = Difference(x[i], x[i + 4]);
    }
    // Times the eighth roots of one.
    odd[1] = {(odd[1].re + odd[1].im) * half_root,
              (odd[1].im - odd[1].re) * half_root};
    odd[2] = {odd[2].im, -odd[2].re};
    odd[3] = {(odd[3].im - odd[3].re) * half_root,
              -(odd[3].re + odd[3].im) * half_root};
    Butterfly4(even);
    Butterfly4(odd);
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = even[i];
      x[2 * i + 1] = odd[i];
    }
  }

  // Pairs of samples, of those within the window, as complex values.
  static OPTFARM_INLINE Complex LoadWindowed(const SpectrogramSlices& s,
                                             const float* samples, int64_t at) {
    if (2 * at >= s.window) {
      return {Vector::Broadcast(0), Vector::Broadcast(0)};
    }
    Complex x;
    Vector::LoadPairs(samples + 2 * at, &x.re, &x.im);
    return {x.re * Vector::Load(s.even + at), x.im * Vector::Load(s.odd + at)};
  }

  // The first pass, of radix 8, from samples; turns side by side.
  static void RunFirst(const SpectrogramSlices& s, const float* samples,
                       double* re, double* im) {
    const FourierPass& pass = s.passes[0];
    for (int64_t p = 0; p < pass.count; p += kLanes) {
      Complex x[8];
      for (int k = 0; k < 8; ++k) {
        x[k] = LoadWindowed(s, samples, p + k * pass.count);
      }
      Butterfly8(x);
      Register parts_re[8], parts_im[8];
      parts_re[0] = x[0].re;
      parts_im[0] = x[0].im;
      for (int k = 1; k < 8; ++k) {
        const int64_t at = (k - 1) * pass.count + p;
        x[k] =
            Times(x[k], Vector::Load(pass.re + at), Vector::Load(pass.im + at));
        parts_re[k] = x[k].re;
        parts_im[k] = x[k].im;
      }
      for (int k = 0; k < 8; k += kLanes) {
        Vector::Transpose(parts_re + k);
        Vector::Transpose(parts_im + k);
        for (int i = 0; i < kLanes; ++i) {
          Vector::Store(re + 8 * (p + i) + k, parts_re[k + i]);
          Vector::Store(im + 8 * (p + i) + k, parts_im[k + i]);
        }
      }
    }
  }

  // A later pass; places side by side.
  template <int kRadix>
  static void RunPass(const FourierPass& pass, const double* from_re,
                      const double* from_im, double* re, double* im) {
    for (int64_t p = 0; p < pass.count; ++p) {
      const double* root_re = pass.re + p * (kRadix - 1);
      const double* root_im = pass.im + p * (kRadix - 1);
      for (int64_t q = 0; q < pass.stride; q += kLanes) {
        Complex x[kRadix];
        for (int k = 0; k < kRadix; ++k) {
          const int64_t at = q + pass.stride * (p + pass.count * k);
          x[k] = {Vector::Load(from_re + at), Vector::Load(from_im + at)};
        }
        if constexpr (kRadix == 8) {
          Butterfly8(x);
        } else {
          Butterfly4(x);
        }
        // The last pass has one turn, whose roots are one.
        for (int k = 1; k < kRadix && pass.count > 1; ++k) {
          x[k] = Times(x[k], Vector::Broadcast(root_re[k - 1]),
                       Vector::Broadcast(root_im[k - 1]));
        }
        for (int k = 0; k < kRadix; ++k) {
          const int64_t at = q + pass.stride * (kRadix * p + k);
          Vector::Store(re + at, x[k].re);
          Vector::Store(im + at, x[k].im);
        }
      }
    }
  }

  // Of twice a value, its power or magnitude.
  static OPTFARM_INLINE Register Measure(Register re, Register im,
                                         bool is_squared) {
    const Register power =
        Vector::MultiplyAdd(re, re, im * im) * Vector::Broadcast(0.25);
    return is_squared ? power : Vector::Sqrt(power);
  }

  // From the transform of even + i * odd values to that of all: values k and
  // size - k come from places k and size - k.
  static void TakeApart(const SpectrogramSlices& s, const double* re,
                        const double* im, float* out) {
    const Register first = Vector::Broadcast(2 * (re[0] + im[0]));
    const Register last = Vector::Broadcast(2 * (re[0] - im[0]));
    const Register zero = Vector::Broadcast(0);
    for (int64_t k = 1; 2 * k <= s.size; k += kLanes) {
      const int64_t j = s.size - k - (kLanes - 1);
      const Register re_k = Vector::Load(re + k);
      const Register im_k = Vector::Load(im + k);
      const Register re_j = Vector::Reverse(Vector::Load(re + j));
      const Register im_j = Vector::Reverse(Vector::Load(im + j));
      const Complex even = {re_k + re_j, im_k - im_j};
      const Complex odd =
          Times({im_k + im_j, re_j - re_k}, Vector::Load(s.root_re + k),
                Vector::Load(s.root_im + k));
      Vector::StoreFloats(
          out + k, Measure(even.re + odd.re, even.im + odd.im, s.is_squared));
      // The other one is the conjugate's.
      Vector::StoreFloats(
          out + j, Vector::Reverse(Measure(even.re - odd.re, even.im - odd.im,
                                           s.is_squared)));
    }
    float ends[kLanes];
    Vector::StoreFloats(ends, Measure(first, zero, s.is_squared));
    out[0] = ends[0];
    Vector::StoreFloats(ends, Measure(last, zero, s.is_squared));
    out[s.size] = ends[0];
  }

  static void Spectrogram(const SpectrogramSlices& s) {
    double* const re[2] = {s.scratch, s.scratch + 2 * s.size};
    double* const im[2] = {s.scratch + s.size, s.scratch + 3 * s.size};
    for (int64_t slice = 0; slice < s.slices; ++slice) {
      RunFirst(s, s.samples + slice * s.stride, re[0], im[0]);
      int at = 0;
      for (int i = 1; i < s.pass_count; ++i, at = 1 - at) {
        const FourierPass& pass = s.passes[i];
        if (pass.radix == 8) {
          RunPass<8>(pass, re[at], im[at], re[1 - at], im[1 - at]);
        } else {
          RunPass<4>(pass, re[at], im[at], re[1 - at], im[1 - at]);
        }
      }
      TakeApart(s, re[at], im[at], s.out + slice * (s.size + 1));
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

  static OPTFARM_INLINE Register SumBand(const MelSlices& s, int64_t band,
                                         const double* magnitudes) {
    Register sum = Vector::Broadcast(0);
    const int64_t* edges = s.edges + band;
    for (int64_t i = edges[0]; i < edges[1]; ++i) {
      const Register magnitude = Vector::Load(magnitudes + i * kLanes);
      sum = sum + (magnitude - magnitude * Vector::Broadcast(s.weights[i]));
    }
    for (int64_t i = edges[1]; i < edges[2]; ++i) {
      sum = sum + Vector::Load(magnitudes + i * kLanes) *
                      Vector::Broadcast(s.weights[i]);
    }
    return sum;
  }

  // The magnitudes of bins [begin, end) of kLanes slices, slice by slice in the
  // places of a vector.
  static OPTFARM_INLINE void FindMagnitudes(const MelSlices& s,
                                            const float* spectrum,
                                            const int32_t* offsets,
                                            double* magnitudes) {
    const int64_t end = s.edges[s.bands + 1];
    int64_t i = s.edges[0];
    for (; i < end && i + kLanes <= s.bins; i += kLanes) {
      Register powers[kLanes];
      Vector::LoadColumns(spectrum + i, offsets, powers);
      for (int k = 0; k < kLanes; ++k) {
        Vector::Store(magnitudes + (i + k) * kLanes, Vector::Sqrt(powers[k]));
      }
    }
    for (; i < end; ++i) {
      Vector::Store(magnitudes + i * kLanes,
                    Vector::Sqrt(Vector::LoadAt(spectrum + i, offsets)));
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
  static void RunTogether(const MelSlices& s, const float* spectrum, int count,
                          float* out) {
    double* const magnitudes = s.scratch;
    double* const logs = s.scratch + s.bins * kLanes;
    // Places without a slice repeat the last one.
    int32_t offsets[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      offsets[lane] =
          static_cast<int32_t>((lane < count ? lane : count - 1) * s.bins);
    }
    FindMagnitudes(s, spectrum, offsets, magnitudes);
    for (int64_t band = 0; band < s.bands; ++band) {
      Vector::Store(logs + band * kLanes,
                    Vector::Max(Vector::Broadcast(s.least),
                                SumBand(s, band, magnitudes)));
    }
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
    for (int64_t band = 0; band < s.bands; ++band) {
      const double sum = One::SumBand(s, band, magnitudes);
      logs[band] = sum < s.least ? s.least : sum;
    }
    // Those behind the last band are nobody's.
    for (int64_t band = 0; band < s.bands; band += kLanes) {
      Vector::Store(logs + band, Log(Vector::Load(logs + band)));
    }
    One::RunAllCosines(s, logs, 1, out);
  }

  static void Mel(const MelSlices& s) {
    // A quarter of a vector takes as long in both ways.
    constexpr int64_t kFew = kLanes / 4;
    for (int64_t first = 0; first < s.slices;) {
      const float* spectrum = s.spectrum + first * s.bins;
      float* const out = s.out + first * s.coefficients;
      const int64_t left = s.slices - first;
      if (left <= kFew) {
        RunAlone(s, spectrum, out);
        ++first;
      } else {
        RunTogether(s, spectrum,
                    static_cast<int>(left < kLanes ? left : kLanes), out);
        first += kLanes;
      }
    }
  }
};

template <typename Vector>
constexpr AudioFunctions AudioFunctionsOf() {
  return {&AudioOf<Vector>::Spectrogram, &AudioOf<Vector>::Mel};
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FAST_AUDIO_INL_H_
