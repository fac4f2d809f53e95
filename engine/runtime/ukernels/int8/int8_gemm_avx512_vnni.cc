// int8 GEMM with vpdpbusd on 512 bits: a row takes two registers, so that 12
// rows leave room for the weights and the activations.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_epilogue_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

template <int kRows>
struct Tile {
  static void Run(const Int8GemmTile& tile) {
    __m512i all[kSets][kRows][2];
    Multiply(tile, all);
    auto& sums = all[0];
    if constexpr (kSets > 1) {
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        sums[r][0] = _mm512_add_epi32(sums[r][0], all[1][r][0]);
        sums[r][1] = _mm512_add_epi32(sums[r][1], all[1][r][1]);
      }
    }
    if (tile.epilogue != nullptr) {
      switch (PackingOf(*tile.epilogue)) {
        case Packing::kNothing:
          return Requantize<Packing::kNothing>(*tile.epilogue, sums);
        case Packing::kMost:
          return Requantize<Packing::kMost>(*tile.epilogue, sums);
        case Packing::kAll:
          return Requantize<Packing::kAll>(*tile.epilogue, sums);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      _mm512_store_si512(tile.out + r * kNr, sums[r][0]);
      _mm512_store_si512(tile.out + r * kNr + 16, sums[r][1]);
    }
  }

 private:
  // Few rows have sums of their own for every second group: each product waits
  // for the one before it in the same sum.
  static constexpr int kSets = kRows <= 2 ? 2 : 1;
  using Sums = __m512i[kSets][kRows][2];

  OPTFARM_INLINE static void Begin(const Int8GemmTile& tile, Sums& sums) {
    const __m512i init[2] = {_mm512_loadu_si512(tile.init),
                             _mm512_loadu_si512(tile.init + 16)};
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sums[0][r][0] = init[0];
      sums[0][r][1] = init[1];
      if constexpr (kSets > 1) {
        sums[1][r][0] = sums[1][r][1] = _mm512_setzero_si512();
      }
    }
    if (!tile.has_row_init) return;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512i row = _mm512_set1_epi32(tile.row_init[r]);
      sums[0][r][0] = _mm512_add_epi32(init[0], row);
      sums[0][r][1] = _mm512_add_epi32(init[1], row);
    }
  }

  OPTFARM_INLINE static void Multiply(const Int8GemmTile& tile, Sums& sums) {
    Begin(tile, sums);
    const int8_t* weights = tile.weights;
    const int8_t* prefetch = tile.prefetch != nullptr ? tile.prefetch : weights;
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = tile.indirection + tap * kRows;
      const int64_t depth = tile.DepthOf(tap, kKr);
      int64_t k = 0;
      for (; k + 2 * kKr <= depth; k += 2 * kKr) {
        _mm_prefetch(prefetch, _MM_HINT_T1);
        prefetch += 2 * tile.prefetch_step;
        AddGroups<2>(&inputs, k, weights, sums);
        weights += 2 * kGroupBytes;
      }
      if (k < depth) {
        AddGroups<1>(&inputs, k, weights, sums);
        weights += kGroupBytes;
      }
    }
  }

  static constexpr int kGroupBytes = kNr * kKr;

  // Pointers are read anew each time: there are more than registers, and what
  // compilers keep of them in vectors takes the place of products.
  template <int kGroups>
  OPTFARM_INLINE static void AddGroups(const uint8_t* const** inputs, int64_t k,
                                       const int8_t* weights, Sums& sums) {
    asm("" : "+r"(*inputs));
    __m512i low[kGroups], high[kGroups];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      low[g] = _mm512_load_si512(weights + g * kGroupBytes);
      high[g] = _mm512_load_si512(weights + g * kGroupBytes + 64);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* input = (*inputs)[r] + k;
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        int32_t group;
        std::memcpy(&group, input + g * kKr, sizeof(group));
        const __m512i values = _mm512_set1_epi32(group);
        auto& row = sums[g % kSets][r];
        row[0] = _mm512_dpbusd_epi32(row[0], values, low[g]);
        row[1] = _mm512_dpbusd_epi32(row[1], values, high[g]);
      }
    }
  }

  template <Packing kPacking>
  OPTFARM_INLINE static void Requantize(const Int8Epilogue& by,
                                        const __m512i (&sums)[kRows][2]) {
    EpilogueAvx512<kPacking> epilogue(by);
#pragma GCC unroll 6
    for (int r = 0; r + 1 < kRows; r += 2) {
      epilogue.Two(sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
    }
    if constexpr (kRows % 2 != 0) {
      epilogue.One(sums[kRows - 1][0], sums[kRows - 1][1]);
    }
  }
};

void RunInt8Gemm(const Int8GemmTile& tile, int rows) {
  static constexpr void (*kTiles[])(const Int8GemmTile&) = {
      Tile<1>::Run, Tile<2>::Run,  Tile<3>::Run,  Tile<4>::Run,
      Tile<5>::Run, Tile<6>::Run,  Tile<7>::Run,  Tile<8>::Run,
      Tile<9>::Run, Tile<10>::Run, Tile<11>::Run, Tile<12>::Run};
  static_assert(sizeof(kTiles) / sizeof(kTiles[0]) == kMr);
  kTiles[rows - 1](tile);
}

}  // namespace

constexpr MicroKernel kInt8GemmAvx512Vnni = {
    .name = "int8_gemm_avx512_vnni",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.avx512 = true, .avx512_vnni = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Gemm},
};

}  // namespace optfarm::runtime
