// Every int8 depthwise micro-kernel of the table that this processor can run
// against the oracle, bit for bit, for all sizes around its tile. Needs nothing
// but the kernels' own files.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/ukernels/int8/int8_depthwise.h"
#include "tests/engine/runtime/oracle/int8_oracle.h"
#include "tests/engine/runtime/ukernels/int8_epilogue_case.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

using oracle::Int8Depthwise;

// A depthwise convolution and its operands as one entry reads them.
struct DepthwiseCase {
  DepthwiseCase(const MicroKernel& entry, int window_rows, int window_columns,
                int stride, int sets, int shift, Random* random)
      : scratch(1 << 17) {
    const int kr = entry.panel.kr, nr = entry.panel.nr;
    plain.window_rows = window_rows;
    plain.window_columns = window_columns;
    plain.channels = nr;
    plain.width = 30;
    plain.stride = stride;
    plain.dilation = random->Pick(0, 3) == 0 ? 2 : 1;
    plain.column = random->Pick(-3, 3);
    plain.padding = static_cast<uint8_t>(random->Pick(0, 255));
    // One row more, for the output row below.
    const int rows = window_rows + 1;
    plain.input = random->Bytes<uint8_t>(rows * plain.width * nr, 255);
    for (int y = 0; y < rows; ++y) {
      plain.row_exists.push_back(random->Pick(0, 4) != 0);
      input_rows.push_back(plain.row_exists[y]
                               ? plain.input.data() + y * plain.width * nr
                               : nullptr);
    }
    plain.weights.assign(window_rows * window_columns * nr, 0);
    const int groups = (window_rows + kr - 1) / kr;
    // By set, column of the window, group of kr rows, channel and row.
    std::vector<int8_t> packed(sets * window_columns * groups * nr * kr);
    for (int set = 0; set < sets; ++set) {
      const auto weights =
          random->Bytes<int8_t>(window_rows * window_columns * nr, -128);
      for (int y = 0; y < window_rows; ++y) {
        for (int x = 0; x < window_columns; ++x) {
          for (int c = 0; c < nr; ++c) {
            const int at = (y * window_columns + x) * nr + c;
            plain.weights[at] += weights[at];
            const int group = (set * window_columns + x) * groups + y / kr;
            packed[(group * nr + c) * kr + y % kr] = weights[at];
          }
        }
      }
    }
    plain.init = random->Integers(nr, shift);
    // What the entry takes from activations is made up for.
    init = plain.init;
    for (size_t i = 0; i < plain.weights.size(); ++i) {
      int32_t& value = init[i % nr];
      value = oracle::Wrapped(int64_t{value} + int64_t{entry.activation_shift} *
                                                   plain.weights[i]);
    }
    weights_room = std::make_unique<Aligned<int8_t>>(packed);
    tile.rows = input_rows.data();
    tile.end = plain.input.data() + plain.input.size();
    tile.taps_y = window_rows;
    tile.taps_x = window_columns;
    tile.column = plain.column;
    tile.width = plain.width;
    tile.pixel_bytes = nr;
    tile.stride = plain.stride;
    tile.dilation = plain.dilation;
    tile.padding = plain.padding;
    tile.weights = weights_room->data();
    tile.sets = sets;
    tile.init = init.data();
    tile.channels = PickChannels(nr, random);
    tile.scratch = scratch.data();
  }
  DepthwiseCase(const DepthwiseCase&) = delete;
  DepthwiseCase& operator=(const DepthwiseCase&) = delete;

  std::string Name(int pixels) const {
    return "window " + std::to_string(plain.window_rows) + " x " +
           std::to_string(plain.window_columns) + ", stride " +
           std::to_string(plain.stride) + ", dilation " +
           std::to_string(plain.dilation) + ", column " +
           std::to_string(plain.column) + ", " + std::to_string(tile.sets) +
           " sets, " + std::to_string(tile.channels) + " channels, " +
           std::to_string(pixels) + " pixels";
  }

  Aligned<uint8_t> scratch;
  Int8Depthwise plain;
  std::vector<int32_t> init;
  std::vector<const uint8_t*> input_rows;
  std::unique_ptr<Aligned<int8_t>> weights_room;
  Int8DepthwiseTile tile;
};

class Int8DepthwiseKernelTest
    : public ::testing::TestWithParam<const MicroKernel*> {};

TEST_P(Int8DepthwiseKernelTest, AccumulatesWhatTheOracleDoes) {
  const MicroKernel& entry = *GetParam();
  const int nr = entry.panel.nr;
  Random random;
  for (int pixels = 1; pixels <= entry.mr; ++pixels) {
    for (int window_rows = 1; window_rows <= 6; ++window_rows) {
      for (int window_columns = 1; window_columns <= 4; ++window_columns) {
        for (const int stride : {1, 2}) {
          DepthwiseCase test(entry, window_rows, window_columns, stride,
                             random.Pick(1, 3), 0, &random);
          Aligned<int32_t> out(entry.mr * nr);
          test.tile.out = out.data();
          entry.run.int8_depthwise(test.tile, pixels);
          for (int p = 0; p < pixels; ++p) {
            for (int c = 0; c < test.tile.channels; ++c) {
              ASSERT_EQ(out.data()[p * nr + c], test.plain.Accumulator(p, c))
                  << test.Name(pixels) << ", at " << p << ", " << c;
            }
          }
        }
      }
    }
  }
}

