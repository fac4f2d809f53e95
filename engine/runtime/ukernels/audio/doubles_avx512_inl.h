// AVX-512: 8 doubles in a register, as audio_inl.h takes them. Only for files
// that are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_DOUBLES_AVX512_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_DOUBLES_AVX512_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"

namespace optfarm::runtime {
namespace {

struct Doubles512 {
  using Register = __m512d;
  using Words = uint64_t __attribute__((vector_size(64)));
  static constexpr int kLanes = 8;

  static OPTFARM_INLINE Register Broadcast(double x) {
    return _mm512_set1_pd(x);
  }
  static OPTFARM_INLINE Register Load(const double* p) {
    return _mm512_loadu_pd(p);
  }
  static OPTFARM_INLINE void Store(double* p, Register r) {
    _mm512_storeu_pd(p, r);
  }
  // a * b + c.
  static OPTFARM_INLINE Register MultiplyAdd(Register a, Register b,
                                             Register c) {
    return _mm512_fmadd_pd(a, b, c);
  }
  // a * b - c.
  static OPTFARM_INLINE Register MultiplySubtract(Register a, Register b,
                                                  Register c) {
    return _mm512_fmsub_pd(a, b, c);
  }
  // c - a * b.
  static OPTFARM_INLINE Register SubtractProduct(Register a, Register b,
                                                 Register c) {
    return _mm512_fnmadd_pd(a, b, c);
  }
  // The second operand comes through when one is NaN.
  static OPTFARM_INLINE Register Max(Register a, Register b) {
    return _mm512_max_pd(a, b);
  }
  // An estimate, improved until it is the square root but for the last bit: a
  // third of the instruction's time.
  static OPTFARM_INLINE Register Sqrt(Register x) {
    const Register half = _mm512_set1_pd(0.5);
    const Register estimate = _mm512_rsqrt14_pd(x);
    Register root = x * estimate;
    Register per_root = half * estimate;
    const Register error = _mm512_fnmadd_pd(root, per_root, half);
    root = _mm512_fmadd_pd(root, error, root);
    per_root = _mm512_fmadd_pd(per_root, error, per_root);
    const Register rest = _mm512_fnmadd_pd(root, root, x);
    root = _mm512_fmadd_pd(rest, per_root, root);
    // Zeros and infinity are their own.
    return _mm512_mask_mov_pd(root, _mm512_fpclass_pd_mask(x, 0x0e), x);
  }
  // Where a is finite b, elsewhere a.
  static OPTFARM_INLINE Register IfFinite(Register a, Register b) {
    // NaN of both kinds, infinity of both signs.
    return _mm512_mask_mov_pd(b, _mm512_fpclass_pd_mask(a, 0x99), a);
  }
  // Products 0, 2, 4, ... and 1, 3, 5, ... of 16 with their factors.
  static OPTFARM_INLINE void LoadProducts(const float* p, const double* factors,
                                          Register* even, Register* odd) {
    const Register low = LoadFloats(p) * Load(factors);
    const Register high = LoadFloats(p + kLanes) * Load(factors + kLanes);
    const __m512i evens = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i odds = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    *even = _mm512_permutex2var_pd(low, evens, high);
    *odd = _mm512_permutex2var_pd(low, odds, high);
  }
  // One value at each of the offsets.
  static OPTFARM_INLINE Register LoadAt(const float* p,
                                        const int32_t* offsets) {
    const __m256i at =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offsets));
    return _mm512_cvtps_pd(_mm256_i32gather_ps(p, at, 4));
  }
  static OPTFARM_INLINE Register LoadFloats(const float* p) {
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
  }
  // Eight values from each of the offsets on; those of a place together.
  static OPTFARM_INLINE void LoadColumns(const float* p, const int32_t* offsets,
                                         Register* columns) {
    __m256 rows[8], pairs[8], fours[8];
    for (int i = 0; i < 8; ++i) rows[i] = _mm256_loadu_ps(p + offsets[i]);
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      for (int k = 0; k < 2; ++k) {
        const __m256 a = pairs[i + k], b = pairs[i + 2 + k];
        fours[i + 2 * k] = _mm256_shuffle_ps(a, b, 0x44);
        fours[i + 2 * k + 1] = _mm256_shuffle_ps(a, b, 0xee);
      }
    }
    for (int i = 0; i < 4; ++i) {
      columns[i] =
          _mm512_cvtps_pd(_mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20));
      columns[i + 4] =
          _mm512_cvtps_pd(_mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31));
    }
  }
  static OPTFARM_INLINE void StoreFloats(float* p, Register r) {
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(r));
  }
  static OPTFARM_INLINE Register Reverse(Register r) {
    return _mm512_permutexvar_pd(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), r);
  }
  // Rows of eight as columns; halves of rows are put together by loads, which
  // leave the port that shuffles to others.
  static OPTFARM_INLINE void LoadTransposed(const double* p, Register* r) {
    for (int i = 0; i < 8; i += 4) {
      Register rows[4];
      for (int k = 0; k < 4; ++k) {
        const double* from = p + 8 * k + i;
        rows[k] =
            _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(from)),
                               _mm256_loadu_pd(from + 32), 1);
      }
      // Places 0 1 4 5 and 2 3 6 7 of rows 0 and 2, and of 1 and 3.
      const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
      const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
      const Register a = _mm512_permutex2var_pd(rows[0], low, rows[2]);
      const Register b = _mm512_permutex2var_pd(rows[1], low, rows[3]);
      const Register c = _mm512_permutex2var_pd(rows[0], high, rows[2]);
      const Register d = _mm512_permutex2var_pd(rows[1], high, rows[3]);
      r[i] = _mm512_unpacklo_pd(a, b);
      r[i + 1] = _mm512_unpackhi_pd(a, b);
      r[i + 2] = _mm512_unpacklo_pd(c, d);
      r[i + 3] = _mm512_unpackhi_pd(c, d);
    }
  }
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_DOUBLES_AVX512_INL_H_
