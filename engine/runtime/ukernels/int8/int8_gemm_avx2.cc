// int8 GEMM with AVX2. vpmaddubsw would be the nearest instruction, but two
// products of 255 * 128 do not fit its 16 bits: both operands are widened to 16
// bits and multiplied in pairs along the depth (kr 2), which always fits.
// Activations are widened once for all panels, and weights as they are loaded,
// once for six rows.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_avx2_inl.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_gemm_bands_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 2;
constexpr int64_t kGroupBytes = int64_t{kNr} * kKr;
// Bytes of a widened activation.
constexpr int kCopies = 2;

OPTFARM_INLINE void WidenSixteen(const uint8_t* values, uint8_t* to) {
  const __m128i bytes =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_cvtepu8_epi16(bytes));
}

// Stores `count` values, a multiple of kr, in 16 bits each.
OPTFARM_INLINE void Widen(const uint8_t* values, int64_t count, uint8_t* to) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) WidenSixteen(values + i, to + i * kCopies);
  // First layers and narrow ones have few at a time.
  if (i + 8 <= count) {
    const __m128i bytes =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * kCopies),
                     _mm_cvtepu8_epi16(bytes));
    i += 8;
  }
  if (i + 4 <= count) {
    int four;
    std::memcpy(&four, values + i, sizeof four);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i * kCopies),
                     _mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
    i += 4;
  }
  if (i < count) {
    const uint32_t pair = values[i] | uint32_t{values[i + 1]} << 16;
    std::memcpy(to + i * kCopies, &pair, sizeof pair);
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
    // The first layers of small nets have eight channels.
    if (band.tile.channels - band.channel <= 8) return RunBy<kRows, 1>(band);
    RunBy<kRows, 2>(band);
  }

  // Copies a band's activations, row by row.
  template <int kRows>
  static void Pack(const Int8Band& band, int64_t first_tap) {
    PackRows(band, kRows, first_tap);
  }

 private:
  // By kVectors of eight channels; the others become zero.
  template <int kRows, int kVectors>
  OPTFARM_INLINE static void RunBy(const Int8Band& band) {
    const Int8GemmTile& tile = band.tile;
    __m256i sums[kRows][kVectors];
    const auto* init =
        reinterpret_cast<const __m256i*>(tile.init + band.channel);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256i of_row = _mm256_set1_epi32(tile.row_init[band.row + r]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm256_add_epi32(_mm256_loadu_si256(init + v), of_row);
      }
    }
    AddPairs<kRows, kVectors>(band, sums);
    if (tile.epilogue != nullptr) return Requantize(band, sums);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      auto* out = reinterpret_cast<__m256i*>(tile.out + (band.row + r) * kNr +
                                             band.channel);
      for (int v = 0; v < 2; ++v) {
        _mm256_store_si256(out + v,
                           v < kVectors ? sums[r][v] : _mm256_setzero_si256());
      }
    }
  }

  template <int kRows, int kVectors>
  OPTFARM_INLINE static void Requantize(const Int8Band& band,
                                        __m256i (&sums)[kRows][kVectors]) {
    constexpr int kHigh = kVectors - 1;
    EpilogueAvx2 epilogue(*band.tile.epilogue, band.row, band.channel);
#pragma GCC unroll 3
    for (int r = 0; r + 1 < kRows; r += 2) {
      epilogue.Two(sums[r][0], sums[r][kHigh], sums[r + 1][0],
                   sums[r + 1][kHigh]);
    }
    if constexpr (kRows % 2 == 1) {
      epilogue.One(sums[kRows - 1][0], sums[kRows - 1][kHigh]);
    }
  }

  __attribute__((noinline)) static void PackRows(const Int8Band& band, int rows,
                                                 int64_t first_tap) {
    const Int8GemmTile& tile = band.tile;
    uint8_t* packed = band.packed() + first_tap * tile.depth * kCopies;
    for (int64_t tap = first_tap; tap < tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = band.indirection(tap);
      const int64_t depth = tile.DepthOf(tap, kKr);
      uint8_t* to = packed;
      if (depth == 16) {
        for (int r = 0; r < rows; ++r, to += tile.packed_stride) {
          WidenSixteen(inputs[r], to);
        }
      } else {
        for (int r = 0; r < rows; ++r, to += tile.packed_stride) {
          Widen(inputs[r], depth, to);
        }
      }
      packed += depth * kCopies;
    }
  }

  template <int kRows, int kVectors>
  OPTFARM_INLINE static void AddPairs(const Int8Band& band,
                                      __m256i (&sums)[kRows][kVectors]) {
    const Int8GemmTile& tile = band.tile;
    const int8_t* weights = tile.weights + band.channel * kKr;
    const uint8_t* rows[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      rows[r] = band.packed() + r * tile.packed_stride;
    }
    const int64_t count = tile.WholeDepth(kKr) / kKr;
    for (int64_t i = 0; i < count; ++i, weights += kGroupBytes) {
      __m256i columns[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        columns[v] = LoadWeights(weights + v * 16);
      }
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        int pair;
        std::memcpy(&pair, rows[r] + i * sizeof pair, sizeof pair);
        const __m256i pairs = _mm256_set1_epi32(pair);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = _mm256_add_epi32(sums[r][v],
                                        _mm256_madd_epi16(pairs, columns[v]));
        }
        // Compilers would add products to one another first, and keep them in
        // memory until then.
        for (int v = 0; v < kVectors; ++v) asm("" : "+x"(sums[r][v]));
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
    .activations = ActivationLayout::kPacked,
    .pack = PackInt8Bands<Avx2>,
    .packed_copies = kCopies,
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Bands<Avx2, kNr>},
};

}  // namespace optfarm::runtime
