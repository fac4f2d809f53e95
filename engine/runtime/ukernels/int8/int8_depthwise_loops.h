// The depthwise micro-kernel, with the few vector operations that differ left
// to `Isa`, a type of the including file's own.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_LOOPS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_LOOPS_H_

#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_depthwise.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;
// UNITS: bytes of one interleaved column, and of one group of weights.
constexpr int64_t kColumnBytes = int64_t{kNr} * kKr;

// Isa has
//   void Interleave(rows, out)   kr rows of nr values side by side
//   Sums Load(init), void Store(Sums, out)   nr accumulators
//   Sums Add(Sums, values, weights)   a dot product of four for each channel
//   Sums AddWeights(Sums, values, Weights LoadWeights(weights))   the same
// and, where it runs the epilogue in the registers (kRequantizes),
//   void Requantize(epilogue, pixels, sums_of)   of sums_of(pixel), in order
// and, where it has registers for columns, too (kHasColumns),
//   void RequantizePairs(epilogue, below, pixels, pair_of)   of both rows' sums
//   Sums Column(rows)   as Interleave, in registers
//   Sums LoadColumn(values), Sums AddProduct(Sums, values, weights)   in
//   registers Weights Lower(weights)   of the window one row further down
template <typename Isa>
struct Int8DepthwiseLoops {
  // The rows of a group under the window, and how far it is from one column to
  // the next.
  struct Group {
    const uint8_t* rows[kKr];
    int64_t steps[kKr];

    void Advance() {
      for (int y = 0; y < kKr; ++y) rows[y] += steps[y];
    }
  };

  static Group GroupAt(const Int8DepthwiseTile& tile, int group, int64_t column,
                       const uint8_t* padding) {
    Group made;
    const int all = tile.below == 0 ? tile.taps_y : tile.taps_y + 1;
    for (int y = 0; y < kKr; ++y) {
      const int row = group * kKr + y;
      const bool exists = row < all && tile.rows[row] != nullptr;
      made.rows[y] =
          exists ? tile.rows[row] + column * tile.pixel_bytes : padding;
      made.steps[y] = exists ? tile.pixel_bytes : 0;
    }
    return made;
  }

  // Whether all nr values of so many columns may be read, although fewer
  // channels exist: others lie behind them.
  static bool IsReadable(const Int8DepthwiseTile& tile, const Group& group,
                         int64_t columns) {
    if (tile.channels == kNr) return true;
    for (int y = 0; y < kKr; ++y) {
      if (group.steps[y] == 0) continue;
      const int64_t last = (columns - 1) * group.steps[y] + kNr;
      if (last > tile.end - group.rows[y]) return false;
    }
    return true;
  }

  static void InterleaveCopies(const Int8DepthwiseTile& tile,
                               const Group& group, uint8_t* out) {
    uint8_t copies[kKr][kNr] = {};
    const uint8_t* rows[kKr];
    for (int y = 0; y < kKr; ++y) {
      for (int c = 0; c < tile.channels; ++c) copies[y][c] = group.rows[y][c];
      rows[y] = copies[y];
    }
    Isa::Interleave(rows, out);
  }

  static int64_t Between(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
  }

  static void InterleaveColumns(const Int8DepthwiseTile& tile, int64_t columns,
                                int groups) {
    uint8_t padding[kNr];
    for (uint8_t& value : padding) value = tile.padding;
    const uint8_t* outside[kKr] = {padding, padding, padding, padding};
    const int64_t begin = Between(-tile.column, 0, columns);
    const int64_t end = Between(tile.width - tile.column, begin, columns);
    const int64_t step = groups * kColumnBytes;
    for (int g = 0; g < groups; ++g) {
      uint8_t* out = tile.scratch + g * kColumnBytes;
      Group group = GroupAt(tile, g, tile.column + begin, padding);
      const bool is_readable = IsReadable(tile, group, end - begin);
      int64_t i = 0;
      for (; i < begin; ++i, out += step) Isa::Interleave(outside, out);
      for (; i < end; ++i, out += step, group.Advance()) {
        if (is_readable) {
          Isa::Interleave(group.rows, out);
        } else {
          InterleaveCopies(tile, group, out);
        }
      }
      for (; i < columns; ++i, out += step) Isa::Interleave(outside, out);
    }
  }

