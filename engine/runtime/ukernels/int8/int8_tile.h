// The innermost loops of 8-bit products: a few rows of activations times 32
// columns of weights, in one file for each instruction set. All of them give
// the same 32 bits.
//
// Weights are signed: TensorFlow's codes 0..255 less 128, and as much less in
// their zero code, which changes no product. Activations stay unsigned, as
// vpdpbusd wants them.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_TILE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_TILE_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_finish.h"

namespace optfarm::runtime {

// Activations that are multiplied at a time: one dword of four codes.
inline constexpr int kInt8Group = 4;
// Columns of one tile.
inline constexpr int kInt8Columns = 32;
// The most rows of one tile.
inline constexpr int kInt8Rows = 12;

// out[r, c] = start[c] + row_start[r]
//   + sum over taps t and k < DepthOf(t) of
//     pixels[t, r][k] * weights[t, k, c],
// wrapping in 32 bits. OWNERSHIP: all borrowed.
struct Int8Tile {
  // all_taps() x rows pointers to DepthOf(tap) codes each.
  const uint8_t* const* pixels = nullptr;
  int64_t taps = 1;
  // A multiple of kInt8Group.
  int64_t depth = 0;
  // By tap, group, column and place within the group; 64-byte aligned.
  const int8_t* weights = nullptr;
  // kInt8Columns of them.
  const int32_t* start = nullptr;
  const int32_t* row_start = nullptr;
  // rows x kInt8Columns, row by row; 64-byte aligned.
  int32_t* out = nullptr;
  // Not nullptr: the sums go there as codes, and `out` is nothing. For
  // functions that are said to finish (int8_functions.h).
  const Int8Finish* finish = nullptr;
  // What will be read soon, from far away: a function may fetch it, `next_step`
  // bytes for each group of codes. nullptr for nothing.
  const int8_t* next = nullptr;
  int64_t next_step = 0;
  // Taps of one group behind the others (int8_weights.h).
  int64_t rest_taps = 0;
  // Whether one of row_start is not zero.
  bool has_row_start = true;

  OPTFARM_INLINE int64_t all_taps() const { return taps + rest_taps; }
  OPTFARM_INLINE int64_t DepthOf(int64_t tap) const {
    return tap < taps ? depth : kInt8Group;
  }
};

// REQUIRES: 1 <= rows <= kInt8Rows.
using Int8TileFunction = void (*)(const Int8Tile& tile, int rows);

// Which of them may run is for the caller to know.
void RunInt8TilePortable(const Int8Tile& tile, int rows);
void RunInt8TileAvx2(const Int8Tile& tile, int rows);
void RunInt8TileAvxVnni(const Int8Tile& tile, int rows);
void RunInt8TileAvx512(const Int8Tile& tile, int rows);
void RunInt8TileAvx512Vnni(const Int8Tile& tile, int rows);
void RunInt8TileNeon(const Int8Tile& tile, int rows);
void RunInt8TileNeonDot(const Int8Tile& tile, int rows);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_TILE_H_
