// Every float GEMM micro-kernel of the table that this processor can run
// against the oracle, bit for bit, for all sizes around its tile. Needs nothing
// but the kernels' own files, so that scripts/check_arm can build and run it
// for processors that this machine is not.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/runtime/ukernels/float/float_tile.h"
#include "tests/engine/runtime/oracle/float_oracle.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

// A tile of `rows` by `width` channels with an epilogue of random parts, and
// its operands.
struct TileCase {
  TileCase(int rows, int width, int taps, int run, int row_stride,
           Random* random)
      : before(random->Reals(rows * row_stride, -1, 1)), out(before) {
    gemm.depth = taps * run;
    gemm.channels = width;
    gemm.activations = random->Reals(rows * gemm.depth, -1, 1);
    gemm.weights = random->Reals(gemm.depth * width, -1, 1);
    if (random->Pick(0, 1) == 1) epilogue.scale = random->Reals(width, -2, 2);
    if (random->Pick(0, 1) == 1) epilogue.bias = random->Reals(width, -9, 9);
    epilogue.activation = static_cast<oracle::Activation>(random->Pick(0, 2));
    has_residual = random->Pick(0, 1) == 1;
    for (int tap = 0; tap < taps; ++tap) {
      for (int r = 0; r < rows; ++r) {
        inputs.push_back(gemm.activations.data() + r * gemm.depth + tap * run);
      }
    }
    tile.inputs = inputs.data();
    tile.rows = rows;
    tile.taps = taps;
    tile.run = run;
    tile.weights = gemm.weights.data();
    if (!epilogue.scale.empty()) tile.scale = epilogue.scale.data();
    if (!epilogue.bias.empty()) tile.bias = epilogue.bias.data();
    tile.out = out.data();
    if (has_residual) tile.residual = out.data();
    tile.row_stride = row_stride;
    tile.rectifier = static_cast<Rectifier>(epilogue.activation);
    tile.prefetch = reinterpret_cast<const char*>(gemm.weights.data());
  }
  TileCase(const TileCase&) = delete;
  TileCase& operator=(const TileCase&) = delete;

  // What element i of `out` has to be.
  float Wanted(int64_t i) const {
    const int row = static_cast<int>(i / tile.row_stride);
    const int channel = static_cast<int>(i % tile.row_stride);
    if (channel >= tile.columns) return before[i];
    return epilogue.Of(gemm.Sum(row, channel), channel,
                       has_residual ? before[i] : 0.0f);
  }

  oracle::FloatGemm gemm;
  oracle::FloatEpilogue epilogue;
  bool has_residual = false;
  std::vector<const float*> inputs;
  std::vector<float> before, out;
  FloatTile tile;
};

class FloatGemmKernelTest
    : public ::testing::TestWithParam<const MicroKernel*> {
 protected:
  const FloatTiles& tiles() const { return *GetParam()->run.float_gemm; }
  void CheckTiles(int width, void (*run)(const FloatTile& tile)) {
    for (int rows = 1; rows <= tiles().rows; ++rows) {
      for (int columns = 1; columns <= width; ++columns) {
        TileCase test(rows, width, random_.Pick(1, 4), random_.Pick(1, 40),
                      width + random_.Pick(0, 5), &random_);
        test.tile.columns = columns;
        run(test.tile);
        for (size_t i = 0; i < test.out.size(); ++i) {
          ASSERT_EQ(test.out[i], test.Wanted(static_cast<int64_t>(i)))
              << rows << " rows, " << columns << " columns, depth "
              << test.gemm.depth << ", at " << i;
        }
      }
    }
  }
  Random random_;
};

TEST_P(FloatGemmKernelTest, TilesAreWhatTheOracleMakesOfThem) {
  CheckTiles(tiles().width, tiles().wide);
}

TEST_P(FloatGemmKernelTest, TilesOfHalfAPanelAreWhatTheOracleMakesOfThem) {
  CheckTiles(tiles().width / 2, tiles().narrow);
}

// The last panel is half as wide where that is enough.
TEST_P(FloatGemmKernelTest, ARowBySeveralPanelsIsWhatTheOracleMakesOfIt) {
  const int width = tiles().width;
  for (int columns = 1; columns <= kRowPanels * width; ++columns) {
    const int run = random_.Pick(1, 40);
    TileCase test(1, kRowPanels * width, 1, run, columns + 1, &random_);
    std::vector<float> panels(test.gemm.weights.size());
    for (int n = 0; n < columns; ++n) {
      const int first = n / width * width;
      const int of_panel = columns - first <= width / 2 ? width / 2 : width;
      for (int k = 0; k < run; ++k) {
        panels[first * run + k * of_panel + n % width] =
            test.gemm.weights[k * test.gemm.channels + n];
      }
    }
    test.tile.weights = panels.data();
    test.tile.columns = columns;
    tiles().row(test.tile, run * width);
    for (int i = 0; i <= columns; ++i) {
      ASSERT_EQ(test.out[i], test.Wanted(i)) << columns << " columns, at " << i;
    }
  }
}

TEST_P(FloatGemmKernelTest, WeightsThatAreNotPackedAreAddedInTheirOrder) {
  for (int columns = 1; columns <= 100; ++columns) {
    oracle::FloatGemm gemm;
    gemm.depth = random_.Pick(0, 40);
    gemm.channels = columns + random_.Pick(0, 5);
    gemm.activations = random_.Reals(gemm.depth, -1, 1);
    gemm.weights = random_.Reals(gemm.depth * gemm.channels, -1, 1);
    const std::vector<float> before = random_.Reals(columns + 3, -1, 1);
    std::vector<float> sums = before;
    FloatRows rows;
    rows.inputs = gemm.activations.data();
    rows.count = gemm.depth;
    rows.weights = gemm.weights.data();
    rows.row_stride = gemm.channels;
    rows.columns = columns;
    tiles().add_rows(rows, sums.data());
    for (int n = 0; n < columns + 3; ++n) {
      ASSERT_EQ(sums[n], n < columns ? gemm.Sum(0, n, before[n]) : before[n])
          << gemm.depth << "x" << columns << ", at " << n;
    }
  }
}

TEST_P(FloatGemmKernelTest, NanGoesThroughActivations) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float* input = &nan;
  const int width = tiles().width;
  for (const Rectifier rectifier : {Rectifier::kRelu, Rectifier::kRelu6}) {
    TileCase test(1, width, 1, 1, width, &random_);
    test.tile.inputs = &input;
    test.tile.columns = width;
    test.tile.rectifier = rectifier;
    tiles().wide(test.tile);
    for (const float value : test.out) EXPECT_TRUE(std::isnan(value));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, FloatGemmKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kFloatGemm)), EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