  static void Run(const Int8DepthwiseTile& tile, int pixels) {
    const int groups = (tile.taps_y + kKr - 1) / kKr;
    const int64_t columns =
        (pixels - 1) * tile.stride + (tile.taps_x - 1) * tile.dilation + 1;
    if constexpr (Isa::kHasColumns) {
      if (Slides(tile)) {
        return tile.below != 0 ? Slide<true>(tile, pixels)
                               : Slide<false>(tile, pixels);
      }
    }
    InterleaveColumns(tile, columns, groups);
    if constexpr (Isa::kHasColumns) {
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
    const int64_t bytes = groups * kColumnBytes;
    StoreAll(tile, pixels, [&](int p) {
      const uint8_t* values = tile.scratch + p * tile.stride * bytes;
      const int8_t* weights = tile.weights;
      auto sums = Isa::Load(tile.init);
      for (int set = 0; set < tile.sets; ++set) {
        for (int x = 0; x < tile.taps_x; ++x) {
          const uint8_t* at = values + x * tile.dilation * bytes;
          for (int g = 0; g < groups; ++g) {
            sums = Isa::Add(sums, at + g * kColumnBytes, weights);
            weights += kColumnBytes;
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
    if constexpr (Isa::kRequantizes) {
      if (tile.epilogue != nullptr) {
        return Isa::Requantize(*tile.epilogue, pixels, sums_of);
      }
    }
    for (int p = 0; p < pixels; ++p) {
      Isa::Store(sums_of(p), tile.out + p * kNr);
    }
  }

  // The usual window: weights stay in registers.
  template <int kSets>
  static void RunThree(const Int8DepthwiseTile& tile, int pixels) {
    decltype(Isa::LoadWeights(nullptr)) weights[3 * kSets];
    for (int i = 0; i < 3 * kSets; ++i) {
      weights[i] = Isa::LoadWeights(tile.weights + i * kColumnBytes);
    }
    const auto init = Isa::Load(tile.init);
    StoreAll(tile, pixels, [&](int p) {
      const uint8_t* values = tile.scratch + p * tile.stride * kColumnBytes;
      auto sums = init;
#pragma GCC unroll 6
      for (int i = 0; i < 3 * kSets; ++i) {
        sums = Isa::AddWeights(sums, values + i % 3 * kColumnBytes, weights[i]);
      }
      return sums;
    });
  }

  // Two output rows of the usual window, which share the interleaved columns.
  template <int kSets>
  static void RunPairs(const Int8DepthwiseTile& tile, int pixels) {
    using Weights = decltype(Isa::LoadWeights(nullptr));
    Weights upper[3 * kSets], lower[3 * kSets];
    for (int i = 0; i < 3 * kSets; ++i) {
      upper[i] = Isa::LoadWeights(tile.weights + i * kColumnBytes);
      lower[i] = Isa::Lower(upper[i]);
    }
    const auto init = Isa::Load(tile.init);
    Isa::RequantizePairs(
        *tile.epilogue, tile.below, pixels,
        [&](int p, auto* above, auto* below) {
          const uint8_t* values = tile.scratch + p * tile.stride * kColumnBytes;
          *above = *below = init;
#pragma GCC unroll 3
          for (int x = 0; x < 3; ++x) {
            const auto column = Isa::LoadColumn(values + x * kColumnBytes);
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
  // slide by one in pairs of rows or by two in single ones.
  static bool Slides(const Int8DepthwiseTile& tile) {
    return tile.epilogue != nullptr &&
           tile.stride == (tile.below != 0 ? 1 : 2) && tile.taps_y <= kKr &&
           tile.taps_x == 3 && tile.dilation == 1 && tile.sets == 1 &&
           tile.channels == kNr;
  }

  // Columns stay in registers from when they are interleaved until the last
  // window has left them. (Lambdas and no class, because compilers keep the
  // members of a class in memory here, which costs a fifth.)
  template <bool kPairs>
  static void Slide(const Int8DepthwiseTile& tile, int pixels) {
    using Weights = decltype(Isa::LoadWeights(nullptr));
    Weights upper[3], lower[3];
    for (int i = 0; i < 3; ++i) {
      upper[i] = Isa::LoadWeights(tile.weights + i * kColumnBytes);
      lower[i] = Isa::Lower(upper[i]);
    }
    const auto init = Isa::Load(tile.init);
    uint8_t padding[kNr];
    for (uint8_t& value : padding) value = tile.padding;
    const uint8_t* outside[kKr] = {padding, padding, padding, padding};
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
      Isa::RequantizePairs(
          *tile.epilogue, tile.below, pixels,
          [&](int p, auto* above, auto* below) OPTFARM_INLINE_LAMBDA {
            const auto third = column(p + 2);
            *above = Isa::AddProduct(init, first, upper[0]);
            *below = Isa::AddProduct(init, first, lower[0]);
            *above = Isa::AddProduct(*above, second, upper[1]);
            *below = Isa::AddProduct(*below, second, lower[1]);
            *above = Isa::AddProduct(*above, third, upper[2]);
            *below = Isa::AddProduct(*below, third, lower[2]);
            first = second;
            second = third;
          });
    } else {
      Isa::Requantize(*tile.epilogue, pixels, [&](int p) OPTFARM_INLINE_LAMBDA {
        const auto second = column(2 * p + 1);
        const auto third = column(2 * p + 2);
        auto sums = Isa::AddProduct(init, first, upper[0]);
        sums = Isa::AddProduct(sums, second, upper[1]);
        first = third;
        return Isa::AddProduct(sums, third, upper[2]);
      });
    }
  }
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_LOOPS_H_
