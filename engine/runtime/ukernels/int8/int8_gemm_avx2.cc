// int8 GEMM with AVX2. vpmaddubsw would be the nearest instruction, but two
// products of 255 * 128 do not fit its 16 bits: both operands are widened to 16
// bits and multiplied in pairs along the depth (kr 2), which always fits.
// Activations are widened beforehand, once for 16 channels, and weights as they
// are loaded, once for six rows.

#include <immintrin.h>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_gemm_bands_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 2;
// Pairs of activations that are widened at a time.
constexpr int64_t kMostPairs = 128;
constexpr int64_t kGroupBytes = int64_t{kNr} * kKr;

// Pairs of a row, 16 bits each.
struct Pairs {
  alignas(32) uint32_t of[kMostPairs];
};

void Widen(const uint8_t* values, int64_t count, Pairs* pairs) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + i * kKr));
    _mm256_store_si256(reinterpret_cast<__m256i*>(pairs->of + i),
                       _mm256_cvtepu8_epi16(bytes));
  }
  // First layers and narrow ones have few pairs at a time.
  if (i + 4 <= count) {
    const __m128i bytes =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values + i * kKr));
    _mm_store_si128(reinterpret_cast<__m128i*>(pairs->of + i),
                    _mm_cvtepu8_epi16(bytes));
    i += 4;
  }
  for (; i < count; ++i) {
    pairs->of[i] = values[i * kKr] | uint32_t{values[i * kKr + 1]} << 16;
  }
}

// Pairs of eight channels.
OPTFARM_INLINE __m256i LoadWeights(const int8_t* weights) {
  return _mm256_cvtepi8_epi16(
      _mm_load_si128(reinterpret_cast<const __m128i*>(weights)));
}

struct Avx2 {
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
      const __m256i of_row = _mm256_set1_epi32(tile.row_init[band.row + r]);
      sums[r][0] = _mm256_add_epi32(_mm256_loadu_si256(init), of_row);
      sums[r][1] = _mm256_add_epi32(_mm256_loadu_si256(init + 1), of_row);
    }
    const int8_t* weights = tile.weights + band.channel * kKr;
    Pairs pairs[kRows];
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = band.indirection(tap);
      const int64_t all = tile.DepthOf(tap, kKr) / kKr;
      for (int64_t first = 0; first < all; first += kMostPairs) {
        const int64_t count =
            all - first < kMostPairs ? all - first : kMostPairs;
        for (int r = 0; r < kRows; ++r) {
          Widen(inputs[r] + first * kKr, count, &pairs[r]);
        }
        AddPairs<kRows>(pairs, count, weights, sums);
        weights += count * kGroupBytes;
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

 private:
  template <int kRows>
  OPTFARM_INLINE static void AddPairs(const Pairs* pairs, int64_t count,
                                      const int8_t* weights,
                                      __m256i (&sums)[kRows][2]) {
    for (int64_t i = 0; i < count; ++i, weights += kGroupBytes) {
      const __m256i low = LoadWeights(weights);
      const __m256i high = LoadWeights(weights + 16);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const __m256i pair =
            _mm256_set1_epi32(static_cast<int>(pairs[r].of[i]));
        sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(pair, low));
        sums[r][1] =
            _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(pair, high));
        // Compilers would add products to one another first, and keep them in
        // memory until then.
        asm("" : "+x"(sums[r][0]), "+x"(sums[r][1]));
      }
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
