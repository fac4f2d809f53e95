// Tiles with vpdpbusd on 512 bits: a row takes two registers, so that 12 rows
// leave room for the weights and the codes.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_finish_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {
namespace {

template <int kRows>
struct Tile {
  static void Run(const Int8Tile& tile) {
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
    if (tile.finish != nullptr) {
      switch (PackingOf(*tile.finish)) {
        case Packing::kNothing:
          return Finish<Packing::kNothing>(*tile.finish, sums);
        case Packing::kMost:
          return Finish<Packing::kMost>(*tile.finish, sums);
        case Packing::kAll:
          return Finish<Packing::kAll>(*tile.finish, sums);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      _mm512_store_si512(tile.out + r * kInt8Columns, sums[r][0]);
      _mm512_store_si512(tile.out + r * kInt8Columns + 16, sums[r][1]);
    }
  }

 private:
  // Few rows have sums of their own for every second group: each product waits
  // for the one before it in the same sum.
  static constexpr int kSets = kRows <= 2 ? 2 : 1;
  using Sums = __m512i[kSets][kRows][2];

  OPTFARM_INLINE static void Begin(const Int8Tile& tile, Sums& sums) {
    const __m512i start[2] = {_mm512_loadu_si512(tile.start),
                              _mm512_loadu_si512(tile.start + 16)};
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sums[0][r][0] = start[0];
      sums[0][r][1] = start[1];
      if constexpr (kSets > 1) {
        sums[1][r][0] = sums[1][r][1] = _mm512_setzero_si512();
      }
    }
    if (!tile.has_row_start) return;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512i row = _mm512_set1_epi32(tile.row_start[r]);
      sums[0][r][0] = _mm512_add_epi32(start[0], row);
      sums[0][r][1] = _mm512_add_epi32(start[1], row);
    }
  }

  OPTFARM_INLINE static void Multiply(const Int8Tile& tile, Sums& sums) {
    Begin(tile, sums);
    const int8_t* weights = tile.weights;
    const int8_t* next = tile.next != nullptr ? tile.next : weights;
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* const* pixels = tile.pixels + tap * kRows;
      const int64_t depth = tile.DepthOf(tap);
      int64_t k = 0;
      for (; k + 2 * kInt8Group <= depth; k += 2 * kInt8Group) {
        _mm_prefetch(next, _MM_HINT_T1);
        next += 2 * tile.next_step;
        AddGroups<2>(&pixels, k, weights, sums);
        weights += 2 * kGroupBytes;
      }
      if (k < depth) {
        AddGroups<1>(&pixels, k, weights, sums);
        weights += kGroupBytes;
      }
    }
  }

  static constexpr int kGroupBytes = kInt8Columns * kInt8Group;

  // Pointers are read anew each time: there are more than registers, and what
  // compilers keep of them in vectors takes the place of products.
  template <int kGroups>
  OPTFARM_INLINE static void AddGroups(const uint8_t* const** pixels, int64_t k,
                                       const int8_t* weights, Sums& sums) {
    asm("" : "+r"(*pixels));
    __m512i low[kGroups], high[kGroups];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      low[g] = _mm512_load_si512(weights + g * kGroupBytes);
      high[g] = _mm512_load_si512(weights + g * kGroupBytes + 64);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* pixel = (*pixels)[r] + k;
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        int32_t group;
        std::memcpy(&group, pixel + g * kInt8Group, sizeof(group));
        const __m512i codes = _mm512_set1_epi32(group);
        auto& row = sums[g % kSets][r];
        row[0] = _mm512_dpbusd_epi32(row[0], codes, low[g]);
        row[1] = _mm512_dpbusd_epi32(row[1], codes, high[g]);
      }
    }
  }

  template <Packing kPacking>
  OPTFARM_INLINE static void Finish(const Int8Finish& by,
                                    const __m512i (&sums)[kRows][2]) {
    FinishAvx512<kPacking> finish(by);
#pragma GCC unroll 6
    for (int r = 0; r + 1 < kRows; r += 2) {
      finish.Two(sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
    }
    if constexpr (kRows % 2 != 0) {
      finish.One(sums[kRows - 1][0], sums[kRows - 1][1]);
    }
  }
};

}  // namespace

void RunInt8TileAvx512Vnni(const Int8Tile& tile, int rows) {
  static_assert(kInt8Rows == 12);
  static constexpr void (*kTiles[])(const Int8Tile&) = {
      Tile<1>::Run, Tile<2>::Run,  Tile<3>::Run,  Tile<4>::Run,
      Tile<5>::Run, Tile<6>::Run,  Tile<7>::Run,  Tile<8>::Run,
      Tile<9>::Run, Tile<10>::Run, Tile<11>::Run, Tile<12>::Run};
  kTiles[rows - 1](tile);
}

}  // namespace optfarm::runtime
