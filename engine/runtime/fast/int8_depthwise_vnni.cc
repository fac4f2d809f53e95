// Depthwise tiles with vpdpbusd on 512 bits.

#include <immintrin.h>

#include "engine/runtime/fast/int8_depthwise_loops.h"

namespace optfarm::runtime {
namespace {

struct Avx512Vnni {
  struct Sums {
    __m512i low;
    __m512i high;
  };
  static __m512i Widen(const uint8_t* codes) {
    return _mm512_cvtepu8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  }
  static void Lay(const uint8_t* const* rows, uint8_t* out) {
    for (int half = 0; half < kInt8Columns; half += 16) {
      const __m512i two = _mm512_or_si512(
          Widen(rows[0] + half), _mm512_slli_epi32(Widen(rows[1] + half), 8));
      // or, or
      const __m512i all = _mm512_ternarylogic_epi32(
          two, _mm512_slli_epi32(Widen(rows[2] + half), 16),
          _mm512_slli_epi32(Widen(rows[3] + half), 24), 0xfe);
      _mm512_store_si512(out + half * kInt8Group, all);
    }
  }
  static Sums Load(const int32_t* numbers) {
    return {_mm512_loadu_si512(numbers), _mm512_loadu_si512(numbers + 16)};
  }
  static Sums LoadWeights(const int8_t* weights) {
    return {_mm512_load_si512(weights), _mm512_load_si512(weights + 64)};
  }
  static void Store(const Sums& sums, int32_t* out) {
    _mm512_store_si512(out, sums.low);
    _mm512_store_si512(out + 16, sums.high);
  }
  static Sums AddWeights(const Sums& sums, const uint8_t* codes,
                         const Sums& weights) {
    return {
        _mm512_dpbusd_epi32(sums.low, _mm512_load_si512(codes), weights.low),
        _mm512_dpbusd_epi32(sums.high, _mm512_load_si512(codes + 64),
                            weights.high)};
  }
  static Sums Add(const Sums& sums, const uint8_t* codes,
                  const int8_t* weights) {
    return AddWeights(sums, codes, LoadWeights(weights));
  }
};

}  // namespace

void RunInt8DepthwiseAvx512Vnni(const Int8DepthwiseTile& tile, int pixels) {
  Int8DepthwiseLoops<Avx512Vnni>::Run(tile, pixels);
}

}  // namespace optfarm::runtime
