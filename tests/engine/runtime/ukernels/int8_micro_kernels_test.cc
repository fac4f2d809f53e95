// Every int8 micro-kernel of the table that this processor can run against the
// oracle, bit for bit, for all sizes around its tile. Needs nothing but the
// kernels' own files, so that scripts/check_arm can build and run it for
// processors that this machine is not.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/ukernels/host_cpu_features.h"
#include "engine/runtime/ukernels/int8/int8_depthwise.h"
#include "engine/runtime/ukernels/int8/int8_row_kernel.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"
#include "tests/engine/runtime/oracle/int8_oracle.h"

namespace optfarm::runtime {

void PrintTo(const MicroKernel* entry, std::ostream* out) {
  *out << entry->name;
}

namespace {

using oracle::Int8Depthwise;
using oracle::Int8Gemm;

// Those with all of the epilogue flags.
std::vector<const MicroKernel*> UsableEntries(MicroKernelKind kind,
                                              uint32_t epilogue = 0) {
  std::vector<const MicroKernel*> entries;
  for (const MicroKernel* entry : AllMicroKernels()) {
    if (entry->kind == kind && (entry->epilogue & epilogue) == epilogue &&
        IsUsable(*entry, HostCpuFeatures())) {
      entries.push_back(entry);
    }
  }
  return entries;
}

std::string NameOf(const ::testing::TestParamInfo<const MicroKernel*>& info) {
  return info.param->name;
}

class Random {
 public:
  int Pick(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(engine_);
  }
  // Any bytes, every fourth the extreme that saturating instructions clamp.
  template <typename Byte>
  std::vector<Byte> Bytes(int64_t count, Byte extreme) {
    std::vector<Byte> bytes(static_cast<size_t>(count));
    for (Byte& byte : bytes) {
      byte = engine_() % 4 == 0 ? extreme : static_cast<Byte>(engine_());
    }
    return bytes;
  }
  // `shift`: by how much they are smaller than any 32 bits.
  std::vector<int32_t> Integers(int64_t count, int shift) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& value : values) {
      value = static_cast<int32_t>(engine_()) >> shift;
    }
    return values;
  }
  // Every fourth lies halfway between two integers.
  std::vector<float> Floats(int64_t count, float most) {
    std::uniform_real_distribution<float> number(-most, most);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      value = number(engine_);
      if (Pick(0, 3) == 0) value = static_cast<float>(Pick(-40, 40)) + 0.5f;
    }
    return values;
  }

 private:
  std::mt19937 engine_{17};
};

// Memory that begins at a multiple of 64 bytes.
template <typename T>
class Aligned {
 public:
  explicit Aligned(int64_t count, T value = {})
      : room_(static_cast<size_t>(count) + 64 / sizeof(T), value) {
    const auto at = reinterpret_cast<uintptr_t>(room_.data());
    data_ = room_.data() + (64 - at % 64) % 64 / sizeof(T);
  }
  explicit Aligned(const std::vector<T>& values)
      : Aligned(static_cast<int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), data_);
  }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;

  T* data() { return data_; }

 private:
  std::vector<T> room_;
  T* data_;
};

// An epilogue over accumulators of some 2^18, with its scales.
struct EpilogueCase {
  EpilogueCase(int nr, int channels_wanted, Random* random)
      : scales(nr), stride(channels_wanted + random->Pick(0, 9)) {
    for (float& scale : scales) {
      // Powers of two give halves.
      const int divisor = random->Pick(0, 1) == 0 ? 1 << random->Pick(9, 14)
                                                  : random->Pick(1000, 20000);
      scale = 1.0f / static_cast<float>(divisor);
    }
    epilogue.scales = scales.data();
    epilogue.has_small_scales = random->Pick(0, 1) != 0;
    epilogue.zero_point = random->Pick(0, 1) * random->Pick(0, 255);
    epilogue.least = random->Pick(0, epilogue.zero_point);
    epilogue.most = static_cast<float>(255 - epilogue.zero_point);
    epilogue.channels = channels_wanted;
    epilogue.stride = stride;
  }
  EpilogueCase(const EpilogueCase&) = delete;
  EpilogueCase& operator=(const EpilogueCase&) = delete;

