// Every table of int8 output stages that this processor can run against the
// oracle, bit for bit. Needs nothing but the kernels' own files.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/runtime/ukernels/int8/int8_stage.h"
#include "tests/engine/runtime/oracle/int8_oracle.h"
#include "tests/engine/runtime/ukernels/int8_epilogue_case.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

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

// The limbs together are one number with 42 binary places.
int64_t WholeLine(const Int8LinearSum& line, int64_t a, int64_t b) {
  int64_t value = 0;
  for (int limb = Int8LinearSum::kLimbs - 1; limb >= 0; --limb) {
    value = value * (1 << Int8LinearSum::kLimbBits) + line.zeros[limb] +
            a * line.steps[limb][0] + b * line.steps[limb][1];
  }
  return oracle::FloorDivide(value, int64_t{1} << 42);
}

TEST_P(Int8OutputStagesKernelTest, LinesWithoutTheLowestLimbAreExact) {
  const auto a = random_.Bytes<uint8_t>(200, 255);
  const auto b = random_.Bytes<uint8_t>(200, 255);
  std::vector<uint8_t> made(200);
  // Steps to either end of 16 bits; zeros beside the middle and far beyond what
  // can be a result.
  for (const int step_a : {0, 1, 9000, 32767, -32768}) {
    for (const int step_b : {7000, 32767, -32768}) {
      for (const int zero : {0, 100, -100, 8191, -8192, 32700, -32700}) {
        Int8LinearSum line;
        line.steps[1][0] = static_cast<int16_t>(random_.Pick(0, 16383));
        line.steps[1][1] = 16383;
        line.steps[2][0] = static_cast<int16_t>(step_a);
        line.steps[2][1] = static_cast<int16_t>(step_b);
        line.zeros[1] = random_.Pick(0, 16383);
        line.zeros[2] = zero * (1 << Int8LinearSum::kLimbBits);
        line.most = 254;
        functions().linear_sum(a.data(), b.data(), 200, line, made.data());
        for (int i = 0; i < 200; ++i) {
          ASSERT_EQ(made[i],
                    std::clamp<int64_t>(WholeLine(line, a[i], b[i]), 0, 254))
              << step_a << " " << step_b << " " << zero << " " << i;
        }
      }
    }
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
      EXPECT_EQ(lines[i],
                std::clamp<int64_t>(WholeLine(line, a[i], b[i]), 3, 250));
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
    EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
