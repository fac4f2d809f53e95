// Float functions to the last bit as TensorFlow 1.4 computes them in its vector
// kernels on x86 (Eigen of 2017, AVX2 with FMA). Between quantized layers that
// bit counts: it moves the range found for the next quantized values, and
// QuantizedBiasAdd turns a range off by one bit into values off by up to 1.6 %.
// std::fma makes the result the same on every machine.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_VECTOR_MATH_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_VECTOR_MATH_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace optfarm::runtime {

// Elements in one vector of TensorFlow's. What is left over at the end of an
// array goes through the C library there.
inline constexpr int64_t kVectorLanes = 8;

// e^x = 2^m * e^r with m = floor(x / ln 2 + 1/2) and r = x - m * ln 2. The
// polynomial for e^r is that of expf in S. Moshier's Cephes. Outside of
// [-88.4, 88.4] the result stays at the bound's; NaN gives NaN.
inline float VectorExp(float x) {
  constexpr float kBound = 88.3762626647949f;
  constexpr float kLn2 = 0.6931471805599453f;
  constexpr float kPerLn2 = 1.44269504088896341f;
  // Written without std::clamp and std::floor, so that a loop over it becomes
  // vector instructions. NaN becomes the bound; the last line brings it back.
  const float below = x < kBound ? x : kBound;
  const float within = below > -kBound ? below : -kBound;
  const float above_m = std::fma(within, kPerLn2, 0.5f);
  const auto cut = static_cast<int32_t>(above_m);
  const int32_t m =
      cut - static_cast<int32_t>(static_cast<float>(cut) > above_m);
  const float r = std::fma(static_cast<float>(m), -kLn2, within);
  float p = 1.9875691500e-4f;
  p = std::fma(p, r, 1.3981999507e-3f);
  p = std::fma(p, r, 8.3334519073e-3f);
  p = std::fma(p, r, 4.1665795894e-2f);
  p = std::fma(p, r, 1.6666665459e-1f);
  p = std::fma(p, r, 5.0000001201e-1f);
  const float mantissa = std::fma(p, r * r, r) + 1.0f;
  // m lies in [-127, 127]; -127 gives zero.
  const auto power = static_cast<uint32_t>(m + 127) << 23;
  const float value = mantissa * std::bit_cast<float>(power);
  return value > x ? value : x;
}

// 1 / sqrt(x): an estimate, improved by one step of Newton's method. The
// estimate is the one of Intel's RSQRTPS instruction: for all x that share the
// parity of the exponent and the first 10 bits of the mantissa it is
// 1 / sqrt(their middle), rounded to 2^-13 of the result's power of two. The
// relative error stays below 2.5e-7.
inline float VectorRsqrt(float x) {
  if (!std::isnormal(x) || x < 0.0f) return 1.0f / std::sqrt(x);
  int exponent = 0;
  std::frexp(x, &exponent);
  // x = f * 4^k with f in [1, 4).
  const int k = (exponent - 1) >> 1;
  const double f = std::ldexp(double{x}, -2 * k);
  const double width = f < 2.0 ? 0x1p-10 : 0x1p-9;
  const double middle = (std::floor(f / width) + 0.5) * width;
  const double rounded = std::round(0x1p13 / std::sqrt(middle));
  const float estimate = static_cast<float>(std::ldexp(rounded, -13 - k));
  return estimate * std::fma(-0.5f * x, estimate * estimate, 1.5f);
}

// 1 / sqrt of each element: whole vectors by VectorRsqrt, the rest exactly.
inline void RsqrtOfArray(const float* in, int64_t count, float* out) {
  const int64_t in_vectors = count / kVectorLanes * kVectorLanes;
  for (int64_t i = 0; i < in_vectors; ++i) out[i] = VectorRsqrt(in[i]);
  for (int64_t i = in_vectors; i < count; ++i) out[i] = 1.0f / std::sqrt(in[i]);
}

// 1 / (1 + e^-x) of each element: whole vectors by VectorExp, the rest by the C
// library. `out` may be `in`.
inline void SigmoidOfArray(const float* in, int64_t count, float* out) {
  const int64_t in_vectors = count / kVectorLanes * kVectorLanes;
  for (int64_t begin = 0; begin < in_vectors; begin += kVectorLanes) {
    // A block apart from `out` lets the loop become vector instructions.
    float block[kVectorLanes];
    for (int64_t i = 0; i < kVectorLanes; ++i) {
      block[i] = 1.0f / (1.0f + VectorExp(-in[begin + i]));
    }
    std::copy_n(block, kVectorLanes, out + begin);
  }
  for (int64_t i = in_vectors; i < count; ++i) {
    out[i] = 1.0f / (1.0f + std::exp(-in[i]));
  }
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_VECTOR_MATH_H_
