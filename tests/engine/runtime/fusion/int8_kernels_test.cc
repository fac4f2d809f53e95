// The inner loops on quantized values: every instruction set of this processor
// gives the bits of the plain code.

#include "engine/runtime/operators/int8_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/core/quantization.h"
#include "engine/runtime/operators/int8_linear_sum.h"
#include "engine/runtime/operators/int8_weights.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "engine/runtime/ukernels/int8/int8_depthwise.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "gtest/gtest.h"
#include "tests/engine/runtime/feature_sets.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

// The shape of the portable entries, which the others are compared with.
constexpr int kMr = 12, kNr = 32;
constexpr PanelLayout kPanel = {.nr = kNr, .kr = 4};

const Int8StageFunctions& PortableStages() {
  return *kInt8OutputStagesPortable.run.int8_stages;
}

struct StageCase {
  std::string name;
  Int8Stage stage;
  // UNITS: bits of the integers that come in; 0 for floats.
  int bits = 32;
};

class Int8StageTest : public ::testing::Test {
 protected:
  Int8StageTest() : random_(7) {
    for (int32_t& value : table_) {
      value = static_cast<int32_t>(random_());
    }
    table_[3] = INT32_MAX;
    table_[4] = INT32_MIN;
    for (int32_t& value : by_channel_) value = static_cast<int32_t>(random_());
    by_channel_[1] = INT32_MAX;
    by_channel_[2] = INT32_MIN;
    for (float& value : floats_) value = Float(100);
  }

  float Float(float most) {
    return std::uniform_real_distribution<float>(-most, most)(random_);
  }

  std::vector<int32_t> Numbers(int bits) {
    std::vector<int32_t> numbers(kMr * kNr);
    for (int32_t& number : numbers) {
      if (bits == 0) {
        float value = Float(300);
        // Halves too.
        if (random_() % 4 == 0) value = std::trunc(value) + 0.5f;
        std::memcpy(&number, &value, sizeof(number));
      } else {
        number = bits == 8 ? static_cast<int32_t>(random_() & 255)
                           : static_cast<int32_t>(random_());
        if (bits == 20) number >>= 12;
      }
    }
    if (bits == 32) {
      numbers[5] = INT32_MIN;
      numbers[6] = INT32_MAX;
    }
    return numbers;
  }

  void Check(const StageCase& test) {
    const std::vector<int32_t> numbers = Numbers(test.bits);
    for (const CpuFeatures& set : Int8FeatureSets()) {
      for (int rows : {1, 2, 7, kMr}) {
        alignas(64) int32_t expected[kMr * kNr];
        alignas(64) int32_t made[kMr * kNr];
        std::copy(numbers.begin(), numbers.end(), expected);
        std::copy(numbers.begin(), numbers.end(), made);
        PortableStages().run(&test.stage, 1, {expected, rows, kNr, 0});
        SelectInt8Kernels(set).stages->run(&test.stage, 1,
                                           {made, rows, kNr, 0});
        EXPECT_EQ(0, std::memcmp(expected, made, sizeof(made)))
            << test.name << " with " << ToString(set);
      }
    }
  }

  std::mt19937 random_;
  alignas(64) int32_t table_[256];
  alignas(64) int32_t by_channel_[kNr];
  alignas(64) float floats_[kNr];
};

Int8Stage RequantizeStage(Range from, Range to) {
  const Requantizer requantizer(from, to);
  Int8Stage stage;
  stage.kind = Int8StageKind::kRequantize;
  stage.scale = requantizer.scale();
  stage.offset = requantizer.offset();
  stage.low =
      static_cast<int32_t>(std::max<int64_t>(-requantizer.bound(), INT32_MIN));
  stage.high =
      static_cast<int32_t>(std::min<int64_t>(requantizer.bound(), INT32_MAX));
  return stage;
}

