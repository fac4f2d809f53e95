// The kernels on quantized values against the same computation in real numbers.

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

tensorflow::NodeDef Node(const std::string& text) {
  tensorflow::NodeDef node;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: 'n' " + text,
                                                            &node));
  return node;
}

std::string Attr(const std::string& name, const std::string& value) {
  return " attr { key: '" + name + "' value { " + value + " } } ";
}

Tensor Quantized(const Shape& shape, const std::vector<uint8_t>& quantized) {
  return Tensor::FromValues<uint8_t>(shape, quantized)
      .Reinterpreted(tensorflow::DT_QUINT8);
}

std::vector<uint8_t> RandomCodes(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> quantized(static_cast<size_t>(count));
  for (uint8_t& q : quantized) q = static_cast<uint8_t>(random());
  return quantized;
}

Tensor Real(float value) { return Tensor::Scalar(value); }

// Real numbers that 32-bit values stand for.
std::vector<float> Dequantized(const std::vector<Tensor>& outputs) {
  const Range range = {outputs[1].flat<float>()[0],
                       outputs[2].flat<float>()[0]};
  const double scale =
      (double{range.max} - range.min) / (QuantizedCount<int32_t>() - 1);
  std::vector<float> values;
  for (int32_t q : outputs[0].flat<int32_t>()) {
    values.push_back(static_cast<float>(q * scale));
  }
  return values;
}

std::vector<float> Dequantized(const std::vector<uint8_t>& quantized,
                               Range range) {
  const Dequantizer<uint8_t> dequantize(range);
  std::vector<float> values;
  for (uint8_t q : quantized) values.push_back(dequantize(q));
  return values;
}

TEST(QuantizeV2Test, WidensTheRangeAndRoundTrips) {
  const auto quantize = Node("op: 'QuantizeV2'" + Attr("T", "type: DT_QUINT8") +
                             Attr("mode", "s: 'MIN_FIRST'"));
  const Tensor x = Tensor::FromValues<float>({3}, {0.0f, 0.5f, 2.0f});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto quantized, EvaluateNode(quantize, {x, Real(0.5f), Real(2.0f)}, 3));
  EXPECT_EQ(quantized[1].flat<float>()[0], 0.0f);
  EXPECT_THAT(quantized[0].flat<uint8_t>(), ElementsAre(0, 64, 255));
  const auto dequantize =
      Node("op: 'Dequantize'" + Attr("T", "type: DT_QUINT8") +
           Attr("mode", "s: 'MIN_FIRST'"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto back,
                               EvaluateNode(dequantize, quantized, 1));
  EXPECT_NEAR(back[0].flat<float>()[1], 0.5f, 2.0f / 255);
}

TEST(QuantizeV2Test, InfiniteRangeOfAnEmptyTensorIsAnError) {
  const auto quantize = Node("op: 'QuantizeV2'" + Attr("T", "type: DT_QUINT8"));
  EXPECT_THAT(EvaluateNode(quantize,
                           {Tensor::FromValues<float>({0}, {}), Real(INFINITY),
                            Real(-INFINITY)},
                           3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("end of a range")));
}

TEST(QuantizedMatMulTest, AgreesWithRealArithmeticInEveryOrder) {
  const Range range_a = {-1.0f, 2.0f}, range_b = {-0.5f, 0.25f};
  const int m = 3, k = 20, n = 5;
  for (bool transpose_a : {false, true}) {
    for (bool transpose_b : {false, true}) {
      const auto values_a = RandomCodes(m * k, 1),
                 values_b = RandomCodes(k * n, 2);
      const auto a = Dequantized(values_a, range_a);
      const auto b = Dequantized(values_b, range_b);
      const auto node =
          Node("op: 'QuantizedMatMul'" +
               Attr("transpose_a", transpose_a ? "b: true" : "b: false") +
               Attr("transpose_b", transpose_b ? "b: true" : "b: false"));
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          auto out,
          EvaluateNode(
              node,
              {Quantized(transpose_a ? Shape({k, m}) : Shape({m, k}), values_a),
               Quantized(transpose_b ? Shape({n, k}) : Shape({k, n}), values_b),
               Real(range_a.min), Real(range_a.max), Real(range_b.min),
               Real(range_b.max)},
              3));
      const auto values = Dequantized(out);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          float sum = 0;
          for (int p = 0; p < k; ++p) {
            sum += a[transpose_a ? p * m + i : i * k + p] *
                   b[transpose_b ? j * k + p : p * n + j];
          }
          EXPECT_NEAR(values[i * n + j], sum, 1e-4f);
        }
      }
    }
  }
}

