// int8 GEMM with vpdpbusd on 256 bits: six rows x two vectors of accumulators
// at a time.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_gemm_bands_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

struct AvxVnni {
  static constexpr int kBandRows = 6;
  static constexpr int kBandChannels = 16;

  template <int kRows>
  static void Run(const Int8Band& band) {
    const Int8GemmTile& tile = band.tile;
    __m256i sums[kRows][2];
    const auto* init =
        reinterpret_cast<const __m256i*>(tile.init + band.channel);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256i row = _mm256_set1_epi32(tile.row_init[band.row + r]);
      sums[r][0] = _mm256_add_epi32(_mm256_loadu_si256(init), row);
      sums[r][1] = _mm256_add_epi32(_mm256_loadu_si256(init + 1), row);
    }
    const int8_t* weights = tile.weights + band.channel * kKr;
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = band.indirection(tap);
      for (int64_t k = 0; k < tile.DepthOf(tap, kKr); k += kKr) {
        const auto* at = reinterpret_cast<const __m256i*>(weights);
        const __m256i low = _mm256_load_si256(at);
        const __m256i high = _mm256_load_si256(at + 1);
        weights += kNr * kKr;
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
          int32_t group;
          std::memcpy(&group, inputs[r] + k, sizeof(group));
          const __m256i values = _mm256_set1_epi32(group);
          sums[r][0] = _mm256_dpbusd_avx_epi32(sums[r][0], values, low);
          sums[r][1] = _mm256_dpbusd_avx_epi32(sums[r][1], values, high);
        }
      }
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      auto* out = reinterpret_cast<__m256i*>(tile.out + (band.row + r) * kNr +
                                             band.channel);
      _mm256_store_si256(out, sums[r][0]);
      _mm256_store_si256(out + 1, sums[r][1]);
    }
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmAvxVnni = {
    .name = "int8_gemm_avx_vnni",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.avx2 = true, .avx_vnni = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = RunInt8Bands<AvxVnni, kNr>},
};

}  // namespace optfarm::runtime
