// Every micro-kernel of the table for weights of 4 bits that this processor can
// run against the oracle, bit for bit, for depths and blocks around its groups.
// Needs nothing but the kernels' own files, so that scripts/check_arm can build
// and run it for processors that this machine is not.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/runtime/ukernels/float/int4_tile.h"
#include "tests/engine/runtime/oracle/int4_oracle.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

// Rows by panels of weights, with all that a tile points at.
struct Int4Case {
  // `factors`: Int4Tiles::input_factors.
  Int4Case(int rows, int panels, int depth, int block, const float* factors,
           Random* random) {
    gemm.depth = depth;
    gemm.channels = panels * kInt4Width;
    gemm.block = block;
    gemm.activations = random->Reals(rows * depth, -1, 1);
    for (int i = 0; i < depth * gemm.channels; ++i) {
      gemm.codes.push_back(random->Pick(0, 15));
    }
    const int scales_count = gemm.blocks() * gemm.channels;
    gemm.scales = random->Reals(scales_count, 0, 0.1f);
    for (int i = 0; i < scales_count; ++i) {
      gemm.zeros.push_back(random->Pick(0, 15));
    }
    Pack(panels);
    scaled = gemm.activations;
    for (int i = 0; factors != nullptr && i < rows * depth; ++i) {
      scaled[i] *= factors[i % depth % kInt4Group];
    }
    for (int r = 0; r < rows; ++r) {
      inputs.push_back(scaled.data() + r * depth);
      for (int b = 0; b < gemm.blocks(); ++b) {
        block_sums.push_back(gemm.ActivationSum(r, b));
      }
    }
    for (int r = 0; r < rows; ++r) {
      sums.push_back(block_sums.data() + r * gemm.blocks());
    }
    stride = gemm.channels + random->Pick(0, 5);
    out.assign(static_cast<size_t>(rows * stride), -7.0f);
    tile.panel = {words.data(), scales.data(), zeros.data(), depth, block};
    tile.inputs = inputs.data();
    tile.sums = sums.data();
    tile.rows = rows;
    tile.out = out.data();
    tile.row_stride = stride;
  }
  Int4Case(const Int4Case&) = delete;
  Int4Case& operator=(const Int4Case&) = delete;

  // As int4_tile.h says. What fills up the last group is arbitrary.
  void Pack(int panels) {
    const int groups = (gemm.depth + kInt4Group - 1) / kInt4Group;
    words.assign(static_cast<size_t>(panels * groups * kInt4Width), 0);
    for (int n = 0; n < gemm.channels; ++n) {
      for (int k = 0; k < groups * kInt4Group; ++k) {
        const auto code = static_cast<uint32_t>(
            k < gemm.depth ? gemm.codes[k * gemm.channels + n] : k % 16);
        words[static_cast<size_t>(
            (n / kInt4Width * groups + k / kInt4Group) * kInt4Width +
            n % kInt4Width)] |= code << (4 * (k % kInt4Group));
      }
    }
    for (int p = 0; p < panels; ++p) {
      for (int b = 0; b < gemm.blocks(); ++b) {
        for (int c = 0; c < kInt4Width; ++c) {
          const int at = b * gemm.channels + p * kInt4Width + c;
          scales.push_back(gemm.scales[at]);
          zeros.push_back(static_cast<uint8_t>(gemm.zeros[at]));
        }
      }
    }
  }

  void Check() const {
    for (int i = 0; i < static_cast<int>(out.size()); ++i) {
      const int row = i / stride, channel = i % stride;
      ASSERT_EQ(out[i],
                channel < gemm.channels ? gemm.Sum(row, channel) : -7.0f)
          << tile.rows << " rows, depth " << gemm.depth << ", blocks of "
          << gemm.block << ", at " << i;
    }
  }

  oracle::Int4Gemm gemm;
  std::vector<uint32_t> words;
  std::vector<float> scales, scaled;
  std::vector<uint8_t> zeros;
  std::vector<float> block_sums, out;
  std::vector<const float*> inputs, sums;
  int stride = 0;
  Int4Tile tile;
};

class Int4GemmKernelTest : public ::testing::TestWithParam<const MicroKernel*> {
 protected:
  const Int4Tiles& tiles() const { return *GetParam()->run.int4_gemm; }
  Random random_;
};

constexpr int kBlocks[] = {8, 16, 32, 64};

TEST_P(Int4GemmKernelTest, TilesAreWhatTheOracleMakesOfThem) {
  for (int rows = 1; rows <= tiles().rows; ++rows) {
    for (const int block : kBlocks) {
      for (int depth = 1; depth <= 2 * block + 9; ++depth) {
        Int4Case test(rows, 1, depth, block, tiles().input_factors, &random_);
        tiles().multiply(test.tile);
        test.Check();
      }
    }
  }
}

TEST_P(Int4GemmKernelTest, ARowBySeveralPanelsIsWhatTheOracleMakesOfIt) {
  for (const int block : kBlocks) {
    for (int depth = 1; depth <= 2 * block + 9; ++depth) {
      Int4Case test(1, kInt4RowPanels, depth, block, tiles().input_factors,
                    &random_);
      tiles().multiply_row(test.tile);
      test.Check();
    }
  }
}

TEST_P(Int4GemmKernelTest, UnpackedWeightsAreTheFloatsThatTheyStandFor) {
  for (const int block : kBlocks) {
    for (int depth = 1; depth <= 3 * block; depth += random_.Pick(1, 7)) {
      const Int4Case test(1, 1, depth, block, tiles().input_factors, &random_);
      const int first = random_.Pick(0, test.gemm.blocks() - 1);
      const int count = random_.Pick(1, test.gemm.blocks() - first);
      const int rows = std::min(depth, (first + count) * block) - first * block;
      const int stride = kInt4Width + random_.Pick(0, 16);
      std::vector<float> out(static_cast<size_t>(rows * stride), -7.0f);
      tiles().unpack(test.tile.panel, first, count, out.data(), stride);
      for (int i = 0; i < rows * stride; ++i) {
        const int k = first * block + i / stride, channel = i % stride;
        ASSERT_EQ(out[i],
                  channel < kInt4Width ? test.gemm.Weight(k, channel) : -7.0f)
            << "depth " << depth << ", blocks of " << block << ", at " << i;
      }
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int4GemmKernelTest);
INSTANTIATE_TEST_SUITE_P(
    Entries, Int4GemmKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kInt4Gemm)), EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