struct ConvCase {
  int size, filter, stride;
  const char* padding;
};

class QuantizedConv2DTest : public ::testing::TestWithParam<ConvCase> {};

TEST_P(QuantizedConv2DTest, AgreesWithTheFloatKernel) {
  const ConvCase p = GetParam();
  const Range range_x = {-1.0f, 3.0f}, range_w = {-0.7f, 0.4f};
  const int64_t in = 4, out_channels = 6;
  const auto values_x = RandomCodes(2 * p.size * p.size * in, 3);
  const auto values_w = RandomCodes(p.filter * p.filter * in * out_channels, 4);
  const Shape shape_x({2, p.size, p.size, in});
  const Shape shape_w({p.filter, p.filter, in, out_channels});
  const std::string attrs =
      Attr("strides", "list { i: 1 i: " + std::to_string(p.stride) +
                          " i: " + std::to_string(p.stride) + " i: 1 }") +
      Attr("padding", "s: '" + std::string(p.padding) + "'");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto quantized,
      EvaluateNode(Node("op: 'QuantizedConv2D'" + attrs),
                   {Quantized(shape_x, values_x), Quantized(shape_w, values_w),
                    Real(range_x.min), Real(range_x.max), Real(range_w.min),
                    Real(range_w.max)},
                   3));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto real,
      EvaluateNode(
          Node("op: 'Conv2D'" + Attr("T", "type: DT_FLOAT") + attrs),
          {Tensor::FromValues<float>(shape_x, Dequantized(values_x, range_x)),
           Tensor::FromValues<float>(shape_w, Dequantized(values_w, range_w))},
          1));
  ASSERT_EQ(quantized[0].shape(), real[0].shape());
  const auto values = Dequantized(quantized);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], real[0].flat<float>()[i], 1e-3f) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, QuantizedConv2DTest,
                         ::testing::Values(ConvCase{5, 1, 1, "SAME"},
                                           ConvCase{7, 3, 1, "SAME"},
                                           ConvCase{8, 3, 2, "SAME"},
                                           ConvCase{7, 3, 2, "VALID"},
                                           ConvCase{6, 1, 2, "SAME"}));

TEST(QuantizedBiasAddTest, AddsInACommonRange) {
  const Range range_x = {-4.0f, 4.0f}, range_b = {-0.5f, 1.0f};
  const auto x = RandomCodes(12, 5), b = RandomCodes(3, 6);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto out,
      EvaluateNode(Node("op: 'QuantizedBiasAdd'"),
                   {Quantized({4, 3}, x), Quantized({3}, b), Real(range_x.min),
                    Real(range_x.max), Real(range_b.min), Real(range_b.max)},
                   3));
  const auto values = Dequantized(out);
  const auto real_x = Dequantized(x, range_x), real_b = Dequantized(b, range_b);
  for (int i = 0; i < 12; ++i) {
    EXPECT_NEAR(values[i], real_x[i] + real_b[i % 3], 1e-2f);
  }
}

TEST(QuantizedMulTest, Broadcasts) {
  const Range range = {-2.0f, 2.1f};
  const auto x = RandomCodes(6, 7), y = RandomCodes(2, 8);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto out, EvaluateNode(Node("op: 'QuantizedMul'"),
                             {Quantized({2, 3}, x), Quantized({2, 1}, y),
                              Real(-2), Real(2.1f), Real(-2), Real(2.1f)},
                             3));
  const auto values = Dequantized(out);
  const auto real_x = Dequantized(x, range), real_y = Dequantized(y, range);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(values[i], real_x[i] * real_y[i / 3], 1e-4f);
  }
}

