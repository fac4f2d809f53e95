// The depthwise tile, with the few vector operations that differ left to `Isa`,
// a type of the including file's own.

#ifndef OPTFARM_ENGINE_RUNTIME_FAST_INT8_DEPTHWISE_LOOPS_H_
#define OPTFARM_ENGINE_RUNTIME_FAST_INT8_DEPTHWISE_LOOPS_H_

#include <cstring>

#include "engine/runtime/fast/int8_depthwise.h"

namespace optfarm::runtime {

// Isa has
//   void Lay(rows, out)      four rows of 32 codes side by side
//   Sums Load(numbers), void Store(Sums, numbers)   32 numbers
//   Sums Add(Sums, codes, weights)   a dot product of four for each channel
//   Sums AddTimes(Sums, Sums other, factor)
//   kKeptWeights: weights of how many columns stay in registers
template <typename Isa>
struct Int8DepthwiseLoops {
  // The codes of one row at one column: as they lie, padding, or, where fewer
  // than 32 channels are left, a copy.
  static const uint8_t* CodesAt(const Int8DepthwiseTile& tile, int y,
                                int64_t column, const uint8_t* padding,
                                uint8_t* copy) {
    if (y >= tile.taps_y || tile.lines[y] == nullptr) return padding;
    const uint8_t* codes = tile.lines[y] + column * tile.pixel_bytes;
    if (tile.channels == kInt8Columns) return codes;
    for (int c = 0; c < tile.channels; ++c) copy[c] = codes[c];
    return copy;
  }

  static void LayColumns(const Int8DepthwiseTile& tile, int64_t columns,
                         int groups) {
    uint8_t padding[kInt8Columns];
    for (uint8_t& code : padding) code = tile.padding;
    uint8_t copies[kInt8Group][kInt8Columns] = {};
    uint8_t* out = tile.scratch;
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t column = tile.column + i;
      const bool exists = column >= 0 && column < tile.width;
      for (int g = 0; g < groups; ++g) {
        const uint8_t* rows[kInt8Group];
        for (int y = 0; y < kInt8Group; ++y) {
          rows[y] = exists ? CodesAt(tile, g * kInt8Group + y, column, padding,
                                     copies[y])
                           : padding;
        }
        Isa::Lay(rows, out);
        out += kInt8ColumnBytes;
      }
    }
  }

  // The rows of a group that exist, as weights of 1.
  static void FillOnes(int rows, int8_t* ones) {
    for (int c = 0; c < kInt8Columns; ++c) {
      for (int y = 0; y < kInt8Group; ++y) {
        ones[c * kInt8Group + y] = y < rows ? 1 : 0;
      }
    }
  }

  static void Run(const Int8DepthwiseTile& tile, int pixels) {
    const int groups = (tile.taps_y + kInt8Group - 1) / kInt8Group;
    const int64_t columns =
        (pixels - 1) * tile.stride + (tile.taps_x - 1) * tile.dilation + 1;
    LayColumns(tile, columns, groups);
    if (groups == 1 && tile.taps_x == 3 && tile.dilation == 1 &&
        tile.extra == 0) {
      return RunThree(tile, pixels);
    }
    const int64_t bytes = groups * kInt8ColumnBytes;
    alignas(64) int8_t ones[kInt8ColumnBytes];
    for (int p = 0; p < pixels; ++p) {
      const uint8_t* codes = tile.scratch + p * tile.stride * bytes;
      const int8_t* weights = tile.weights;
      auto sums = Isa::Load(tile.start);
      for (int x = 0; x < tile.taps_x; ++x) {
        const uint8_t* at = codes + x * tile.dilation * bytes;
        for (int g = 0; g < groups; ++g) {
          sums = Isa::Add(sums, at + g * kInt8ColumnBytes, weights);
          weights += kInt8ColumnBytes;
        }
      }
      if (tile.extra != 0) {
        auto total = Isa::Zero();
        for (int g = 0; g < groups; ++g) {
          FillOnes(tile.taps_y - g * kInt8Group, ones);
          for (int x = 0; x < tile.taps_x; ++x) {
            total = Isa::Add(
                total, codes + x * tile.dilation * bytes + g * kInt8ColumnBytes,
                ones);
          }
        }
        sums = Isa::AddTimes(sums, total, tile.extra);
      }
      Isa::Store(sums, tile.out + p * kInt8Columns);
    }
  }

  // The usual window: weights stay in registers.
  static void RunThree(const Int8DepthwiseTile& tile, int pixels) {
    const auto left = Isa::LoadWeights(tile.weights);
    const auto middle = Isa::LoadWeights(tile.weights + kInt8ColumnBytes);
    const auto right = Isa::LoadWeights(tile.weights + 2 * kInt8ColumnBytes);
    const auto start = Isa::Load(tile.start);
    for (int p = 0; p < pixels; ++p) {
      const uint8_t* codes = tile.scratch + p * tile.stride * kInt8ColumnBytes;
      auto sums = Isa::AddWeights(start, codes, left);
      sums = Isa::AddWeights(sums, codes + kInt8ColumnBytes, middle);
      sums = Isa::AddWeights(sums, codes + 2 * kInt8ColumnBytes, right);
      Isa::Store(sums, tile.out + p * kInt8Columns);
    }
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FAST_INT8_DEPTHWISE_LOOPS_H_