  uint8_t Of(int32_t accumulator, int channel) const {
    return oracle::Requantize(accumulator, scales[channel], epilogue.zero_point,
                              epilogue.least);
  }

  std::vector<float> scales;
  int64_t stride;
  Int8Epilogue epilogue;
};

// The number of channels an epilogue stores: all, and around vectors' widths.
int PickChannels(int nr, Random* random) {
  return random->Pick(0, 1) == 0 ? nr : random->Pick(1, nr);
}

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
    gemm.init = random->Integers(nr, shift);
    const bool has_row_init = random->Pick(0, 1) != 0;
    gemm.row_init = has_row_init ? random->Integers(rows, shift)
                                 : std::vector<int32_t>(rows, 0);
    // docs of PanelLayout: panel[k / kr][channel][k % kr].
    panel.resize(filled_depth * nr);
    for (int k = 0; k < gemm.depth; ++k) {
      for (int c = 0; c < nr; ++c) {
        panel[(k / kr * nr + c) * kr + k % kr] = gemm.weights[k * nr + c];
      }
    }
    tile.taps = taps;
    tile.depth = depth;
    tile.residual_taps = residual;
    if (entry.activations == ActivationLayout::kStrided) {
      tile.taps = 1;
      tile.depth = filled_depth;
      tile.residual_taps = 0;
      tile.activation_stride = filled_depth + random->Pick(0, 3) * 64;
      strided.assign(rows * tile.activation_stride, 77);
      for (int r = 0; r < rows; ++r) {
        std::copy_n(gemm.activations.data() + r * gemm.depth, gemm.depth,
                    strided.data() + r * tile.activation_stride);
      }
      tile.activations = strided.data();
    } else {
      for (int tap = 0; tap < taps + residual; ++tap) {
        const int from =
            tap < taps ? tap * depth : taps * depth + (tap - taps) * kr;
        for (int r = 0; r < rows; ++r) {
          indirection.push_back(gemm.activations.data() + r * gemm.depth +
                                from);
        }
      }
      tile.indirection = indirection.data();
    }
    tile.init = gemm.init.data();
    tile.row_init = gemm.row_init.data();
    tile.has_row_init = has_row_init;
  }
  GemmCase(const GemmCase&) = delete;
  GemmCase& operator=(const GemmCase&) = delete;

  static int RoundUp(int value, int unit) {
    return (value + unit - 1) / unit * unit;
  }

  int kr, nr, filled_depth = 0;
  Int8Gemm gemm;
  std::vector<int8_t> panel;
  std::vector<uint8_t> strided;
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
        Aligned<int32_t> out(entry.mr * nr);
        test.tile.weights = panel.data();
        test.tile.out = out.data();
        entry.run.int8_gemm(test.tile, rows);
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < nr; ++c) {
            ASSERT_EQ(out.data()[r * nr + c], test.gemm.Accumulator(r, c))
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
  entry.run.int8_gemm(test.tile, entry.mr);
  for (int i = 0; i < entry.mr * nr; ++i) {
    ASSERT_EQ(out.data()[i], test.gemm.Accumulator(i / nr, i % nr)) << i;
  }
}

class Int8GemmEpilogueTest
    : public ::testing::TestWithParam<const MicroKernel*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8GemmEpilogueTest);

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

INSTANTIATE_TEST_SUITE_P(
    Table, Int8GemmKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kInt8Gemm)), NameOf);
INSTANTIATE_TEST_SUITE_P(Table, Int8GemmEpilogueTest,
                         ::testing::ValuesIn(UsableEntries(
                             MicroKernelKind::kInt8Gemm, kRequantizes)),
                         NameOf);

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
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kInt8Row)), NameOf);

// ---------------------------------------------------------------- depthwise

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
    tile.init = plain.init.data();
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

class Int8DepthwisePairsTest
    : public ::testing::TestWithParam<const MicroKernel*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8DepthwisePairsTest);

