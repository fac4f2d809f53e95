// Tiles with vpdpbusd on 256 bits: six rows x two vectors of sums, so a tile is
// done in up to two bands of rows and two of columns.

#include <immintrin.h>

#include "engine/runtime/ukernels/int8/int8_bands.h"
#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {
namespace {

struct AvxVnni {
  static constexpr int kMostRows = 6;
  using Weights = __m256i;
  static Weights Load(const int8_t* weights) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(weights));
  }
  using Codes = __m256i;
  static Codes Spread(int32_t group) { return _mm256_set1_epi32(group); }
  static __m256i Add(__m256i sum, Codes codes, const Weights& weights) {
    return _mm256_dpbusd_avx_epi32(sum, codes, weights);
  }
};

}  // namespace

void RunInt8TileAvxVnni(const Int8Tile& tile, int rows) {
  RunInt8Bands<AvxVnni>(tile, rows);
}

}  // namespace optfarm::runtime
