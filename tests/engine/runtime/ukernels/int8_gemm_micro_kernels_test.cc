// Every int8 GEMM micro-kernel and row kernel of the table that this processor
// can run against the oracle, bit for bit, for all sizes around its tile. Needs
// nothing but the kernels' own files, so that scripts/check_arm can build and
// run it for processors that this machine is not.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_row_kernel.h"
#include "tests/engine/runtime/emulated_amx.h"
#include "tests/engine/runtime/oracle/int8_oracle.h"
#include "tests/engine/runtime/ukernels/int8_epilogue_case.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

using oracle::Int8Gemm;

// ---------------------------------------------------------------- GEMM

// A GEMM and its operands as one entry reads them: `taps` pieces of `depth`
// values, then `residual` groups of kr values.
struct GemmCase {
  GemmCase(const MicroKernel& entry, int rows, int taps, int depth,
           int residual, int shift, Random* random)
      : kr(entry.panel.kr), nr(entry.panel.nr) {
    gemm.rows = rows;
    gemm.channels = nr;
    gemm.depth = taps * depth + residual * kr;
    filled_depth = RoundUp(gemm.depth, DepthUnit(entry.panel));
    gemm.activations = random->Bytes<uint8_t>(rows * gemm.depth, 255);
    gemm.weights = random->Bytes<int8_t>(gemm.depth * nr, -128);
    // Extremes beside one another, as few random numbers have them.
    tile.has_least_weight = random->Pick(0, 1) != 0;
    const int8_t least = tile.has_least_weight ? -128 : -127;
    const bool is_extreme = random->Pick(0, 3) == 0;
    for (int8_t& weight : gemm.weights) {
      if (is_extreme || weight < least) weight = least;
    }
    if (is_extreme) {
      std::fill(gemm.activations.begin(), gemm.activations.end(),
                static_cast<uint8_t>(random->Pick(0, 1) * 255));
    }
    gemm.init = random->Integers(nr, shift);
    const bool has_row_init = random->Pick(0, 1) != 0;
    gemm.row_init = has_row_init ? random->Integers(rows, shift)
                                 : std::vector<int32_t>(rows, 0);
    panel.resize(filled_depth * nr);
    for (int k = 0; k < gemm.depth; ++k) {
      int8_t* group = panel.data() + k / kr * nr * kr;
      for (int c = 0; c < nr; ++c) {
        group[PlaceInGroup(entry.panel, c, k % kr)] = gemm.weights[k * nr + c];
      }
    }
    tile.taps = taps;
    tile.depth = depth;
    tile.residual_taps = residual;
    for (int tap = 0; tap < taps + residual; ++tap) {
      const int from =
          tap < taps ? tap * depth : taps * depth + (tap - taps) * kr;
      for (int r = 0; r < rows; ++r) {
        indirection.push_back(gemm.activations.data() + r * gemm.depth + from);
      }
    }
    tile.indirection = indirection.data();
    if (entry.activations == ActivationLayout::kStrided && residual == 0 &&
        (taps == 1 || depth % DepthUnit(entry.panel) == 0) &&
        random->Pick(0, 1) == 0) {
      PlaceAtStride(random);
    } else if (entry.activations != ActivationLayout::kIndirect) {
      // The residual comes later, as a panel's.
      tile.residual_taps = 0;
      tile.packed_stride =
          PackedStride(gemm.depth, DepthUnit(entry.panel), entry.packed_copies);
      packed.assign(entry.mr * tile.packed_stride, 77);
      tile.packed = packed.data();
      entry.pack(tile, rows, 0);
      tile.residual_taps = residual;
      if (residual > 0) entry.pack(tile, rows, taps);
      tile.indirection = nullptr;
    }
    // What the entry takes from activations is made up for.
    init = gemm.init;
    for (int c = 0; c < nr; ++c) {
      int64_t sum = init[c];
      for (int k = 0; k < gemm.depth; ++k) {
        sum += int64_t{entry.activation_shift} * gemm.weights[k * nr + c];
      }
      init[c] = oracle::Wrapped(sum);
    }
    tile.init = init.data();
    tile.row_init = gemm.row_init.data();
    tile.has_row_init = has_row_init;
  }
  GemmCase(const GemmCase&) = delete;
  GemmCase& operator=(const GemmCase&) = delete;

  static int RoundUp(int value, int unit) {
    return (value + unit - 1) / unit * unit;
  }

