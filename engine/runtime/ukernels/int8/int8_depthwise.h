// The innermost loops of 8-bit depthwise convolution: a few neighbouring output
// pixels times 32 channels. The codes of up to four rows of the window are laid
// side by side for each channel, as dot products of bytes want them; what is
// laid out for one column serves all windows that cover it.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_H_

#include <cstdint>

#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {

// UNITS: bytes of one column of 32 channels and four rows.
inline constexpr int64_t kInt8ColumnBytes = kInt8Columns * kInt8Group;

// out[p, c] = start[c] + sum over rows y and columns x of the window of
//   codes[y, p * stride + x * dilation, c] * weights[x, y, c],
// wrapping in 32 bits; weights are the sum of one set or several.
// OWNERSHIP: all borrowed.
struct Int8DepthwiseTile {
  // The image's rows under the window, at the tile's first channel of column 0;
  // nullptr outside of the image.
  const uint8_t* const* lines = nullptr;
  // Where the image ends: codes up to there may be read.
  const uint8_t* end = nullptr;
  int taps_y = 0;
  int taps_x = 0;
  // Where pixel 0's window begins; columns outside of [0, width) do not exist.
  int64_t column = 0;
  int64_t width = 0;
  // UNITS: bytes from column to column.
  int64_t pixel_bytes = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  // What stands outside of the image.
  uint8_t padding = 0;
  // By set, column of the window, group of four rows, channel and row; 64-byte
  // aligned. Rows that fill up a group are zero.
  const int8_t* weights = nullptr;
  int sets = 1;
  const int32_t* start = nullptr;
  // Channels that exist, 1 to kInt8Columns.
  int channels = kInt8Columns;
  // Room for columns() * groups() columns; 64-byte aligned.
  uint8_t* scratch = nullptr;
  // pixels x kInt8Columns; 64-byte aligned.
  int32_t* out = nullptr;
  // Not nullptr: the sums go there as codes, and `out` is nothing. For
  // functions that are said to finish (int8_functions.h).
  const Int8Finish* finish = nullptr;
  // Not 0: the output line below is made too, whose windows lie one line of the
  // image further down and whose codes lie so many bytes behind. `lines` has
  // one more then. For functions that are said to make pairs.
  // REQUIRES then: `finish`, IsPaired().
  int64_t below = 0;

  // Whether a fourth row beside the window's is free, and the rest as usual.
  bool IsPaired() const {
    return taps_y < kInt8Group && taps_x == 3 && dilation == 1 && sets <= 2;
  }
};

// REQUIRES: 1 <= pixels, and pixels <= kInt8Rows where `finish` is nullptr.
using Int8DepthwiseFunction = void (*)(const Int8DepthwiseTile& tile,
                                       int pixels);

void RunInt8DepthwisePortable(const Int8DepthwiseTile& tile, int pixels);
void RunInt8DepthwiseAvx2(const Int8DepthwiseTile& tile, int pixels);
void RunInt8DepthwiseAvx512Vnni(const Int8DepthwiseTile& tile, int pixels);
void RunInt8DepthwiseNeon(const Int8DepthwiseTile& tile, int pixels);
void RunInt8DepthwiseNeonDot(const Int8DepthwiseTile& tile, int pixels);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_H_