TEST(QuantizedMulTest, TakesRangesFarFromZero) {
  const Range far = {-162.7f, -160.3f}, near = {-2.0f, 2.1f};
  const auto x = RandomCodes(6, 7), y = RandomCodes(6, 8);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto out,
      EvaluateNode(Node("op: 'QuantizedMul'"),
                   {Quantized({6}, x), Quantized({6}, y), Real(far.min),
                    Real(far.max), Real(near.min), Real(near.max)},
                   3));
  const auto values = Dequantized(out);
  const auto real_x = Dequantized(x, far), real_y = Dequantized(y, near);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(values[i], real_x[i] * real_y[i], 0.02f);
  }
}

TEST(QuantizedReluTest, ClampsAtTheCodesOfZeroAndSix) {
  const Tensor quantized = Quantized({4}, {0, 64, 100, 255});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto relu, EvaluateNode(Node("op: 'QuantizedRelu'"),
                              {quantized, Real(-2.5f), Real(7.5f)}, 3));
  EXPECT_THAT(relu[0].flat<uint8_t>(), ElementsAre(64, 64, 100, 255));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto relu6, EvaluateNode(Node("op: 'QuantizedRelu6'"),
                               {quantized, Real(-2.5f), Real(7.5f)}, 3));
  EXPECT_THAT(relu6[0].flat<uint8_t>(), ElementsAre(64, 64, 100, 217));
}

TEST(QuantizedPoolTest, AverageTruncatesAndIgnoresPadding) {
  const std::string attrs = Attr("ksize", "list { i: [1, 2, 2, 1] }") +
                            Attr("strides", "list { i: [1, 2, 2, 1] }") +
                            Attr("padding", "s: 'SAME'");
  const Tensor image = Quantized({1, 3, 3, 1}, {1, 2, 3, 4, 6, 6, 7, 8, 9});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto average, EvaluateNode(Node("op: 'QuantizedAvgPool'" + attrs),
                                 {image, Real(0), Real(1)}, 3));
  EXPECT_THAT(average[0].flat<uint8_t>(), ElementsAre(3, 4, 7, 9));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto highest, EvaluateNode(Node("op: 'QuantizedMaxPool'" + attrs),
                                 {image, Real(0), Real(1)}, 3));
  EXPECT_THAT(highest[0].flat<uint8_t>(), ElementsAre(6, 6, 8, 9));
}

// Blocks of channels, what is left of them, and windows of more quantized
// values than 16 bits have sums for.
TEST(QuantizedPoolTest, ChannelsAndLargeWindowsArePooledAlike) {
  for (const int64_t size : {3, 18}) {
    constexpr int64_t kSide = 20, kChannels = 70;
    std::vector<uint8_t> quantized(kSide * kSide * kChannels);
    for (size_t i = 0; i < quantized.size(); ++i) {
      quantized[i] = i % 3 == 0 ? 255 : static_cast<uint8_t>(i * 7919 % 251);
    }
    const std::string of_size = absl::StrCat(size);
    const std::string attrs =
        Attr("ksize",
             absl::StrCat("list { i: [1, ", of_size, ", ", of_size, ", 1] }")) +
        Attr("strides", "list { i: [1, 2, 2, 1] }") +
        Attr("padding", "s: 'VALID'");
    const Tensor image = Quantized({1, kSide, kSide, kChannels}, quantized);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        auto average, EvaluateNode(Node("op: 'QuantizedAvgPool'" + attrs),
                                   {image, Real(0), Real(1)}, 3));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        auto highest, EvaluateNode(Node("op: 'QuantizedMaxPool'" + attrs),
                                   {image, Real(0), Real(1)}, 3));
    for (int64_t c = 0; c < kChannels; ++c) {
      int64_t sum = 0, most = 0;
      for (int64_t y = 0; y < size; ++y) {
        for (int64_t x = 0; x < size; ++x) {
          const int64_t q = quantized[(y * kSide + x) * kChannels + c];
          sum += q;
          most = std::max(most, q);
        }
      }
      EXPECT_EQ(average[0].flat<uint8_t>()[c], sum / (size * size)) << c;
      EXPECT_EQ(highest[0].flat<uint8_t>()[c], most) << c;
    }
  }
}