  // Each tap's rows at one stride, taps anywhere, with what may be read behind
  // the last row and no more.
  void PlaceAtStride(Random* random) {
    const int64_t taps = tile.taps, depth = tile.depth;
    tile.activation_stride = depth + random->Pick(0, 70);
    const int64_t of_tap =
        (gemm.rows - 1) * tile.activation_stride + filled_depth / taps;
    strided.assign(taps * of_tap, 77);
    for (int64_t tap = 0; tap < taps; ++tap) {
      uint8_t* first = strided.data() + (taps - 1 - tap) * of_tap;
      for (int r = 0; r < gemm.rows; ++r) {
        std::copy_n(indirection[tap * gemm.rows + r], depth,
                    first + r * tile.activation_stride);
        // Only the first row's pointer is to be read.
        indirection[tap * gemm.rows + r] = r == 0 ? first : nullptr;
      }
    }
  }

  int kr, nr, filled_depth = 0;
  Int8Gemm gemm;
  std::vector<int32_t> init;
  std::vector<int8_t> panel;
  std::vector<uint8_t> strided;
  std::vector<uint8_t> packed;
  std::vector<const uint8_t*> indirection;
  Int8GemmTile tile;
};

class Int8GemmKernelTest : public ::testing::TestWithParam<const MicroKernel*> {
};

TEST_P(Int8GemmKernelTest, AccumulatesWhatTheOracleDoes) {
  const MicroKernel& entry = *GetParam();
  const int kr = entry.panel.kr, nr = entry.panel.nr;
  Random random;
  for (int rows = 1; rows <= entry.mr; ++rows) {
    for (const int groups : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33}) {
      for (const int taps : {1, 2, 3}) {
        const int residual = random.Pick(0, 1) * random.Pick(1, 3);
        GemmCase test(entry, rows, taps, groups * kr, residual, 0, &random);
        Aligned<int8_t> panel(test.panel);
        // Of rows that the tile does not have.
        constexpr int32_t kUntouched = 0x55aa55aa;
        Aligned<int32_t> out(entry.mr * nr, kUntouched);
        test.tile.weights = panel.data();
        test.tile.out = out.data();
        const KernelScope scope(entry);
        entry.run.int8_gemm(test.tile, rows);
        for (int r = 0; r < entry.mr; ++r) {
          for (int c = 0; c < nr; ++c) {
            const int32_t wanted =
                r < rows ? test.gemm.Accumulator(r, c) : kUntouched;
            ASSERT_EQ(out.data()[r * nr + c], wanted)
                << rows << " rows, " << taps << " taps of " << groups
                << " groups, residual " << residual << ", at " << r << ", "
                << c;
          }
        }
      }
    }
  }
}

TEST_P(Int8GemmKernelTest, AccumulatesLongRows) {
  const MicroKernel& entry = *GetParam();
  Random random;
  const int depth = 300 * entry.panel.kr, nr = entry.panel.nr;
  GemmCase test(entry, entry.mr, 1, depth, 2, 0, &random);
  Aligned<int8_t> panel(test.panel);
  Aligned<int32_t> out(entry.mr * nr);
  test.tile.weights = panel.data();
  test.tile.out = out.data();
  const KernelScope scope(entry);
  entry.run.int8_gemm(test.tile, entry.mr);
  for (int i = 0; i < entry.mr * nr; ++i) {
    ASSERT_EQ(out.data()[i], test.gemm.Accumulator(i / nr, i % nr)) << i;
  }
}

TEST_P(Int8GemmKernelTest, LeavesZerosOrSumsForChannelsThatDoNotExist) {
  const MicroKernel& entry = *GetParam();
  const int kr = entry.panel.kr, nr = entry.panel.nr;
  Random random;
  for (int channels = 1; channels <= nr + 1; ++channels) {
    GemmCase test(entry, entry.mr, 2, 3 * kr, 1, 0, &random);
    Aligned<int8_t> panel(test.panel);
    Aligned<int32_t> out(entry.mr * nr);
    test.tile.weights = panel.data();
    test.tile.out = out.data();
    test.tile.channels = channels;
    const KernelScope scope(entry);
    entry.run.int8_gemm(test.tile, entry.mr);
    for (int i = 0; i < entry.mr * nr; ++i) {
      const int32_t wanted = test.gemm.Accumulator(i / nr, i % nr);
      if (i % nr >= channels && out.data()[i] == 0) continue;
      ASSERT_EQ(out.data()[i], wanted) << channels << " channels, at " << i;
    }
  }
}

class Int8GemmEpilogueTest
    : public ::testing::TestWithParam<const MicroKernel*> {};