TEST_P(Int8DepthwisePairsTest, RequantizesPairsOfRowsAsTheOracleDoes) {
  CheckRequantizedRows(*GetParam(), /*below=*/true);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Int8DepthwiseKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kInt8Depthwise)),
    NameOf);
INSTANTIATE_TEST_SUITE_P(Table, Int8DepthwiseEpilogueTest,
                         ::testing::ValuesIn(UsableEntries(
                             MicroKernelKind::kInt8Depthwise, kRequantizes)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Table, Int8DepthwisePairsTest,
                         ::testing::ValuesIn(UsableEntries(
                             MicroKernelKind::kInt8Depthwise, kPairsRows)),
                         NameOf);

// ---------------------------------------------------------------- stages

float AsFloat(int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

int32_t AsBits(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// What a stage makes of an accumulator of channel c, from the comments in
// int8_stage.h and the formulas that they name.
int32_t StageResult(const Int8Stage& stage, int32_t value, int c) {
  const float x = AsFloat(value);
  switch (stage.kind) {
    case Int8StageKind::kRequantize:
      return oracle::RequantizeFixedPoint(
          std::clamp(value, stage.low, stage.high), stage.scale, stage.offset);
    case Int8StageKind::kTable:
      return static_cast<int32_t>(
          std::clamp<int64_t>(int64_t{stage.table[value]} + stage.by_channel[c],
                              INT32_MIN, INT32_MAX));
    case Int8StageKind::kRounded:
      return oracle::Wrapped(
          int64_t{static_cast<int32_t>(std::round(
              std::fma(static_cast<float>(value), stage.factor, stage.summand) *
              stage.unit))} +
          stage.low + stage.by_channel[c]);
    case Int8StageKind::kProduct:
      return oracle::Wrapped((int64_t{value} - stage.low) *
                             stage.by_channel[c]);
    case Int8StageKind::kClamp:
      return std::clamp(value, stage.low, stage.high);
    case Int8StageKind::kDequantize:
      return AsBits(
          std::fma(static_cast<float>(value), stage.factor, stage.summand));
    case Int8StageKind::kScale:
      return AsBits(x * stage.floats[c]);
    case Int8StageKind::kShift:
      return AsBits(x + stage.floats[c]);
    case Int8StageKind::kRelu:
      return AsBits(x < 0 ? 0.0f : x);
    case Int8StageKind::kRelu6:
      return AsBits(x < 0 ? 0.0f : x > 6 ? 6.0f : x);
    case Int8StageKind::kRequantizeFloat:
      return oracle::Requantize(value, stage.floats[c], stage.low,
                                static_cast<int>(stage.factor) + stage.low);
    case Int8StageKind::kQuantize:
      return oracle::Quantize(x, stage.factor, stage.summand);
  }
  return 0;
}

// A stage with constants that its kind allows, and the values that it takes.
struct StageCase {
  const char* name;
  Int8StageKind kind;
  // UNITS: bits to shift random integers by; -1: floats; 24: quantized values.
  int shift = 0;
  float factor = 0;
  float summand = 0;
  int32_t low = 17;
};

constexpr StageCase kStageCases[] = {
    {"requantize", Int8StageKind::kRequantize, 8, 0, 0, -100000},
    {"table", Int8StageKind::kTable, 24},
    {"rounded", Int8StageKind::kRounded, 24, 0.0314f, -4.02f},
    {"product", Int8StageKind::kProduct, 24},
    {"clamp", Int8StageKind::kClamp, 8, 0, 0, -100000},
    {"dequantize", Int8StageKind::kDequantize, 0, 0.0123f, -0.7f},
    {"scale", Int8StageKind::kScale, -1},
    {"shift", Int8StageKind::kShift, -1},
    {"relu", Int8StageKind::kRelu, -1},
    {"relu6", Int8StageKind::kRelu6, -1},
    {"requantize_float", Int8StageKind::kRequantizeFloat, 12, -17.0f, 238.0f},
    {"quantize", Int8StageKind::kQuantize, -1, 0.5f, -100.0f},
};

class Int8OutputStagesKernelTest
    : public ::testing::TestWithParam<const MicroKernel*> {
 protected:
  const Int8StageFunctions& functions() const {
    return *GetParam()->run.int8_stages;
  }
  Random random_;
};

TEST_P(Int8OutputStagesKernelTest, EachStageComputesWhatTheOracleDoes) {
  for (int nr = kInt8NrMultiple; nr <= kMaxInt8Nr; nr += kInt8NrMultiple) {
    // The tile's channels begin behind others.
    const int channel = nr;
    Aligned<int32_t> table(random_.Integers(256, 0));
    Aligned<int32_t> by_channel(random_.Integers(channel + nr, 4));
    Aligned<float> floats(channel + nr);
    for (int c = 0; c < channel + nr; ++c) {
      floats.data()[c] = 1.0f / static_cast<float>(1 << random_.Pick(0, 12));
    }
    for (const StageCase& test : kStageCases) {
      Int8Stage stage;
      stage.kind = test.kind;
      stage.scale = (int64_t{1} << 38) + 12345;
      stage.offset = int64_t{99} << 16;
      stage.low = test.low;
      stage.high = 300000;
      stage.factor = test.factor;
      stage.summand = test.summand;
      stage.unit = 1234.5f;
      stage.table = table.data();
      stage.by_channel = by_channel.data();
      stage.floats = floats.data();
      for (const int rows : {1, 2, 5, 12}) {
        std::vector<int32_t> values;
        if (test.shift < 0) {
          for (const float x : random_.Floats(rows * nr, 300.0f)) {
            values.push_back(AsBits(x));
          }
        } else {
          values = random_.Integers(rows * nr, test.shift);
        }
        if (test.shift == 24) {
          for (int32_t& value : values) value &= 255;
        }
        Aligned<int32_t> made(values);
        functions().run(&stage, 1, {made.data(), rows, nr, channel});
        for (int i = 0; i < rows * nr; ++i) {
          ASSERT_EQ(made.data()[i],
                    StageResult(stage, values[i], channel + i % nr))
              << test.name << ", nr " << nr << ", " << rows << " rows, of "
              << values[i] << " at " << i;
        }
      }
    }
  }
}

TEST_P(Int8OutputStagesKernelTest, StoresAndRequantizesAnyNumberOfChannels) {
  for (int nr = kInt8NrMultiple; nr <= kMaxInt8Nr; nr += kInt8NrMultiple) {
    for (int channels = 1; channels <= nr; ++channels) {
      const int rows = random_.Pick(1, 12);
      const std::vector<int32_t> values =
          random_.Integers(rows * nr, random_.Pick(4, 20));
      EpilogueCase by(nr, channels, &random_);
      Aligned<int32_t> made(values), stored(values);
      std::vector<uint8_t> out(rows * by.stride + 1, 9), low_bits = out;
      by.epilogue.out = out.data();
      functions().requantize({made.data(), rows, nr, 0}, by.epilogue);
      functions().store_quantized({stored.data(), rows, nr, 0}, channels,
                                  by.stride, low_bits.data());
      for (size_t i = 0; i < out.size(); ++i) {
        const int r = static_cast<int>(i / by.stride);
        const int c = static_cast<int>(i % by.stride);
        const bool is_made = r < rows && c < channels;
        const int32_t value = is_made ? values[r * nr + c] : 0;
        ASSERT_EQ(out[i], is_made ? by.Of(value, c) : 9) << r << ", " << c;
        ASSERT_EQ(low_bits[i], is_made ? static_cast<uint8_t>(value) : 9);
      }
    }
  }
}

TEST_P(Int8OutputStagesKernelTest, FindsRangesAndNan) {
  constexpr int kRows = 7;
  for (int nr = kInt8NrMultiple; nr <= kMaxInt8Nr; nr += kInt8NrMultiple) {
    const std::vector<int32_t> values = random_.Integers(kRows * nr, 3);
    std::vector<float> floats = random_.Floats(kRows * nr, 9.0f);
    floats[nr + 3] = std::numeric_limits<float>::quiet_NaN();
    std::vector<int32_t> bits;
    for (const float x : floats) bits.push_back(AsBits(x));
    Aligned<int32_t> integers(values), reals(bits);
    std::vector<int32_t> low(nr, 5), high(nr, 5);
    std::vector<int32_t> least(nr, AsBits(0.5f)), most(nr, AsBits(0.5f));
    functions().find_range({integers.data(), kRows, nr, 0}, low.data(),
                           high.data());
    functions().find_float_range({reals.data(), kRows, nr, 0}, least.data(),
                                 most.data());
    for (int c = 0; c < nr; ++c) {
      int32_t a = 5, b = 5;
      float x = 0.5f, y = 0.5f;
      for (int r = 0; r < kRows; ++r) {
        a = std::min(a, values[r * nr + c]);
        b = std::max(b, values[r * nr + c]);
        if (std::isnan(floats[r * nr + c])) continue;
        x = std::min(x, floats[r * nr + c]);
        y = std::max(y, floats[r * nr + c]);
      }
      EXPECT_EQ(low[c], a);
      EXPECT_EQ(high[c], b);
      EXPECT_EQ(AsFloat(least[c]), x);
      EXPECT_EQ(AsFloat(most[c]), y);
    }
    EXPECT_TRUE(functions().has_nan({reals.data(), kRows, nr, 0}));
    EXPECT_FALSE(functions().has_nan({reals.data(), 1, nr, 0}));
  }
}

TEST_P(Int8OutputStagesKernelTest, RowsOfAnyLengthAreWhatTheOracleMakesOfThem) {
  Int8LinearSum line;
  for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
    for (int16_t& step : line.steps[limb]) {
      step = static_cast<int16_t>(
          random_.Pick(limb == 2 ? -1 : 0, limb == 2 ? 0 : 16383));
    }
    line.zeros[limb] = random_.Pick(0, 16383);
  }
  line.zeros[2] = 200 << 14;
  line.least = 3;
  line.most = 250;
  Int8Stage stage;
  stage.kind = Int8StageKind::kQuantize;
  stage.factor = 0.5f;
  stage.summand = -100.0f;
  for (int count = 0; count < 150; ++count) {
    const auto a = random_.Bytes<uint8_t>(count, 255);
    const auto b = random_.Bytes<uint8_t>(count, 255);
    const std::vector<float> floats = random_.Floats(count, 300.0f);
    std::vector<int32_t> sums(count + 1, 11);
    std::vector<uint8_t> lines(count + 1, 11), quantized(count + 1, 11);
    functions().add_values(a.data(), b.data(), count, -70000, 301, -5003,
                           sums.data());
    functions().linear_sum(a.data(), b.data(), count, line, lines.data());
    functions().quantize(stage, floats.data(), count, quantized.data());
    int32_t total = 0;
    for (int i = 0; i < count; ++i) {
      total += a[i];
      EXPECT_EQ(sums[i], -70000 + a[i] * 301 - b[i] * 5003);
      // The limbs together are one number with 42 binary places.
      int64_t value = 0;
      for (int limb = 2; limb >= 0; --limb) {
        value = value * (1 << Int8LinearSum::kLimbBits) + line.zeros[limb] +
                a[i] * line.steps[limb][0] + b[i] * line.steps[limb][1];
      }
      EXPECT_EQ(lines[i],
                std::clamp<int64_t>(
                    oracle::FloorDivide(value, int64_t{1} << 42), 3, 250));
      EXPECT_EQ(quantized[i], oracle::Quantize(floats[i], 0.5f, -100.0f));
    }
    EXPECT_EQ(functions().sum_values(a.data(), count), total);
    EXPECT_EQ(sums[count], 11);
    EXPECT_EQ(lines[count], 11);
    EXPECT_EQ(quantized[count], 11);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, Int8OutputStagesKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kInt8OutputStages)),
    NameOf);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
