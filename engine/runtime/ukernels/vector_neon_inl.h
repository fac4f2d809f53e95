// ARM's NEON: 4 floats in a register, as the kernels that are written for any
// vector type take it (float_tile_inl.h). Only for files that are compiled for
// this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_NEON_INL_H_

#include <arm_neon.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"

namespace optfarm::runtime {
namespace {

struct Neon {
  using Register = float32x4_t;
  using Words = int32_t __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;

  static OPTFARM_INLINE Register Zero() { return vdupq_n_f32(0.0f); }
  static OPTFARM_INLINE Register Broadcast(const float* p) {
    return vld1q_dup_f32(p);
  }
  static OPTFARM_INLINE Register Load(const float* p) { return vld1q_f32(p); }
  static OPTFARM_INLINE Register LoadSome(const float* p, int lanes) {
    float some[kLanes] = {};
    for (int i = 0; i < lanes; ++i) some[i] = p[i];
    return vld1q_f32(some);
  }
  static OPTFARM_INLINE void Store(float* p, Register r) { vst1q_f32(p, r); }
  static OPTFARM_INLINE void StoreSome(float* p, Register r, int lanes) {
    float some[kLanes];
    vst1q_f32(some, r);
    for (int i = 0; i < lanes; ++i) p[i] = some[i];
  }
  static OPTFARM_INLINE Register MultiplyAdd(Register a, Register b,
                                             Register sum) {
    return vfmaq_f32(sum, a, b);
  }
  static OPTFARM_INLINE Register Add(Register a, Register b) {
    return vaddq_f32(a, b);
  }
  static OPTFARM_INLINE Register Subtract(Register a, Register b) {
    return vsubq_f32(a, b);
  }
  // The second operand comes through when one is NaN, or both are equal.
  static OPTFARM_INLINE Register Max(Register a, Register b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
  }
  static OPTFARM_INLINE Register Min(Register a, Register b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
  }
  static OPTFARM_INLINE Register Divide(Register a, Register b) {
#if defined(__aarch64__)
    return vdivq_f32(a, b);
#else
    float x[kLanes], y[kLanes];
    vst1q_f32(x, a);
    vst1q_f32(y, b);
    for (int i = 0; i < kLanes; ++i) x[i] /= y[i];
    return vld1q_f32(x);
#endif
  }
  // 1 / a.
  static OPTFARM_INLINE Register Reciprocal(Register a) {
    return Divide(vdupq_n_f32(1.0f), a);
  }
  // Chosen by comparison, which is false for NaN and for -0.
  static OPTFARM_INLINE Register Relu(Register a) {
    const uint32x4_t is_negative = vcltq_f32(a, vdupq_n_f32(0.0f));
    return vreinterpretq_f32_u32(
        vbicq_u32(vreinterpretq_u32_f32(a), is_negative));
  }
  // NaN stays NaN.
  static OPTFARM_INLINE Register Cap6(Register a) {
    return vminq_f32(a, vdupq_n_f32(6.0f));
  }
  static OPTFARM_INLINE bool HasNan(Register a) {
    const uint32x4_t equal = vceqq_f32(a, a);
#if defined(__aarch64__)
    return vminvq_u32(equal) == 0;
#else
    const uint32x2_t both = vand_u32(vget_low_u32(equal), vget_high_u32(equal));
    return (vget_lane_u32(both, 0) & vget_lane_u32(both, 1)) == 0;
#endif
  }
  static OPTFARM_INLINE void Prefetch(const char* p) {
    __builtin_prefetch(p, 0, 2);
  }
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_VECTOR_NEON_INL_H_