TEST_P(Int8GemmEpilogueTest, RequantizesWhatTheOracleDoes) {
  const MicroKernel& entry = *GetParam();
  const int kr = entry.panel.kr, nr = entry.panel.nr;
  Random random;
  for (int rows = 1; rows <= entry.mr; ++rows) {
    for (int channels = 1; channels <= nr; ++channels) {
      GemmCase test(entry, rows, random.Pick(1, 2), random.Pick(1, 9) * kr,
                    random.Pick(0, 2), 14, &random);
      EpilogueCase by(nr, channels, &random);
      Aligned<int8_t> panel(test.panel);
      std::vector<uint8_t> out(rows * by.stride + 1, 9);
      by.epilogue.out = out.data();
      test.tile.weights = panel.data();
      test.tile.epilogue = &by.epilogue;
      if (rows % 2 == 0) test.tile.channels = channels;
      const KernelScope scope(entry);
      entry.run.int8_gemm(test.tile, rows);
      for (size_t i = 0; i < out.size(); ++i) {
        const int r = static_cast<int>(i / by.stride);
        const int c = static_cast<int>(i % by.stride);
        const int wanted = r < rows && c < channels
                               ? by.Of(test.gemm.Accumulator(r, c), c)
                               : 9;
        ASSERT_EQ(out[i], wanted) << rows << " rows, " << channels
                                  << " channels, at " << r << ", " << c;
      }
    }
  }
}

// Those of the table, and AMX's everywhere.
std::vector<const MicroKernel*> GemmEntries(uint32_t epilogue) {
  std::vector<const MicroKernel*> entries = {&kInt8GemmEmulatedAmx};
  for (const MicroKernelKind kind :
       {MicroKernelKind::kInt8Gemm, MicroKernelKind::kInt8MatrixGemm}) {
    for (const MicroKernel* entry : UsableEntries(kind, epilogue)) {
      entries.push_back(entry);
    }
  }
  return entries;
}

INSTANTIATE_TEST_SUITE_P(Table, Int8GemmKernelTest,
                         ::testing::ValuesIn(GemmEntries(0)), EntryName);
INSTANTIATE_TEST_SUITE_P(Table, Int8GemmEpilogueTest,
                         ::testing::ValuesIn(GemmEntries(kRequantizes)),
                         EntryName);

// ---------------------------------------------------------------- row kernels

class Int8RowKernelTest : public ::testing::TestWithParam<const MicroKernel*> {
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8RowKernelTest);

TEST_P(Int8RowKernelTest, RequantizesWhatTheOracleDoes) {
  const MicroKernel& entry = *GetParam();
  const int kr = entry.panel.kr, nr = entry.panel.nr;
  Random random;
  for (int rows = entry.mr; rows <= 4 * entry.mr + 1; ++rows) {
    for (const int groups : {1, 2, 3, 4, 7, 9, 12, 21}) {
      const int step = random.Pick(1, 12), residual = random.Pick(0, 3);
      const auto input =
          random.Bytes<uint8_t>(groups * kr + (rows - 1) * step, 255);
      // Group g of row r begins g * kr + r * step bytes into the input.
      std::vector<int> offsets;
      for (int g = 0; g < groups + residual; ++g) {
        offsets.push_back(g < groups ? g * kr
                                     : offsets[random.Pick(0, groups - 1)]);
      }
      Int8Gemm gemm;
      gemm.rows = rows;
      gemm.channels = nr;
      gemm.depth = (groups + residual) * kr;
      for (int r = 0; r < rows; ++r) {
        for (const int offset : offsets) {
          for (int k = 0; k < kr; ++k) {
            gemm.activations.push_back(input[offset + r * step + k]);
          }
        }
      }
      gemm.weights = random.Bytes<int8_t>(gemm.depth * nr, -128);
      gemm.init = random.Integers(nr, 14);
      gemm.row_init.assign(rows, 0);
      std::vector<int8_t> packed(gemm.depth * nr);
      for (int k = 0; k < gemm.depth; ++k) {
        for (int c = 0; c < nr; ++c) {
          packed[(k / kr * nr + c) * kr + k % kr] = gemm.weights[k * nr + c];
        }
      }
      Aligned<int8_t> panel(packed);
      std::vector<const uint8_t*> indirection;
      for (const int offset : offsets) {
        indirection.push_back(input.data() + offset);
      }
      const int channels = PickChannels(nr, &random);
      EpilogueCase by(nr, channels, &random);
      std::vector<uint8_t> out(rows * by.stride + 1, 9);
      by.epilogue.out = out.data();
      Int8GemmTile first;
      first.indirection = indirection.data();
      first.taps = groups;
      first.depth = kr;
      first.residual_taps = residual;
      first.weights = panel.data();
      first.init = gemm.init.data();
      first.row_init = gemm.row_init.data();
      first.has_row_init = false;
      first.epilogue = &by.epilogue;
      entry.run.int8_row(first, step, rows);
      for (size_t i = 0; i < out.size(); ++i) {
        const int r = static_cast<int>(i / by.stride);
        const int c = static_cast<int>(i % by.stride);
        const int wanted =
            r < rows && c < channels ? by.Of(gemm.Accumulator(r, c), c) : 9;
        ASSERT_EQ(out[i], wanted)
            << rows << " rows, step " << step << ", " << groups
            << " groups, residual " << residual << ", at " << r << ", " << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, Int8RowKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kInt8Row)), EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
