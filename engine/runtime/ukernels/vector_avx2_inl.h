// AVX2: 8 floats in a register, as the kernels that are
// written for any vector type take it (float_tile_inl.h). Only for files that
// are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_AVX2_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_AVX2_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"

namespace optfarm::runtime {
namespace {

struct Avx2 {
  using Register = __m256;
  using Words = int32_t __attribute__((vector_size(32)));
  static constexpr int kLanes = 8;

  static OPTFARM_INLINE Register Zero() { return _mm256_setzero_ps(); }
  static OPTFARM_INLINE Register Broadcast(const float* p) {
    return _mm256_set1_ps(*p);
  }
  static OPTFARM_INLINE Register Load(const float* p) {
    return _mm256_loadu_ps(p);
  }
  static OPTFARM_INLINE __m256i First(int lanes) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static OPTFARM_INLINE Register LoadSome(const float* p, int lanes) {
    return _mm256_maskload_ps(p, First(lanes));
  }
  static OPTFARM_INLINE void Store(float* p, Register r) {
    _mm256_storeu_ps(p, r);
  }
  static OPTFARM_INLINE void StoreSome(float* p, Register r, int lanes) {
    _mm256_maskstore_ps(p, First(lanes), r);
  }
  static OPTFARM_INLINE Register MultiplyAdd(Register a, Register b,
                                             Register sum) {
    return _mm256_fmadd_ps(a, b, sum);
  }
  static OPTFARM_INLINE Register Add(Register a, Register b) {
    return _mm256_add_ps(a, b);
  }
  static OPTFARM_INLINE Register Subtract(Register a, Register b) {
    return _mm256_sub_ps(a, b);
  }
  // The second operand comes through when one is NaN, or both are equal.
  static OPTFARM_INLINE Register Max(Register a, Register b) {
    return _mm256_max_ps(a, b);
  }
  static OPTFARM_INLINE Register Min(Register a, Register b) {
    return _mm256_min_ps(a, b);
  }
  static OPTFARM_INLINE Register Divide(Register a, Register b) {
    return _mm256_div_ps(a, b);
  }
  // 1 / a.
  static OPTFARM_INLINE Register Reciprocal(Register a) {
    return _mm256_div_ps(_mm256_set1_ps(1.0f), a);
  }
  // The second operand comes through when one is NaN.
  static OPTFARM_INLINE Register Relu(Register a) {
    return _mm256_max_ps(_mm256_setzero_ps(), a);
  }
  static OPTFARM_INLINE Register Cap6(Register a) {
    return _mm256_min_ps(_mm256_set1_ps(6.0f), a);
  }
  static OPTFARM_INLINE bool HasNan(Register a) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)) != 0;
  }
  static OPTFARM_INLINE void Prefetch(const char* p) {
    _mm_prefetch(p, _MM_HINT_T1);
  }
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_AVX2_INL_H_
