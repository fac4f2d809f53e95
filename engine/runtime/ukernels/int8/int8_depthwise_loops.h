// The depthwise tile, with the few vector operations that differ left to `Isa`,
// a type of the including file's own.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_LOOPS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_LOOPS_H_

#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_depthwise.h"

namespace optfarm::runtime {

// Isa has
//   void Lay(rows, out)      four rows of 32 codes side by side
//   Sums Load(numbers), void Store(Sums, numbers)   32 numbers
//   Sums Add(Sums, codes, weights)   a dot product of four for each channel
//   Sums AddWeights(Sums, codes, Weights LoadWeights(weights))   the same
// and, where sums become codes in the registers (kFinishes),
//   void Finish(finish, pixels, sums_of)   of sums_of(pixel), in their order
//   void FinishPairs(finish, below, pixels, pair_of)   of both lines' sums
//   Sums Column(rows)   as Lay, in registers
//   Sums LoadCodes(codes), Sums AddProduct(Sums, codes, weights)   in registers
//   Weights Lower(weights)   of the window one row further down
template <typename Isa>
struct Int8DepthwiseLoops {
  // The rows of a group under the window, and how far it is from one column to
  // the next.
  struct Group {
    const uint8_t* rows[kInt8Group];
    int64_t steps[kInt8Group];

    void Advance() {
      for (int y = 0; y < kInt8Group; ++y) rows[y] += steps[y];
    }
  };

  static Group GroupAt(const Int8DepthwiseTile& tile, int group, int64_t column,
                       const uint8_t* padding) {
    Group made;
    const int lines = tile.below == 0 ? tile.taps_y : tile.taps_y + 1;
    for (int y = 0; y < kInt8Group; ++y) {
      const int line = group * kInt8Group + y;
      const bool exists = line < lines && tile.lines[line] != nullptr;
      made.rows[y] =
          exists ? tile.lines[line] + column * tile.pixel_bytes : padding;
      made.steps[y] = exists ? tile.pixel_bytes : 0;
    }
    return made;
  }

  // Whether all 32 codes of so many columns may be read, although channels are
  // fewer: others lie behind them.
  static bool IsReadable(const Int8DepthwiseTile& tile, const Group& group,
                         int64_t columns) {
    if (tile.channels == kInt8Columns) return true;
    for (int y = 0; y < kInt8Group; ++y) {
      if (group.steps[y] == 0) continue;
      const int64_t last = (columns - 1) * group.steps[y] + kInt8Columns;
      if (last > tile.end - group.rows[y]) return false;
    }
    return true;
  }

  static void LayCopies(const Int8DepthwiseTile& tile, const Group& group,
                        uint8_t* out) {
    uint8_t copies[kInt8Group][kInt8Columns] = {};
    const uint8_t* rows[kInt8Group];
    for (int y = 0; y < kInt8Group; ++y) {
      for (int c = 0; c < tile.channels; ++c) copies[y][c] = group.rows[y][c];
      rows[y] = copies[y];
    }
    Isa::Lay(rows, out);
  }

  static int64_t Between(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
  }

  static void LayColumns(const Int8DepthwiseTile& tile, int64_t columns,
                         int groups) {
    uint8_t padding[kInt8Columns];
    for (uint8_t& code : padding) code = tile.padding;
    const uint8_t* outside[kInt8Group] = {padding, padding, padding, padding};
    const int64_t begin = Between(-tile.column, 0, columns);
    const int64_t end = Between(tile.width - tile.column, begin, columns);
    const int64_t step = groups * kInt8ColumnBytes;
    for (int g = 0; g < groups; ++g) {
      uint8_t* out = tile.scratch + g * kInt8ColumnBytes;
      Group group = GroupAt(tile, g, tile.column + begin, padding);
      const bool is_readable = IsReadable(tile, group, end - begin);
      int64_t i = 0;
      for (; i < begin; ++i, out += step) Isa::Lay(outside, out);
      for (; i < end; ++i, out += step, group.Advance()) {
        if (is_readable) {
          Isa::Lay(group.rows, out);
        } else {
          LayCopies(tile, group, out);
        }
      }
      for (; i < columns; ++i, out += step) Isa::Lay(outside, out);
    }
  }

