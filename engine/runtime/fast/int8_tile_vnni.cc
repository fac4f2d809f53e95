// Tiles with vpdpbusd on 512 bits: a row takes two registers, so that 12 rows
// leave room for the weights and the codes.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/fast/int8_finish_avx512_inl.h"
#include "engine/runtime/fast/int8_tile.h"

namespace optfarm::runtime {
namespace {

template <int kRows>
struct Tile {
  static void Run(const Int8Tile& tile) {
    __m512i sums[kRows][2];
    Multiply(tile, sums);
    if (tile.finish != nullptr) return Finish(*tile.finish, sums);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      _mm512_store_si512(tile.out + r * kInt8Columns, sums[r][0]);
      _mm512_store_si512(tile.out + r * kInt8Columns + 16, sums[r][1]);
    }
  }

 private:
  OPTFARM_INLINE static void Multiply(const Int8Tile& tile,
                                      __m512i (&sums)[kRows][2]) {
    const __m512i start[2] = {_mm512_loadu_si512(tile.start),
                              _mm512_loadu_si512(tile.start + 16)};
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512i row = _mm512_set1_epi32(tile.row_start[r]);
      sums[r][0] = _mm512_add_epi32(start[0], row);
      sums[r][1] = _mm512_add_epi32(start[1], row);
    }
    const int8_t* weights = tile.weights;
    const int8_t* next = tile.next != nullptr ? tile.next : weights;
    for (int64_t tap = 0; tap < tile.taps; ++tap) {
      const uint8_t* const* pixels = tile.pixels + tap * kRows;
      for (int64_t k = 0; k < tile.depth; k += kInt8Group) {
        const __m512i low = _mm512_load_si512(weights);
        const __m512i high = _mm512_load_si512(weights + 64);
        weights += 128;
        _mm_prefetch(next, _MM_HINT_T1);
        next += tile.next_step;
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          int32_t group;
          std::memcpy(&group, pixels[r] + k, sizeof(group));
          const __m512i codes = _mm512_set1_epi32(group);
          sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], codes, low);
          sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], codes, high);
        }
      }
    }
  }

  OPTFARM_INLINE static void Finish(const Int8Finish& by,
                                    const __m512i (&sums)[kRows][2]) {
    FinishAvx512 finish(by);
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
