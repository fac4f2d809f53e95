// Winograd's minimal filtering F(2x2, 3x3): four results of a 3x3 convolution,
// a tile of two by two pixels, from 16 products a channel instead of 36.
//
//   Y = A' [ (G g G') * (B' d B) ] A      (' transposes, * is by element)
//
//   B' = 1  0 -1  0    G =  1    0    0    A' = 1  1  1  0
//        0  1  1  0        1/2  1/2  1/2        0  1 -1 -1
//        0 -1  1  0        1/2 -1/2  1/2
//        0  1  0 -1         0    0    1
//
// d are the 4x4 inputs that a tile sees, g the filter; summed over channels,
// each of the 16 positions is a matrix product of its own. All constants are
// powers of two, so that only sums round, and no result depends on an input
// that its own window does not see: results differ from plain sums by a few
// times the rounding of those (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015). Infinity minus infinity would make NaN
// of what is infinite in plain sums: results that are not finite are not
// stored, and have to be added up plainly.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_WINOGRAD_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_WINOGRAD_H_

#include <cstdint>

#include "engine/runtime/ukernels/float/float_tile.h"

namespace optfarm::runtime {

inline constexpr int kWinogradTaps = 9;
// Inputs of a tile, and what they become.
inline constexpr int kWinogradPositions = 16;
// Channels of images come in such groups.
inline constexpr int kWinogradChannels = 16;

// One panel's filters: `taps` * channels rows of `width` values become
// `positions` * channels rows.
struct WinogradFilters {
  const float* panel = nullptr;
  int64_t channels = 0;
  int width = 0;
  float* to = nullptr;
  // UNITS: elements from position to position of `to`.
  int64_t position_stride = 0;
};

// What one tile sees.
struct WinogradInputs {
  // By row and column: where a pixel's channels stand.
  const float* pixels[kWinogradPositions] = {};
  // REQUIRES: a multiple of kWinogradChannels.
  int64_t channels = 0;
  float* to = nullptr;
  // UNITS: elements from position to position of `to`.
  int64_t position_stride = 0;
};

// One tile's sums over channels, and what becomes of them.
struct WinogradResults {
  const float* sums = nullptr;
  // UNITS: elements from position to position of `sums`.
  int64_t position_stride = 0;
  // As in FloatTile.
  const float* scale = nullptr;
  const float* bias = nullptr;
  int columns = 0;
  Rectifier rectifier = Rectifier::kNone;
  // By row and column; nullptr for a pixel that is not there.
  float* out[4] = {};
  // As `out`; nullptr for none.
  const float* residual[4] = {};
};

// The three transforms with one instruction set.
struct WinogradTransforms {
  void (*filters)(const WinogradFilters& filters);
  void (*inputs)(const WinogradInputs& inputs);
  // Bit i of what is returned: columns [i * lanes, (i + 1) * lanes) are not
  // stored, because some of the sums are not finite.
  uint32_t (*results)(const WinogradResults& results);
  int lanes = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_WINOGRAD_H_
