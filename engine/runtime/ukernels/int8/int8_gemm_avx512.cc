// int8 GEMM with AVX-512 but without its int8 dot products: both operands are
// widened to 16 bits and multiplied in pairs, as with AVX2, in registers twice
// as wide.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_epilogue_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_gemm_bands_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

// Places 0 and 2 of each group, and places 1 and 3, in 16 bits each.
struct Pairs {
  __m512i even;
  __m512i odd;
};

OPTFARM_INLINE Pairs Widen(const int8_t* weights) {
  const __m512i all = _mm512_load_si512(weights);
  return {_mm512_srai_epi16(_mm512_slli_epi16(all, 8), 8),
          _mm512_srai_epi16(all, 8)};
}

OPTFARM_INLINE Pairs Spread(const uint8_t* values) {
  int32_t group;
  std::memcpy(&group, values, sizeof(group));
  const __m512i all = _mm512_set1_epi32(group);
  return {_mm512_and_si512(all, _mm512_set1_epi16(0xff)),
          _mm512_srli_epi16(all, 8)};
}

OPTFARM_INLINE __m512i Add(__m512i sum, const Pairs& values,
                           const Pairs& weights) {
  sum = _mm512_add_epi32(sum, _mm512_madd_epi16(values.even, weights.even));
  return _mm512_add_epi32(sum, _mm512_madd_epi16(values.odd, weights.odd));
}

struct Avx512 {
  static constexpr int kBandRows = 6;
  static constexpr int kBandChannels = kNr;

  template <int kRows>
  static void Run(const Int8Band& band) {
    const Int8GemmTile& tile = band.tile;
    const __m512i init[2] = {_mm512_loadu_si512(tile.init),
                             _mm512_loadu_si512(tile.init + 16)};
    __m512i sums[kRows][2];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m512i of_row = _mm512_set1_epi32(tile.row_init[band.row + r]);
      sums[r][0] = _mm512_add_epi32(init[0], of_row);
      sums[r][1] = _mm512_add_epi32(init[1], of_row);
    }
    const int8_t* weights = tile.weights;
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = band.indirection(tap);
      for (int64_t k = 0; k < tile.DepthOf(tap, kKr); k += kKr) {
        const Pairs low = Widen(weights), high = Widen(weights + 64);
        weights += kNr * kKr;
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
          const Pairs values = Spread(inputs[r] + k);
          sums[r][0] = Add(sums[r][0], values, low);
          sums[r][1] = Add(sums[r][1], values, high);
        }
      }
    }
    if (tile.epilogue == nullptr) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        int32_t* out = tile.out + (band.row + r) * kNr;
        _mm512_store_si512(out, sums[r][0]);
        _mm512_store_si512(out + 16, sums[r][1]);
      }
      return;
    }
    Int8Epilogue by = *tile.epilogue;
    by.out += band.row * by.stride;
    EpilogueAvx512<Packing::kNothing> epilogue(by);
#pragma GCC unroll 3
    for (int r = 0; r + 1 < kRows; r += 2) {
      epilogue.Two(sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
    }
    if constexpr (kRows % 2 != 0) {
      epilogue.One(sums[kRows - 1][0], sums[kRows - 1][1]);
    }
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmAvx512 = {
    .name = "int8_gemm_avx512",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.avx512 = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Bands<Avx512, kNr>},
};

}  // namespace optfarm::runtime