TEST_F(Int8StageTest, RequantizesAsTheRequantizer) {
  const Range ranges[] = {{-1, 1},          {-1000, 1000}, {-3e7f, 3e7f},
                          {-0.001f, 0.02f}, {0, 6},        {-7, 0}};
  for (const Range& from : ranges) {
    for (const Range& to : ranges) {
      const Int8Stage stage = RequantizeStage(from, to);
      for (int bits : {20, 32}) {
        Check({"requantize", stage, bits});
        const std::vector<int32_t> numbers = Numbers(bits);
        const Requantizer requantizer(from, to);
        alignas(64) int32_t made[kMr * kNr];
        std::copy(numbers.begin(), numbers.end(), made);
        PortableStages().run(&stage, 1, {made, kMr, kNr, 0});
        for (size_t i = 0; i < numbers.size(); ++i) {
          ASSERT_EQ(made[i], requantizer(numbers[i])) << numbers[i];
        }
      }
    }
  }
}

TEST_F(Int8StageTest, AllOthersGiveTheBitsOfThePlainCode) {
  Int8Stage stage;
  stage.kind = Int8StageKind::kTable;
  stage.table = table_;
  stage.by_channel = by_channel_;
  Check({"table", stage, 8});
  stage.kind = Int8StageKind::kRounded;
  stage.factor = 0.0314f;
  stage.summand = -4.02f;
  stage.unit = 1234.5f;
  stage.low = -17;
  Check({"rounded", stage, 8});
  // Halves.
  stage.factor = 0.5f;
  stage.summand = -20.0f;
  stage.unit = 1.0f;
  Check({"rounded halves", stage, 8});
  stage.kind = Int8StageKind::kProduct;
  stage.low = 77;
  Check({"product", stage, 8});
  stage.kind = Int8StageKind::kClamp;
  stage.low = -5;
  stage.high = 200;
  Check({"clamp", stage, 20});
  stage.kind = Int8StageKind::kDequantize;
  stage.factor = 0.0123f;
  stage.summand = -0.7f;
  Check({"dequantize", stage, 32});
  stage.floats = floats_;
  stage.kind = Int8StageKind::kScale;
  Check({"scale", stage, 0});
  stage.kind = Int8StageKind::kShift;
  Check({"shift", stage, 0});
  stage.kind = Int8StageKind::kRelu;
  Check({"relu", stage, 0});
  stage.kind = Int8StageKind::kRelu6;
  Check({"relu6", stage, 0});
  stage.kind = Int8StageKind::kRequantizeFloat;
  stage.factor = -20.0f;
  stage.summand = 235.0f;
  stage.low = 20;
  // Halves and large numbers.
  for (float& value : floats_) value = 0.5f;
  Check({"narrow", stage, 20});
  Check({"narrow", stage, 32});
  stage.kind = Int8StageKind::kQuantize;
  for (float factor : {1.0f, 0.5f, 40.0f, 1e6f}) {
    stage.factor = factor;
    stage.summand = -100.0f;
    Check({"quantize", stage, 0});
  }
}

TEST(Int8StageFunctionsTest, StoreSumAndFindRange) {
  std::mt19937 random(3);
  alignas(64) int32_t numbers[kMr * kNr];
  for (int32_t& number : numbers) number = static_cast<int32_t>(random() & 255);
  std::vector<uint8_t> quantized(300);
  for (uint8_t& q : quantized) q = static_cast<uint8_t>(random());
  for (const CpuFeatures& set : Int8FeatureSets()) {
    const Int8StageFunctions& functions = *SelectInt8Kernels(set).stages;
    for (int columns : {1, 8, 16, 17, 31, 32}) {
      std::vector<uint8_t> expected(kMr * 40, 9), made = expected;
      PortableStages().store_quantized({numbers, 5, kNr, 0}, columns, 40,
                                       expected.data());
      functions.store_quantized({numbers, 5, kNr, 0}, columns, 40, made.data());
      EXPECT_EQ(expected, made) << ToString(set) << " " << columns;
    }
    std::vector<int32_t> low(kNr, 50), high(kNr, 60);
    std::vector<int32_t> low_of_plain = low, high_of_plain = high;
    functions.find_range({numbers, 3, kNr, 0}, low.data(), high.data());
    PortableStages().find_range({numbers, 3, kNr, 0}, low_of_plain.data(),
                                high_of_plain.data());
    EXPECT_EQ(low, low_of_plain);
    EXPECT_EQ(high, high_of_plain);
    for (int64_t count : {0, 1, 31, 64, 65, 300}) {
      EXPECT_EQ(functions.sum_values(quantized.data(), count),
                PortableStages().sum_values(quantized.data(), count));
    }
  }
}