  static void Run(const Int8DepthwiseTile& tile, int pixels) {
    const int groups = (tile.taps_y + kInt8Group - 1) / kInt8Group;
    const int64_t columns =
        (pixels - 1) * tile.stride + (tile.taps_x - 1) * tile.dilation + 1;
    if constexpr (Isa::kFinishes) {
      if (Slides(tile)) {
        return tile.below != 0 ? Slide<true>(tile, pixels)
                               : Slide<false>(tile, pixels);
      }
    }
    LayColumns(tile, columns, groups);
    if constexpr (Isa::kFinishes) {
      if (tile.below != 0) {
        return tile.sets == 1 ? RunPairs<1>(tile, pixels)
                              : RunPairs<2>(tile, pixels);
      }
    }
    if (groups == 1 && tile.taps_x == 3 && tile.dilation == 1 &&
        tile.sets <= 2) {
      return tile.sets == 1 ? RunThree<1>(tile, pixels)
                            : RunThree<2>(tile, pixels);
    }
    const int64_t bytes = groups * kInt8ColumnBytes;
    StoreAll(tile, pixels, [&](int p) {
      const uint8_t* codes = tile.scratch + p * tile.stride * bytes;
      const int8_t* weights = tile.weights;
      auto sums = Isa::Load(tile.start);
      for (int set = 0; set < tile.sets; ++set) {
        for (int x = 0; x < tile.taps_x; ++x) {
          const uint8_t* at = codes + x * tile.dilation * bytes;
          for (int g = 0; g < groups; ++g) {
            sums = Isa::Add(sums, at + g * kInt8ColumnBytes, weights);
            weights += kInt8ColumnBytes;
          }
        }
      }
      return sums;
    });
  }

  // Of each pixel what sums_of(pixel) gives.
  template <typename SumsOf>
  static void StoreAll(const Int8DepthwiseTile& tile, int pixels,
                       const SumsOf& sums_of) {
    if constexpr (Isa::kFinishes) {
      if (tile.finish != nullptr) {
        return Isa::Finish(*tile.finish, pixels, sums_of);
      }
    }
    for (int p = 0; p < pixels; ++p) {
      Isa::Store(sums_of(p), tile.out + p * kInt8Columns);
    }
  }

  // The usual window: weights stay in registers.
  template <int kSets>
  static void RunThree(const Int8DepthwiseTile& tile, int pixels) {
    decltype(Isa::LoadWeights(nullptr)) weights[3 * kSets];
    for (int i = 0; i < 3 * kSets; ++i) {
      weights[i] = Isa::LoadWeights(tile.weights + i * kInt8ColumnBytes);
    }
    const auto start = Isa::Load(tile.start);
    StoreAll(tile, pixels, [&](int p) {
      const uint8_t* codes = tile.scratch + p * tile.stride * kInt8ColumnBytes;
      auto sums = start;
#pragma GCC unroll 6
      for (int i = 0; i < 3 * kSets; ++i) {
        sums =
            Isa::AddWeights(sums, codes + i % 3 * kInt8ColumnBytes, weights[i]);
      }
      return sums;
    });
  }