// `below`: whether the output row below is computed too.
void CheckRequantizedRows(const MicroKernel& entry, bool below) {
  const int most = 2 * entry.mr + 1;
  Random random;
  int checked = 0;
  for (int pixels = 1; pixels <= most; ++pixels) {
    for (int window_rows = 1; window_rows <= 5; ++window_rows) {
      for (const int window_columns : {1, 2, 3, 4}) {
        DepthwiseCase test(entry, window_rows, window_columns,
                           random.Pick(1, 2), random.Pick(1, 2), 14, &random);
        if (below && !test.tile.IsPaired(entry.panel.kr)) continue;
        ++checked;
        EpilogueCase by(entry.panel.nr, test.tile.channels, &random);
        const int64_t row_bytes = pixels * by.stride + 5;
        std::vector<uint8_t> out(2 * row_bytes, 7);
        by.epilogue.out = out.data();
        test.tile.epilogue = &by.epilogue;
        test.tile.below = below ? row_bytes : 0;
        entry.run.int8_depthwise(test.tile, pixels);
        for (int64_t i = 0; i < 2 * row_bytes; ++i) {
          const int row = static_cast<int>(i / row_bytes);
          const int p = static_cast<int>(i % row_bytes / by.stride);
          const int c = static_cast<int>(i % row_bytes % by.stride);
          const bool is_made =
              row <= (below ? 1 : 0) && p < pixels && c < test.tile.channels;
          const int wanted =
              is_made ? by.Of(test.plain.Accumulator(p, c, row), c) : 7;
          ASSERT_EQ(out[i], wanted) << test.Name(pixels) << ", row " << row
                                    << ", at " << p << ", " << c;
        }
      }
    }
  }
  EXPECT_GT(checked, 20);
}

class Int8DepthwiseEpilogueTest
    : public ::testing::TestWithParam<const MicroKernel*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8DepthwiseEpilogueTest);

TEST_P(Int8DepthwiseEpilogueTest, RequantizesWhatTheOracleDoes) {
  CheckRequantizedRows(*GetParam(), /*below=*/false);
}

// Where weights and activations are the least that there are, two products do
// not fit in 16 bits.
TEST_P(Int8DepthwiseEpilogueTest, AddsTheGreatestProducts) {
  const MicroKernel& entry = *GetParam();
  Random random;
  for (const int window_columns : {1, 3}) {
    for (const uint8_t value : {0, 255}) {
      DepthwiseCase test(entry, 3, window_columns, 1, 1, 14, &random);
      for (uint8_t& input : test.plain.input) input = value;
      test.plain.padding = test.tile.padding = value;
      test.plain.dilation = test.tile.dilation = 1;
      const int kr = entry.panel.kr, nr = entry.panel.nr;
      ASSERT_GE(kr, 3);
      // Rows that fill up a group are zero.
      for (int i = 0; i < window_columns * nr * kr; ++i) {
        test.weights_room->data()[i] = i % kr < 3 ? -128 : 0;
      }
      for (size_t i = 0; i < test.plain.weights.size(); ++i) {
        int32_t& init = test.init[i % nr];
        init -= entry.activation_shift * (test.plain.weights[i] + 128);
        test.plain.weights[i] = -128;
      }
      EpilogueCase by(nr, test.tile.channels, &random);
      std::vector<uint8_t> out(4 * by.stride, 7);
      by.epilogue.out = out.data();
      test.tile.epilogue = &by.epilogue;
      entry.run.int8_depthwise(test.tile, 4);
      for (int p = 0; p < 4; ++p) {
        for (int c = 0; c < test.tile.channels; ++c) {
          ASSERT_EQ(out[p * by.stride + c],
                    by.Of(test.plain.Accumulator(p, c), c))
              << test.Name(4) << ", at " << p << ", " << c;
        }
      }
    }
  }
}

class Int8DepthwisePairsTest
    : public ::testing::TestWithParam<const MicroKernel*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8DepthwisePairsTest);

TEST_P(Int8DepthwisePairsTest, RequantizesPairsOfRowsAsTheOracleDoes) {
  CheckRequantizedRows(*GetParam(), /*below=*/true);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Int8DepthwiseKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kInt8Depthwise)),
    EntryName);
INSTANTIATE_TEST_SUITE_P(Table, Int8DepthwiseEpilogueTest,
                         ::testing::ValuesIn(UsableEntries(
                             MicroKernelKind::kInt8Depthwise, kRequantizes)),
                         EntryName);
INSTANTIATE_TEST_SUITE_P(Table, Int8DepthwisePairsTest,
                         ::testing::ValuesIn(UsableEntries(
                             MicroKernelKind::kInt8Depthwise, kPairsRows)),
                         EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