// The epilogue gives what the stage and the store give, also of accumulators
// that are far out of range and of halves.
TEST(Int8EpilogueTest, GivesTheValuesOfTheStage) {
  std::mt19937 random(5);
  constexpr int64_t kDepth = 8, kStride = 40;
  alignas(64) static int8_t weights[kDepth * kNr];
  for (int8_t& weight : weights) weight = static_cast<int8_t>(random());
  std::vector<uint8_t> quantized(kDepth * kMr);
  for (uint8_t& q : quantized) q = static_cast<uint8_t>(random());
  std::vector<const uint8_t*> pixels;
  for (int r = 0; r < kMr; ++r) pixels.push_back(&quantized[r * kDepth]);
  int32_t start[kNr] = {}, row_start[kMr] = {};
  start[1] = INT32_MAX - 600000;
  start[2] = INT32_MIN + 600000;
  float factors[kNr];
  for (float& factor : factors) {
    factor = std::ldexp(1.0f, -static_cast<int>(random() % 12));
  }
  factors[2] = factors[1] = 1e30f;
  for (const int32_t zero : {0, 7, 255}) {
    for (const int columns : {1, 16, 31, 32}) {
      for (int rows = 1; rows <= kMr; ++rows) {
        Int8Stage stage;
        stage.kind = Int8StageKind::kRequantizeFloat;
        stage.floats = factors;
        stage.low = zero;
        stage.factor = columns == 16 ? 0.0f : static_cast<float>(-zero);
        stage.summand = static_cast<float>(255 - zero);
        Int8Epilogue epilogue;
        epilogue.scales = factors;
        epilogue.zero_point = zero;
        epilogue.least = zero + static_cast<int32_t>(stage.factor);
        epilogue.most = stage.summand;
        epilogue.channels = columns;
        epilogue.stride = kStride;
        alignas(64) int32_t sums[kMr * kNr];
        Int8GemmTile tile;
        tile.indirection = pixels.data();
        tile.depth = kDepth;
        tile.weights = weights;
        tile.init = start;
        tile.row_init = row_start;
        tile.out = sums;
        kInt8GemmPortable.run.int8_gemm(tile, rows);
        alignas(64) int32_t numbers[kMr * kNr];
        std::copy(std::begin(sums), std::end(sums), numbers);
        std::vector<uint8_t> expected(kMr * kStride, 9);
        PortableStages().run(&stage, 1, {numbers, rows, kNr, 0});
        PortableStages().store_quantized({numbers, rows, kNr, 0}, columns,
                                         kStride, expected.data());
        for (const CpuFeatures& set : Int8FeatureSets()) {
          const Int8Kernels kernels = SelectInt8Kernels(set);
          std::vector<uint8_t> made(expected.size(), 9);
          std::copy(std::begin(sums), std::end(sums), numbers);
          epilogue.out = made.data();
          kernels.stages->requantize({numbers, rows, kNr, 0}, epilogue);
          EXPECT_EQ(expected, made) << ToString(set) << " " << columns;
          if (!kernels.gemm->Can(kRequantizes) ||
              !(kernels.gemm->panel == kPanel)) {
            continue;
          }
          std::fill(made.begin(), made.end(), uint8_t{9});
          int32_t shifted[kNr];
          for (int c = 0; c < kNr; ++c) {
            uint32_t sum = static_cast<uint32_t>(start[c]);
            for (int64_t k = 0; k < kDepth; ++k) {
              sum += static_cast<uint32_t>(
                  kernels.gemm->activation_shift *
                  weights[(k / kPanel.kr * kNr + c) * kPanel.kr +
                          k % kPanel.kr]);
            }
            shifted[c] = static_cast<int32_t>(sum);
          }
          tile.epilogue = &epilogue;
          tile.init = shifted;
          const int64_t packed_stride =
              PackedStride(kDepth, kPanel.kr, kernels.gemm->packed_copies);
          std::vector<uint8_t> packed(kMr * packed_stride);
          if (kernels.gemm->activations == ActivationLayout::kPacked) {
            tile.packed = packed.data();
            tile.packed_stride = packed_stride;
            kernels.gemm->pack(tile, rows, 0);
          }
          kernels.gemm->run.int8_gemm(tile, rows);
          tile.epilogue = nullptr;
          tile.init = start;
          EXPECT_EQ(expected, made) << ToString(set) << " " << columns;
        }
      }
    }
  }
}

