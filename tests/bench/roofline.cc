#include "tests/bench/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace optfarm::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// About a millisecond: others may leave a machine alone for so long.
constexpr int64_t kTimes = 500 * 1000;
constexpr int kChains = 12;

#if defined(__x86_64__)
// Chains that wait for nobody but themselves; the values stay finite.
__attribute__((target("avx512f"), noinline)) float Avx512Chains() {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0f);
  __m512 factor = _mm512_set1_ps(0.5f);
  for (int64_t i = 0; i < kTimes; ++i) {
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) {
      sums[k] = _mm512_fmadd_ps(sums[k], factor, factor);
    }
    asm volatile("" : "+v"(factor));
  }
  float total = 0;
  for (const auto& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx2,fma"), noinline)) float Avx2Chains() {
  __m256 sums[kChains];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0f);
  __m256 factor = _mm256_set1_ps(0.5f);
  for (int64_t i = 0; i < kTimes; ++i) {
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) {
      sums[k] = _mm256_fmadd_ps(sums[k], factor, factor);
    }
    asm volatile("" : "+x"(factor));
  }
  float total = 0;
  for (const auto& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}
#endif

float ScalarChains() {
  float sums[kChains];
  for (float& sum : sums) sum = 1.0f;
  volatile float half = 0.5f;
  const float factor = half;
  for (int64_t i = 0; i < kTimes; ++i) {
    for (float& sum : sums) sum = __builtin_fmaf(sum, factor, factor);
  }
  float total = 0;
  for (float sum : sums) total += sum;
  return total;
}

double Gigaflops(float (*chains)(), int lanes) {
  double least = 1e30;
  volatile float kept = 0;
  for (int i = 0; i < 500; ++i) {
    const auto start = Clock::now();
    kept = kept + chains();
    least = std::min(least, Seconds(start));
  }
  return 2e-9 * static_cast<double>(kTimes) * kChains * lanes / least;
}

// Sums of far more memory than caches hold.
double Gigabytes() {
  constexpr size_t kWords = size_t{64} << 20;
  const std::vector<uint64_t> memory(kWords, 1);
  double least = 1e30;
  volatile uint64_t kept = 0;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    uint64_t sums[8] = {};
    for (size_t k = 0; k < kWords; k += 8) {
      for (int j = 0; j < 8; ++j) sums[j] += memory[k + j];
    }
    for (uint64_t sum : sums) kept = kept + sum;
    least = std::min(least, Seconds(start));
  }
  return 8e-9 * static_cast<double>(kWords) / least;
}

}  // namespace

Roofline MeasureRoofline() {
  Roofline found{"scalar", 0, Gigabytes()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    found.instructions = "AVX-512";
    found.gigaflops = Gigaflops(Avx512Chains, 16);
    return found;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.instructions = "AVX2";
    found.gigaflops = Gigaflops(Avx2Chains, 8);
    return found;
  }
#endif
  found.gigaflops = Gigaflops(ScalarChains, 1);
  return found;
}

}  // namespace optfarm::bench