  // Two lines of the usual window, for which columns are laid out once.
  template <int kSets>
  static void RunPairs(const Int8DepthwiseTile& tile, int pixels) {
    using Weights = decltype(Isa::LoadWeights(nullptr));
    Weights upper[3 * kSets], lower[3 * kSets];
    for (int i = 0; i < 3 * kSets; ++i) {
      upper[i] = Isa::LoadWeights(tile.weights + i * kInt8ColumnBytes);
      lower[i] = Isa::Lower(upper[i]);
    }
    const auto start = Isa::Load(tile.start);
    Isa::FinishPairs(
        *tile.finish, tile.below, pixels, [&](int p, auto* above, auto* below) {
          const uint8_t* codes =
              tile.scratch + p * tile.stride * kInt8ColumnBytes;
          *above = *below = start;
#pragma GCC unroll 3
          for (int x = 0; x < 3; ++x) {
            const auto column = Isa::LoadCodes(codes + x * kInt8ColumnBytes);
#pragma GCC unroll 2
            for (int set = 0; set < kSets; ++set) {
              const int i = set * 3 + x;
              *above = Isa::AddProduct(*above, column, upper[i]);
              *below = Isa::AddProduct(*below, column, lower[i]);
            }
          }
        });
  }

  // Whether Slide does it: all channels exist, and windows of three columns
  // slide by one in pairs of lines or by two in single ones.
  static bool Slides(const Int8DepthwiseTile& tile) {
    return tile.finish != nullptr && tile.stride == (tile.below != 0 ? 1 : 2) &&
           tile.taps_y <= kInt8Group && tile.taps_x == 3 &&
           tile.dilation == 1 && tile.sets == 1 &&
           tile.channels == kInt8Columns;
  }

  // Columns stay in registers from when they are laid out until the last window
  // has left them. (Lambdas and no class, because compilers keep the members of
  // a class in memory here, which costs a fifth.)
  template <bool kPairs>
  static void Slide(const Int8DepthwiseTile& tile, int pixels) {
    using Weights = decltype(Isa::LoadWeights(nullptr));
    Weights upper[3], lower[3];
    for (int i = 0; i < 3; ++i) {
      upper[i] = Isa::LoadWeights(tile.weights + i * kInt8ColumnBytes);
      lower[i] = Isa::Lower(upper[i]);
    }
    const auto start = Isa::Load(tile.start);
    uint8_t padding[kInt8Columns];
    for (uint8_t& code : padding) code = tile.padding;
    const uint8_t* outside[kInt8Group] = {padding, padding, padding, padding};
    const int64_t columns = kPairs ? pixels + 2 : 2 * pixels + 1;
    const int64_t begin = Between(-tile.column, 0, columns);
    const int64_t end = Between(tile.width - tile.column, begin, columns);
    Group group = GroupAt(tile, 0, tile.column + begin, padding);
    const auto column = [&](int64_t i) OPTFARM_INLINE_LAMBDA {
      if (i < begin || i >= end) [[unlikely]] {
        return Isa::Column(outside);
      }
      const auto inside = Isa::Column(group.rows);
      group.Advance();
      return inside;
    };
    auto first = column(0);
    if constexpr (kPairs) {
      auto second = column(1);
      Isa::FinishPairs(*tile.finish, tile.below, pixels,
                       [&](int p, auto* above, auto* below)
                           OPTFARM_INLINE_LAMBDA {
                             const auto third = column(p + 2);
                             *above = Isa::AddProduct(start, first, upper[0]);
                             *below = Isa::AddProduct(start, first, lower[0]);
                             *above = Isa::AddProduct(*above, second, upper[1]);
                             *below = Isa::AddProduct(*below, second, lower[1]);
                             *above = Isa::AddProduct(*above, third, upper[2]);
                             *below = Isa::AddProduct(*below, third, lower[2]);
                             first = second;
                             second = third;
                           });
    } else {
      Isa::Finish(*tile.finish, pixels, [&](int p) OPTFARM_INLINE_LAMBDA {
        const auto second = column(2 * p + 1);
        const auto third = column(2 * p + 2);
        auto sums = Isa::AddProduct(start, first, upper[0]);
        sums = Isa::AddProduct(sums, second, upper[1]);
        first = third;
        return Isa::AddProduct(sums, third, upper[2]);
      });
    }
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_LOOPS_H_
