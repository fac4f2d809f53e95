// Tiles with AVX2. vpmaddubsw would be the nearest instruction, but two
// products of 255 * 128 do not fit its 16 bits: codes and weights are widened
// to 16 bits and multiplied in pairs, which always fits.

#include <immintrin.h>

#include "engine/runtime/fast/int8_bands.h"
#include "engine/runtime/fast/int8_tile.h"

namespace optfarm::runtime {
namespace {

struct Avx2 {
  static constexpr int kMostRows = 4;
  // Places 0 and 2 of each group, and places 1 and 3, in 16 bits each.
  struct Pairs {
    __m256i even;
    __m256i odd;
  };
  using Weights = Pairs;
  static Weights Load(const int8_t* weights) {
    const __m256i all =
        _mm256_load_si256(reinterpret_cast<const __m256i*>(weights));
    return {_mm256_srai_epi16(_mm256_slli_epi16(all, 8), 8),
            _mm256_srai_epi16(all, 8)};
  }
  using Codes = Pairs;
  static Codes Spread(int32_t group) {
    const __m256i all = _mm256_set1_epi32(group);
    return {_mm256_and_si256(all, _mm256_set1_epi16(0xff)),
            _mm256_srli_epi16(all, 8)};
  }
  static __m256i Add(__m256i sum, const Codes& codes, const Weights& weights) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(codes.even, weights.even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(codes.odd, weights.odd));
  }
};

}  // namespace

void RunInt8TileAvx2(const Int8Tile& tile, int rows) {
  RunInt8Bands<Avx2>(tile, rows);
}

}  // namespace optfarm::runtime
