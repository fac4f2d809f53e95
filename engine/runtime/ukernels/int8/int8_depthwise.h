// int8 depthwise micro-kernels (MicroKernelKind::kInt8Depthwise): a few
// neighbouring output pixels times nr channels. The values of up to kr rows of
// the window are interleaved for each channel, as int8 dot products want them;
// one interleaved column serves all windows that cover it.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_H_

#include <cstdint>

#include "engine/runtime/ukernels/int8/int8_epilogue.h"

namespace optfarm::runtime {

// out[p, c] = init[c] + sum over rows y and columns x of the window of
//   (input[y, p * stride + x * dilation, c] - activation_shift) *
//     weights[x, y, c],
// wrapping in 32 bits; weights are the sum of one set or several.
// activation_shift is the entry's (micro_kernel.h).
// OWNERSHIP: all borrowed.
struct Int8DepthwiseTile {
  // The input's rows under the window, at the tile's first channel of column 0;
  // nullptr outside of the input.
  const uint8_t* const* rows = nullptr;
  // Where the input ends: values up to there may be read.
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
  // The value outside of the input.
  uint8_t padding = 0;
  // By set, column of the window, group of kr rows, channel and row; 64-byte
  // aligned. Rows that fill up a group are zero.
  const int8_t* weights = nullptr;
  int sets = 1;
  // Accumulator init by channel, nr values.
  const int32_t* init = nullptr;
  // Channels that exist, 1 to nr.
  int channels = 0;
  // Room for the interleaved columns under the tile: nr * kr bytes for each
  // column and group of rows; 64-byte aligned.
  uint8_t* scratch = nullptr;
  // pixels x nr accumulators; 64-byte aligned.
  int32_t* out = nullptr;
  // Not nullptr: the accumulators are requantized and stored there, and `out`
  // is unused. For entries with kRequantizes.
  const Int8Epilogue* epilogue = nullptr;
  // Not 0: the output row below is computed too. Its windows lie one row of the
  // input further down and its values so many bytes behind; `rows` has one more
  // then. For entries with kPairsRows.
  // REQUIRES then: `epilogue`, IsPaired(kr).
  int64_t below = 0;

  // Whether a group of kr rows has one to spare beside the window's, and the
  // rest is as usual.
  bool IsPaired(int kr) const {
    return taps_y < kr && taps_x == 3 && dilation == 1 && sets <= 2;
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_H_