TEST(Int8LinearSumTest, GivesWhatTheStagesGiveOrIsNotFound) {
  std::mt19937 random(6);
  std::vector<uint8_t> a(1000), b(1000);
  for (uint8_t& q : a) q = static_cast<uint8_t>(random());
  for (uint8_t& q : b) q = static_cast<uint8_t>(random());
  int found = 0;
  for (const float scale : {0.5f, 0.9f, 1.7f}) {
    for (const int32_t step_b : {70000, 123456, 199999}) {
      const Int8Line line = {-20 * 100000, 100000, step_b};
      const Range from = {-1000 * scale, 1000 * scale};
      Int8Stage clamp, requantize = RequantizeStage(from, {-1, 11});
      clamp.low = -300000;
      clamp.high = INT32_MAX;
      const std::vector<Int8Stage> stages = {clamp, requantize};
      const auto sum = FindLinearSum(line, stages, PortableStages());
      if (!sum) continue;
      ++found;
      for (const CpuFeatures& set : Int8FeatureSets()) {
        const Int8StageFunctions& functions = *SelectInt8Kernels(set).stages;
        for (const int64_t count : {1, 63, 64, 65, 1000}) {
          std::vector<uint8_t> expected(1000, 3), made(1000, 3);
          PortableStages().linear_sum(a.data(), b.data(), count, *sum,
                                      expected.data());
          functions.linear_sum(a.data(), b.data(), count, *sum, made.data());
          EXPECT_EQ(expected, made) << ToString(set) << " " << count;
        }
      }
    }
  }
  // All but those whose steps are too large.
  EXPECT_GT(found, 4);
  Int8Stage relu;
  relu.kind = Int8StageKind::kRelu;
  EXPECT_FALSE(FindLinearSum({}, {relu}, PortableStages()).has_value());
  EXPECT_FALSE(FindLinearSum({0, INT32_MAX, INT32_MAX},
                             {RequantizeStage({-1e9f, 1e9f}, {-1, 1})},
                             PortableStages())
                   .has_value());
}

TEST(Int8StageFunctionsTest, QuantizedFloatsAreThoseOfTheStage) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(7);
  Int8Stage stage;
  stage.kind = Int8StageKind::kQuantize;
  stage.factor = 1.0f;
  for (const float summand : {-100.0f, 0.0f, 255.0f, -16384.0f, 16384.0f,
                              16385.0f, -3e5f, 3e9f, -0.5f}) {
    stage.summand = summand;
    std::uniform_real_distribution<float> number(summand - 300, summand + 500);
    std::vector<float> floats(200);
    for (float& value : floats) value = number(random);
    const float odd[] = {10.5f,     std::numeric_limits<float>::quiet_NaN(),
                         kInfinity, -kInfinity,
                         3e9f,      -3e9f,
                         40000,     -40000,
                         32767.5f,  -32768.5f,
                         70000,     1e38f};
    std::copy(std::begin(odd), std::end(odd), floats.begin() + 3);
    for (const int64_t count : {1, 15, 16, 33, 64, 200}) {
      std::vector<uint8_t> expected(200, 3);
      for (int64_t i = 0; i < count; ++i) {
        alignas(64) int32_t row[kNr] = {};
        std::memcpy(row, &floats[i], sizeof(float));
        PortableStages().run(&stage, 1, {row, 1, kNr, 0});
        expected[i] = static_cast<uint8_t>(row[0]);
      }
      for (const CpuFeatures& set : Int8FeatureSets()) {
        std::vector<uint8_t> made(200, 3);
        SelectInt8Kernels(set).stages->quantize(stage, floats.data(), count,
                                                made.data());
        EXPECT_EQ(expected, made)
            << ToString(set) << " " << count << ", summand " << summand;
      }
    }
  }
}

struct Depthwise {
  int taps_y, taps_x, stride, dilation, channels, zero;
};

