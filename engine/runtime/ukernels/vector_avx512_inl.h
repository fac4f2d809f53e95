// AVX-512: 16 floats in a register, as the kernels that are
// written for any vector type take it (float_tile_inl.h). Only for files that
// are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_AVX512_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_AVX512_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"

namespace optfarm::runtime {
namespace {

struct Avx512 {
  using Register = __m512;
  using Words = int32_t __attribute__((vector_size(64)));
  static constexpr int kLanes = 16;

  static OPTFARM_INLINE Register Zero() { return _mm512_setzero_ps(); }
  static OPTFARM_INLINE Register Broadcast(const float* p) {
    return _mm512_set1_ps(*p);
  }
  static OPTFARM_INLINE Register Load(const float* p) {
    return _mm512_loadu_ps(p);
  }
  static OPTFARM_INLINE __mmask16 First(int lanes) {
    return static_cast<__mmask16>((1u << lanes) - 1);
  }
  static OPTFARM_INLINE Register LoadSome(const float* p, int lanes) {
    return _mm512_maskz_loadu_ps(First(lanes), p);
  }
  static OPTFARM_INLINE void Store(float* p, Register r) {
    _mm512_storeu_ps(p, r);
  }
  static OPTFARM_INLINE void StoreSome(float* p, Register r, int lanes) {
    _mm512_mask_storeu_ps(p, First(lanes), r);
  }
  static OPTFARM_INLINE Register MultiplyAdd(Register a, Register b,
                                             Register sum) {
    return _mm512_fmadd_ps(a, b, sum);
  }
  static OPTFARM_INLINE Register Add(Register a, Register b) {
    return _mm512_add_ps(a, b);
  }
  static OPTFARM_INLINE Register Subtract(Register a, Register b) {
    return _mm512_sub_ps(a, b);
  }
  // The second operand comes through when one is NaN, or both are equal.
  static OPTFARM_INLINE Register Max(Register a, Register b) {
    return _mm512_max_ps(a, b);
  }
  static OPTFARM_INLINE Register Min(Register a, Register b) {
    return _mm512_min_ps(a, b);
  }
  static OPTFARM_INLINE Register Divide(Register a, Register b) {
    return _mm512_div_ps(a, b);
  }
  // 1 / a but for the last bits: an estimate, improved by one step of Newton's
  // method. Zero, infinity and results that are denormal are not served.
  static OPTFARM_INLINE Register Reciprocal(Register a) {
    const Register estimate = _mm512_rcp14_ps(a);
    const Register error = _mm512_fnmadd_ps(a, estimate, _mm512_set1_ps(1.0f));
    return _mm512_fmadd_ps(estimate, error, estimate);
  }
  // The second operand comes through when one is NaN.
  static OPTFARM_INLINE Register Relu(Register a) {
    return _mm512_max_ps(_mm512_setzero_ps(), a);
  }
  static OPTFARM_INLINE Register Cap6(Register a) {
    return _mm512_min_ps(_mm512_set1_ps(6.0f), a);
  }
  static OPTFARM_INLINE bool HasNan(Register a) {
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) != 0;
  }
  static OPTFARM_INLINE void Prefetch(const char* p) {
    _mm_prefetch(p, _MM_HINT_T1);
  }
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_AVX512_INL_H_