// Neighbouring windows share columns of which the border has fewer.
TEST(QuantizedPoolTest, AveragesOfOverlappingWindows) {
  constexpr int64_t kSide = 6, kChannels = 70;
  std::vector<uint8_t> quantized(kSide * kSide * kChannels);
  for (size_t i = 0; i < quantized.size(); ++i) {
    quantized[i] = i % 3 == 0 ? 255 : static_cast<uint8_t>(i * 7919 % 251);
  }
  const std::string attrs = Attr("ksize", "list { i: [1, 3, 3, 1] }") +
                            Attr("strides", "list { i: [1, 1, 1, 1] }") +
                            Attr("padding", "s: 'SAME'");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto average,
      EvaluateNode(Node("op: 'QuantizedAvgPool'" + attrs),
                   {Quantized({1, kSide, kSide, kChannels}, quantized), Real(0),
                    Real(1)},
                   3));
  const auto at = average[0].flat<uint8_t>();
  for (int64_t i = 0; i < kSide * kSide * kChannels; ++i) {
    const int64_t c = i % kChannels, x = i / kChannels % kSide;
    const int64_t y = i / kChannels / kSide;
    int64_t sum = 0, count = 0;
    for (int64_t in_y = std::max<int64_t>(y - 1, 0);
         in_y < std::min(y + 2, kSide); ++in_y) {
      for (int64_t in_x = std::max<int64_t>(x - 1, 0);
           in_x < std::min(x + 2, kSide); ++in_x, ++count) {
        sum += quantized[(in_y * kSide + in_x) * kChannels + c];
      }
    }
    ASSERT_EQ(at[i], sum / count) << y << ", " << x << ", " << c;
  }
}

TEST(QuantizedConcatTest, RecodesOnlyWhatHasAnotherRange) {
  const auto node = Node("op: 'QuantizedConcat'" + Attr("N", "i: 2") +
                         Attr("T", "type: DT_QUINT8"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto out,
      EvaluateNode(
          node,
          {Tensor::Scalar<int32_t>(1), Quantized({2, 1}, {0, 255}),
           Quantized({2, 1}, {0, 255}), Real(0), Real(0), Real(1), Real(2)},
          3));
  EXPECT_THAT(out[0].flat<uint8_t>(), ElementsAre(0, 0, 128, 255));
  EXPECT_EQ(out[2].flat<float>()[0], 2.0f);
}

TEST(QuantizedReshapeTest, ResolvesMinusOneAndKeepsTheRange) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto out, EvaluateNode(Node("op: 'QuantizedReshape'"),
                             {Quantized({2, 3}, {1, 2, 3, 4, 5, 6}),
                              Tensor::FromValues<int32_t>({2}, {3, -1}),
                              Real(-1), Real(1)},
                             3));
  EXPECT_EQ(out[0].shape(), Shape({3, 2}));
  EXPECT_EQ(out[1].flat<float>()[0], -1.0f);
}

TEST(RequantizationRangeTest, ContainsZeroAndTheHighestValue) {
  const Tensor quantized = Tensor::FromValues<int32_t>({3}, {1000, 2000, 500})
                               .Reinterpreted(tensorflow::DT_QINT32);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto out,
      EvaluateNode(Node("op: 'RequantizationRange'"),
                   {quantized, Real(-2147483.648f), Real(2147483.648f)}, 2));
  EXPECT_EQ(out[0].flat<float>()[0], 0.0f);
  EXPECT_NEAR(out[1].flat<float>()[0], 2.0f, 0.13f);
}

TEST(RequantizeTest, RefusesARangeAboveZero) {
  const Tensor quantized =
      Tensor::Scalar<int32_t>(1).Reinterpreted(tensorflow::DT_QINT32);
  EXPECT_THAT(
      EvaluateNode(Node("op: 'Requantize'"),
                   {quantized, Real(-1), Real(1), Real(0.5f), Real(2)}, 3),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0.5")));
}

}  // namespace
}  // namespace optfarm::runtime