class Int8DepthwiseTest : public ::testing::TestWithParam<Depthwise> {};

// A window that begins left of the image and has a line above it.
TEST_P(Int8DepthwiseTest, GivesTheSumsOfThePlainCode) {
  const Depthwise& p = GetParam();
  constexpr int64_t kWidth = 30, kAll = 40;
  std::mt19937 random(9);
  std::vector<uint8_t> quantized(kWidth * kAll * 8);
  for (uint8_t& q : quantized) q = static_cast<uint8_t>(random());
  Tensor filter =
      *Tensor::Allocate(tensorflow::DT_QUINT8,
                        *Shape::FromDims({p.taps_y, p.taps_x, p.channels, 1}));
  for (uint8_t& q : filter.flat<uint8_t>()) {
    q = static_cast<uint8_t>(random());
  }
  ThreadPool pool(2);
  const Int8Matrix matrix =
      MakeInt8DepthwiseMatrix(filter.shape(), p.zero, kPanel);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor packed, Int8Weights::PackDepthwise(filter, matrix, &pool));
  const Int8Weights weights(PackedWeights(packed), matrix);
  std::vector<const uint8_t*> lines;
  for (int y = 0; y < p.taps_y; ++y) {
    lines.push_back(y == 0 ? nullptr : quantized.data() + y * kWidth * kAll);
  }
  int32_t start[kNr];
  for (int32_t& value : start) value = static_cast<int32_t>(random());
  alignas(64) static uint8_t scratch[1 << 16];
  alignas(64) int32_t expected[kMr * kNr];
  alignas(64) int32_t sums[kMr * kNr];
  Int8DepthwiseTile tile;
  tile.rows = lines.data();
  tile.end = quantized.data() + quantized.size();
  tile.taps_y = p.taps_y;
  tile.taps_x = p.taps_x;
  tile.column = -1;
  tile.width = kWidth;
  tile.pixel_bytes = kAll;
  tile.stride = p.stride;
  tile.dilation = p.dilation;
  tile.padding = 77;
  tile.weights = weights.panel(0);
  tile.sets = weights.sets(0);
  tile.init = start;
  tile.channels = p.channels;
  tile.scratch = scratch;
  for (int pixels = 1; pixels <= kMr; ++pixels) {
    tile.out = expected;
    kInt8DepthwisePortable.run.int8_depthwise(tile, pixels);
    for (const CpuFeatures& set : Int8FeatureSets()) {
      tile.out = sums;
      const MicroKernel& entry = *SelectInt8Kernels(set).depthwise;
      int32_t shifted[kNr];
      for (int c = 0; c < kNr; ++c) {
        shifted[c] = static_cast<int32_t>(
            static_cast<uint32_t>(start[c]) +
            static_cast<uint32_t>(entry.activation_shift) *
                static_cast<uint32_t>(weights.column_sums()[c]));
      }
      tile.init = shifted;
      entry.run.int8_depthwise(tile, pixels);
      tile.init = start;
      for (int i = 0; i < pixels; ++i) {
        for (int c = 0; c < p.channels; ++c) {
          ASSERT_EQ(expected[i * kNr + c], sums[i * kNr + c])
              << ToString(set) << " pixel " << i << " channel " << c;
        }
      }
    }
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor again,
      weights.UnpackDepthwise(tensorflow::DT_QUINT8, filter.shape()));
  EXPECT_EQ(filter.flat<uint8_t>(), again.flat<uint8_t>());
}

INSTANTIATE_TEST_SUITE_P(Windows, Int8DepthwiseTest,
                         ::testing::Values(Depthwise{3, 3, 1, 1, 32, 128},
                                           Depthwise{3, 3, 2, 1, 8, 128},
                                           Depthwise{3, 3, 1, 2, 32, 3},
                                           Depthwise{5, 4, 2, 1, 17, 140},
                                           Depthwise{1, 7, 1, 1, 32, 128},
                                           Depthwise{3, 3, 1, 1, 32, 0},
                                           Depthwise{3, 3, 2, 1, 30, 255},
                                           Depthwise{4, 1, 3, 1, 31, 5}));

}  // namespace
}  // namespace optfarm::runtime
