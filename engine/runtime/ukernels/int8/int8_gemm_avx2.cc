// int8 GEMM with AVX2. vpmaddubsw would be the nearest instruction, but two
// products of 255 * 128 do not fit its 16 bits: both operands are
// widened to 16 bits and multiplied in pairs, which always fits. Activations
// are widened beforehand, once for 16 channels, and weights once for six rows.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_gemm_bands_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;
// Groups of activations that are widened at a time.
constexpr int64_t kMostGroups = 64;
constexpr int64_t kGroupBytes = int64_t{kNr} * kKr;

// A row's groups in pairs of 16 bits: places 0 and 2, and places 1 and 3.
struct Pairs {
  alignas(32) uint32_t even[kMostGroups];
  alignas(32) uint32_t odd[kMostGroups];
};

void Widen(const uint8_t* values, int64_t groups, Pairs* pairs) {
  const __m256i low = _mm256_set1_epi16(0xff);
  int64_t g = 0;
  for (; g + 8 <= groups; g += 8) {
    const __m256i all =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + g * kKr));
    _mm256_store_si256(reinterpret_cast<__m256i*>(pairs->even + g),
                       _mm256_and_si256(all, low));
    _mm256_store_si256(reinterpret_cast<__m256i*>(pairs->odd + g),
                       _mm256_srli_epi16(all, 8));
  }
  for (; g < groups; ++g) {
    uint32_t all;
    std::memcpy(&all, values + g * kKr, sizeof(all));
    pairs->even[g] = all & 0xff00ff;
    pairs->odd[g] = all >> 8 & 0xff00ff;
  }
}

template <int kRows>
using Sums = __m256i[kRows][2];

template <int kRows>
OPTFARM_INLINE void AddPairs(const __m256i& low, const __m256i& high,
                             const Pairs* pairs, int64_t group, bool is_odd,
                             Sums<kRows>& sums) {
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const uint32_t* from = is_odd ? pairs[r].odd : pairs[r].even;
    const __m256i values = _mm256_set1_epi32(static_cast<int>(from[group]));
    sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(values, low));
    sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(values, high));
    // Compilers would add products to one another first, and keep them in
    // memory until then.
    asm("" : "+x"(sums[r][0]), "+x"(sums[r][1]));
  }
}

template <int kRows>
OPTFARM_INLINE void AddGroups(const Pairs* pairs, int64_t groups,
                              const int8_t* weights, Sums<kRows>& sums) {
  for (int64_t g = 0; g < groups; ++g, weights += kGroupBytes) {
    const auto* at = reinterpret_cast<const __m256i*>(weights);
    __m256i low = _mm256_load_si256(at), high = _mm256_load_si256(at + 1);
    AddPairs<kRows>(_mm256_srai_epi16(_mm256_slli_epi16(low, 8), 8),
                    _mm256_srai_epi16(_mm256_slli_epi16(high, 8), 8), pairs, g,
                    false, sums);
    // Read again: there is no register to keep them in.
    asm("" : "+r"(at));
    low = _mm256_load_si256(at), high = _mm256_load_si256(at + 1);
    AddPairs<kRows>(_mm256_srai_epi16(low, 8), _mm256_srai_epi16(high, 8),
                    pairs, g, true, sums);
  }
}

struct Avx2 {
  static constexpr int kBandRows = 6;
  static constexpr int kBandChannels = 16;

  template <int kRows>
  static void Run(const Int8Band& band) {
    const Int8GemmTile& tile = band.tile;
    Sums<kRows> sums;
    const auto* init =
        reinterpret_cast<const __m256i*>(tile.init + band.channel);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256i of_row = _mm256_set1_epi32(tile.row_init[band.row + r]);
      sums[r][0] = _mm256_add_epi32(_mm256_loadu_si256(init), of_row);
      sums[r][1] = _mm256_add_epi32(_mm256_loadu_si256(init + 1), of_row);
    }
    const int8_t* weights = tile.weights + band.channel * kKr;
    Pairs pairs[kRows];
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = band.indirection(tap);
      const int64_t all = tile.DepthOf(tap, kKr) / kKr;
      for (int64_t first = 0; first < all; first += kMostGroups) {
        const int64_t groups =
            all - first < kMostGroups ? all - first : kMostGroups;
        for (int r = 0; r < kRows; ++r) {
          Widen(inputs[r] + first * kKr, groups, &pairs[r]);
        }
        AddGroups<kRows>(pairs, groups, weights, sums);
        weights += groups * kGroupBytes;
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

constexpr MicroKernel kInt8GemmAvx2 = {
    .name = "int8_gemm_avx2",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.avx2 = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = RunInt8Bands<Avx2, kNr>},
};

}  // namespace optfarm::runtime
