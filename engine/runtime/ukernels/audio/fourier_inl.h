// Transforms of real samples for any vector type of doubles
// (doubles_avx512_inl.h says what it has): that of half as many complex values,
// taken apart. Passes are Stockham's, decimated in time, until rows of a
// square of the vector's places are left. Each of these is transformed within
// registers, so that nothing but it is ever transposed, and stays a row: value
// k + rows * place of the transform stands at [k][place].

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_FOURIER_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_FOURIER_INL_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/audio/audio_functions.h"

namespace optfarm::runtime {

template <typename Vector>
struct FourierOf {
  using Register = typename Vector::Register;
  static constexpr int kLanes = Vector::kLanes;
  static constexpr int64_t kRow = FourierRow(kLanes);
  static constexpr int64_t kPitch = FourierPitch(kLanes);

  struct Complex {
    Register re;
    Register im;
  };
  // One root of one in all places, or one in each.
  struct Roots {
    Complex at[4];
  };

  static OPTFARM_INLINE Complex Sum(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  static OPTFARM_INLINE Complex Difference(Complex a, Complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  static OPTFARM_INLINE Complex Times(Complex a, Complex b) {
    return {Vector::MultiplySubtract(a.re, b.re, a.im * b.im),
            Vector::MultiplyAdd(a.re, b.im, a.im * b.re)};
  }

  // 2 * a - sum, which is a difference when `sum` is a and something.
  static OPTFARM_INLINE Complex OtherSide(Complex a, Complex sum) {
    const Register two = Vector::Broadcast(2);
    return {Vector::MultiplySubtract(two, a.re, sum.re),
            Vector::MultiplySubtract(two, a.im, sum.im)};
  }
  // a + root * b and a - root * b.
  static OPTFARM_INLINE void Cross(Complex* a, Complex* b, Complex root) {
    const Complex sum = {
        Vector::SubtractProduct(root.im, b->im,
                                Vector::MultiplyAdd(root.re, b->re, a->re)),
        Vector::MultiplyAdd(root.im, b->re,
                            Vector::MultiplyAdd(root.re, b->im, a->im))};
    *b = OtherSide(*a, sum);
    *a = sum;
  }
  // The same of -i * root.
  static OPTFARM_INLINE void CrossQuarter(Complex* a, Complex* b,
                                          Complex root) {
    const Complex sum = {
        Vector::MultiplyAdd(root.im, b->re,
                            Vector::MultiplyAdd(root.re, b->im, a->re)),
        Vector::SubtractProduct(root.re, b->re,
                                Vector::MultiplyAdd(root.im, b->im, a->im))};
    *b = OtherSide(*a, sum);
    *a = sum;
  }

  // The transform of four values, each times root^(its place): roots.at are
  // root^2 and root.
  static OPTFARM_INLINE void Butterfly4(Complex* x, const Roots& roots) {
    Cross(&x[0], &x[2], roots.at[0]);
    Cross(&x[1], &x[3], roots.at[0]);
    Cross(&x[0], &x[1], roots.at[1]);
    CrossQuarter(&x[2], &x[3], roots.at[1]);
    const Complex second = x[1];
    x[1] = x[2];
    x[2] = second;
  }

  // Of eight: root^4, root^2, root, and root turned by an eighth.
  static OPTFARM_INLINE void Butterfly8(Complex* x, const Roots& roots) {
    for (int i = 0; i < 4; ++i) Cross(&x[i], &x[i + 4], roots.at[0]);
    for (int i = 0; i < 2; ++i) {
      Cross(&x[i], &x[i + 2], roots.at[1]);
      CrossQuarter(&x[i + 4], &x[i + 6], roots.at[1]);
    }
    Cross(&x[0], &x[1], roots.at[2]);
    CrossQuarter(&x[2], &x[3], roots.at[2]);
    Cross(&x[4], &x[5], roots.at[3]);
    CrossQuarter(&x[6], &x[7], roots.at[3]);
    // Digits in reverse.
    const Complex x1 = x[1], x3 = x[3];
    x[1] = x[4];
    x[4] = x1;
    x[3] = x[6];
    x[6] = x3;
  }

  template <int kRadix>
  static OPTFARM_INLINE void Butterfly(Complex* x, const Roots& roots) {
    static_assert(kRadix == 4 || kRadix == 8);
    if constexpr (kRadix == 8) {
      Butterfly8(x, roots);
    } else {
      Butterfly4(x, roots);
    }
  }

  // a + b and a - b.
  static OPTFARM_INLINE void CrossOne(Complex* a, Complex* b) {
    const Complex sum = Sum(*a, *b);
    *b = Difference(*a, *b);
    *a = sum;
  }
  // a - i * b and a + i * b.
  static OPTFARM_INLINE void CrossOneQuarter(Complex* a, Complex* b) {
    const Complex sum = {a->re + b->im, a->im - b->re};
    *b = {a->re - b->im, a->im + b->re};
    *a = sum;
  }

  // Without roots; what is half the radix apart has been crossed.
  static OPTFARM_INLINE void FinishFirst4(Complex* x) {
    CrossOne(&x[0], &x[1]);
    CrossOneQuarter(&x[2], &x[3]);
    const Complex second = x[1];
    x[1] = x[2];
    x[2] = second;
  }
  static OPTFARM_INLINE void FinishFirst8(Complex* x) {
    CrossOne(&x[0], &x[2]);
    CrossOne(&x[1], &x[3]);
    FinishFirst4(x);
    const Register half_root = Vector::Broadcast(0.70710678118654752440);
    const Complex eighth = {half_root, Vector::Broadcast(0) - half_root};
    CrossOneQuarter(&x[4], &x[6]);
    CrossOneQuarter(&x[5], &x[7]);
    Cross(&x[4], &x[5], eighth);
    CrossQuarter(&x[6], &x[7], eighth);
    const Complex all[8] = {x[0], x[4], x[1], x[6], x[2], x[5], x[3], x[7]};
    for (int i = 0; i < 8; ++i) x[i] = all[i];
  }

  // kLive values, behind which there are zeros.
  template <int kRadix, int kLive>
  static OPTFARM_INLINE void FirstButterfly(Complex* x) {
    constexpr int kHalf = kRadix / 2;
    for (int i = 0; i < kHalf; ++i) {
      if (i + kHalf < kLive) {
        CrossOne(&x[i], &x[i + kHalf]);
      } else {
        x[i + kHalf] = x[i];
      }
    }
    if constexpr (kRadix == 4) FinishFirst4(x);
    if constexpr (kRadix == 8) FinishFirst8(x);
  }

  // The first pass, from samples, kLive * pass.stride pairs of which there are.
  template <int kRadix, int kLive>
  static void RunFirstOf(const SpectrogramSlices& s, const float* samples,
                         double* re, double* im) {
    const FourierPass& pass = s.passes[0];
    for (int64_t q = 0; q < pass.stride; q += kLanes) {
      Complex x[kRadix];
      for (int k = 0; k < kLive; ++k) {
        const int64_t at = 2 * (q + k * pass.stride);
        if (at < s.window) {
          Vector::LoadProducts(samples + at, s.factors + at, &x[k].re,
                               &x[k].im);
        } else {
          x[k] = {Vector::Broadcast(0), Vector::Broadcast(0)};
        }
      }
      FirstButterfly<kRadix, kLive>(x);
      for (int k = 0; k < kRadix; ++k) {
        Vector::Store(re + q + k * pass.pitch, x[k].re);
        Vector::Store(im + q + k * pass.pitch, x[k].im);
      }
    }
  }

  template <int kRadix, int kLive = kRadix / 2 + 1>
  static void RunFirst(const SpectrogramSlices& s, const float* samples,
                       double* re, double* im) {
    if constexpr (kLive < kRadix) {
      if (s.window > 2 * kLive * s.passes[0].stride) {
        return RunFirst<kRadix, kLive + 1>(s, samples, re, im);
      }
    }
    RunFirstOf<kRadix, kLive>(s, samples, re, im);
  }

  // The same root in all places.
  template <int kRadix>
  static OPTFARM_INLINE Roots OneRoot(const double* re, const double* im) {
    Roots roots;
    for (int i = 0; i < FourierRoots(kRadix); ++i) {
      roots.at[i] = {Vector::Broadcast(re[i]), Vector::Broadcast(im[i])};
    }
    return roots;
  }

  // A later pass.
  template <int kRadix>
  static void RunPass(const FourierPass& pass, const double* from_re,
                      const double* from_im, double* re, double* im) {
    constexpr int kRoots = FourierRoots(kRadix);
    for (int64_t p = 0; p < pass.count; ++p) {
      const Roots roots =
          OneRoot<kRadix>(pass.re + p * kRoots, pass.im + p * kRoots);
      for (int64_t q = 0; q < pass.stride; q += kLanes) {
        Complex x[kRadix];
        for (int k = 0; k < kRadix; ++k) {
          const int64_t at = q + pass.stride * (kRadix * p + k);
          x[k] = {Vector::Load(from_re + at), Vector::Load(from_im + at)};
        }
        Butterfly<kRadix>(x, roots);
        for (int k = 0; k < kRadix; ++k) {
          const int64_t at = q + pass.pitch * (p + pass.count * k);
          Vector::Store(re + at, x[k].re);
          Vector::Store(im + at, x[k].im);
        }
      }
    }
  }

  // The transform of one row in its place: of its columns, and then of the
  // places within them. Two steps, so that the one's exchanges and the other's
  // sums of several rows are under way at a time.
  static OPTFARM_INLINE void RunColumns(const SpectrogramSlices& s, int64_t row,
                                        double* re, double* im) {
    constexpr int kRoots = FourierRoots(kLanes);
    Complex x[kLanes];
    for (int k = 0; k < kLanes; ++k) {
      x[k] = {Vector::Load(re + k * kLanes), Vector::Load(im + k * kLanes)};
    }
    Butterfly<kLanes>(x, OneRoot<kLanes>(s.column_re + row * kRoots,
                                         s.column_im + row * kRoots));
    Store(x, re, im);
  }
  static OPTFARM_INLINE void RunPlaces(const SpectrogramSlices& s, int64_t row,
                                       double* re, double* im) {
    constexpr int kRoots = FourierRoots(kLanes);
    Register parts_re[kLanes], parts_im[kLanes];
    Vector::LoadTransposed(re, parts_re);
    Vector::LoadTransposed(im, parts_im);
    Complex x[kLanes];
    for (int k = 0; k < kLanes; ++k) x[k] = {parts_re[k], parts_im[k]};
    Roots roots;
    for (int i = 0; i < kRoots; ++i) {
      const int64_t at = (row * kRoots + i) * kLanes;
      roots.at[i] = {Vector::Load(s.place_re + at),
                     Vector::Load(s.place_im + at)};
    }
    Butterfly<kLanes>(x, roots);
    Store(x, re, im);
  }
  static OPTFARM_INLINE void Store(const Complex* x, double* re, double* im) {
    for (int k = 0; k < kLanes; ++k) {
      Vector::Store(re + k * kLanes, x[k].re);
      Vector::Store(im + k * kLanes, x[k].im);
    }
  }

  static OPTFARM_INLINE Register Measure(Complex x, bool is_squared) {
    const Register power = Vector::MultiplyAdd(x.re, x.re, x.im * x.im);
    return is_squared ? power : Vector::Sqrt(power);
  }

  // From half the transform of even + i * odd values to that of all: values b
  // and size - b come from places b and size - b. Those of `vectors` of each
  // row, and of the others when `with_upper`, in rows as well.
  static void TakeApart(const SpectrogramSlices& s, const double* re,
                        const double* im, float* out) {
    const int64_t rows = s.size / kRow;
    for (int64_t row = 0; row < rows; ++row) {
      // Row 0 is its own, one place further.
      const int64_t other = row == 0 ? 1 : (rows - row) * kPitch;
      for (int64_t k = s.first; k < s.last; k += kLanes) {
        const int64_t at = row * kPitch + k;
        const int64_t back = other + kRow - kLanes - k;
        const Complex a = {Vector::Load(re + at), Vector::Load(im + at)};
        const Complex b = {Vector::Reverse(Vector::Load(re + back)),
                           Vector::Reverse(Vector::Load(im + back))};
        const Complex even = {a.re + b.re, a.im - b.im};
        const Complex odd = Times(
            {a.im + b.im, b.re - a.re},
            {Vector::Load(s.apart_re + at), Vector::Load(s.apart_im + at)});
        Vector::StoreFloats(out + at, Measure(Sum(even, odd), s.is_squared));
        if (!s.with_upper) continue;
        // The other one is the conjugate's.
        Vector::StoreFloats(
            out + back,
            Vector::Reverse(Measure(Difference(even, odd), s.is_squared)));
      }
    }
    const Register two = Vector::Broadcast(2);
    float middle[kLanes];
    Vector::StoreFloats(middle, Measure({two * Vector::Broadcast(re[kRow / 2]),
                                         two * Vector::Broadcast(im[kRow / 2])},
                                        s.is_squared));
    out[kRow / 2] = middle[0];
  }

  // Powers or magnitudes of one slice, in rows.
  static void Transform(const SpectrogramSlices& s, const float* samples,
                        float* out) {
    const int64_t rows = s.size / kRow;
    const int64_t room = rows * kPitch;
    double* const re[2] = {s.scratch, s.scratch + 2 * room};
    double* const im[2] = {s.scratch + room, s.scratch + 3 * room};
    switch (s.passes[0].radix) {
      case 1:
        RunFirst<1>(s, samples, re[0], im[0]);
        break;
      case 2:
        RunFirst<2>(s, samples, re[0], im[0]);
        break;
      case 4:
        RunFirst<4>(s, samples, re[0], im[0]);
        break;
      default:
        RunFirst<8>(s, samples, re[0], im[0]);
    }
    int at = 0;
    for (int i = 1; i < s.pass_count; ++i, at = 1 - at) {
      const FourierPass& pass = s.passes[i];
      if (pass.radix == 8) {
        RunPass<8>(pass, re[at], im[at], re[1 - at], im[1 - at]);
      } else {
        RunPass<4>(pass, re[at], im[at], re[1 - at], im[1 - at]);
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      RunColumns(s, row, re[at] + row * kPitch, im[at] + row * kPitch);
    }
    for (int64_t row = 0; row < rows; ++row) {
      RunPlaces(s, row, re[at] + row * kPitch, im[at] + row * kPitch);
    }
    re[at][kRow] = re[at][0];
    im[at][kRow] = im[at][0];
    TakeApart(s, re[at], im[at], out);
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_FOURIER_INL_H_
