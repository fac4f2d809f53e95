// AVX2: 4 doubles in a register, as audio_inl.h takes them. Only for files
// that are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_DOUBLES_AVX2_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_DOUBLES_AVX2_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"

namespace optfarm::runtime {
namespace {

struct Doubles256 {
  using Register = __m256d;
  using Words = uint64_t __attribute__((vector_size(32)));
  static constexpr int kLanes = 4;

  static OPTFARM_INLINE Register Broadcast(double x) {
    return _mm256_set1_pd(x);
  }
  static OPTFARM_INLINE Register Load(const double* p) {
    return _mm256_loadu_pd(p);
  }
  static OPTFARM_INLINE void Store(double* p, Register r) {
    _mm256_storeu_pd(p, r);
  }
  // a * b + c.
  static OPTFARM_INLINE Register MultiplyAdd(Register a, Register b,
                                             Register c) {
    return _mm256_fmadd_pd(a, b, c);
  }
  // a * b - c.
  static OPTFARM_INLINE Register MultiplySubtract(Register a, Register b,
                                                  Register c) {
    return _mm256_fmsub_pd(a, b, c);
  }
  // c - a * b.
  static OPTFARM_INLINE Register SubtractProduct(Register a, Register b,
                                                 Register c) {
    return _mm256_fnmadd_pd(a, b, c);
  }
  // The second operand comes through when one is NaN.
  static OPTFARM_INLINE Register Max(Register a, Register b) {
    return _mm256_max_pd(a, b);
  }
  static OPTFARM_INLINE Register Sqrt(Register x) { return _mm256_sqrt_pd(x); }
  // Where a is finite b, elsewhere a.
  static OPTFARM_INLINE Register IfFinite(Register a, Register b) {
    const Register nothing = a - a;
    const Register is_finite = _mm256_cmp_pd(nothing, nothing, _CMP_ORD_Q);
    return _mm256_blendv_pd(a, b, is_finite);
  }
  // Products 0, 2, 4, 6 and 1, 3, 5, 7 of 8 with their factors.
  static OPTFARM_INLINE void LoadProducts(const float* p, const double* factors,
                                          Register* even, Register* odd) {
    const Register low = LoadFloats(p) * Load(factors);
    const Register high = LoadFloats(p + kLanes) * Load(factors + kLanes);
    *even = _mm256_permute4x64_pd(_mm256_unpacklo_pd(low, high), 0xd8);
    *odd = _mm256_permute4x64_pd(_mm256_unpackhi_pd(low, high), 0xd8);
  }
  // One value at each of the offsets.
  static OPTFARM_INLINE Register LoadAt(const float* p,
                                        const int32_t* offsets) {
    return _mm256_cvtps_pd(_mm_setr_ps(p[offsets[0]], p[offsets[1]],
                                       p[offsets[2]], p[offsets[3]]));
  }
  static OPTFARM_INLINE Register LoadFloats(const float* p) {
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
  }
  // Four values from each of the offsets on; those of a place together.
  static OPTFARM_INLINE void LoadColumns(const float* p, const int32_t* offsets,
                                         Register* columns) {
    __m128 rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = _mm_loadu_ps(p + offsets[i]);
    _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
    for (int i = 0; i < 4; ++i) columns[i] = _mm256_cvtps_pd(rows[i]);
  }
  static OPTFARM_INLINE void StoreFloats(float* p, Register r) {
    _mm_storeu_ps(p, _mm256_cvtpd_ps(r));
  }
  static OPTFARM_INLINE Register Reverse(Register r) {
    return _mm256_permute4x64_pd(r, 0x1b);
  }
  // Rows of four as columns.
  static OPTFARM_INLINE void LoadTransposed(const double* p, Register* r) {
    Register rows[4];
    for (int k = 0; k < 4; ++k) rows[k] = Load(p + 4 * k);
    const Register a = _mm256_unpacklo_pd(rows[0], rows[1]);
    const Register b = _mm256_unpackhi_pd(rows[0], rows[1]);
    const Register c = _mm256_unpacklo_pd(rows[2], rows[3]);
    const Register d = _mm256_unpackhi_pd(rows[2], rows[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
  }
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_DOUBLES_AVX2_INL_H_
