// Whole layers on quantized values: each op against the float layer it stands
// for, and the fused ops against their parts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/core/quantization.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Range kInput = {-1.0f, 3.0f};
constexpr int64_t kChannels = 6;

template <typename T>
std::vector<T> RandomCodes(int64_t count, uint32_t seed, int low, int high) {
  std::mt19937 random(seed);
  std::vector<T> quantized(static_cast<size_t>(count));
  for (T& q : quantized) {
    q = static_cast<T>(low + static_cast<int>(random() % (high - low + 1)));
  }
  return quantized;
}

// A layer of each product with channels whose weights differ a hundredfold.
struct Case {
  std::string product;  // "Conv2D", "DepthwiseConv2D" or "MatMul"
  int64_t stride = 1;
  int64_t dilation = 1;
  std::string padding = "SAME";
};

class LayerTest : public ::testing::TestWithParam<Case> {
 protected:
  LayerTest() {
    const std::string& product = GetParam().product;
    if (product == "MatMul") {
      x_shape_ = Shape({5, 7});
      w_shape_ = Shape({7, kChannels});
    } else {
      x_shape_ = Shape({2, 7, 6, 3});
      w_shape_ = product == "Conv2D" ? Shape({3, 3, 3, kChannels})
                                     : Shape({3, 3, 3, kChannels / 3});
    }
    x_ = RandomCodes<uint8_t>(x_shape_.num_elements(), 1, 0, 255);
    w_ = RandomCodes<int8_t>(w_shape_.num_elements(), 2, -127, 127);
    for (int64_t c = 0; c < kChannels; ++c) {
      max_.push_back(0.01f * static_cast<float>(1 + c * c * 4));
      min_.push_back(-max_.back());
      bias_.push_back(0.1f * static_cast<float>(c) - 0.2f);
    }
  }

  Op Node(const std::string& suffix, const char* out, DataType type) const {
    const bool is_matrix = GetParam().product == "MatMul";
    Op op("Quantized" + GetParam().product + suffix);
    op.Type(is_matrix ? "T1" : "Tinput", tensorflow::DT_QUINT8);
    op.Type(is_matrix ? "T2" : "Tfilter", tensorflow::DT_QINT8);
    op.Type(is_matrix ? "Toutput" : out, type);
    if (!is_matrix) Slide(&op);
    op.In(Tensor::FromValues<uint8_t>(x_shape_, x_)
              .Reinterpreted(tensorflow::DT_QUINT8));
    op.In(Tensor::FromValues<int8_t>(w_shape_, w_)
              .Reinterpreted(tensorflow::DT_QINT8));
    if (suffix.find("WithBias") != std::string::npos) {
      op.In(Floats(Shape({kChannels}), bias_));
    }
    op.In(Tensor::Scalar(kInput.min)).In(Tensor::Scalar(kInput.max));
    const Shape ranges({static_cast<int64_t>(min_.size())});
    op.In(Floats(ranges, min_)).In(Floats(ranges, max_));
    return op;
  }

  void Slide(Op* op) const {
    op->Ints("strides", {1, GetParam().stride, GetParam().stride, 1});
    op->Ints("dilations", {1, GetParam().dilation, GetParam().dilation, 1});
    op->Text("padding", GetParam().padding);
  }

  // The float layer over what the quantized values stand for.
  std::vector<float> Expected(bool has_bias, bool has_relu) const {
    const Dequantizer<uint8_t> dequantize(kInput);
    std::vector<float> x, w;
    for (uint8_t q : x_) x.push_back(dequantize(q));
    for (size_t i = 0; i < w_.size(); ++i) {
      w.push_back(static_cast<float>(w_[i]) * max_[i % kChannels] / 127.0f);
    }
    const std::string& product = GetParam().product;
    Op op(product == "DepthwiseConv2D" ? "DepthwiseConv2dNative" : product);
    op.Type("T", tensorflow::DT_FLOAT);
    if (product != "MatMul") Slide(&op);
    const auto y = op.In(Floats(x_shape_, x)).In(Floats(w_shape_, w)).Run();
    EXPECT_TRUE(y.ok()) << y.status();
    std::vector<float> values(y->flat<float>().begin(), y->flat<float>().end());
    for (size_t i = 0; i < values.size(); ++i) {
      if (has_bias) values[i] += bias_[i % kChannels];
      if (has_relu) values[i] = std::max(values[i], 0.0f);
    }
    return values;
  }

  static std::vector<float> Decoded(const std::vector<Tensor>& wide) {
    std::vector<float> values;
    const absl::Span<const int32_t> quantized = wide[0].flat<int32_t>();
    for (size_t i = 0; i < quantized.size(); ++i) {
      values.push_back(static_cast<float>(quantized[i]) *
                       (wide[2].flat<float>()[i % kChannels] / 2147483648.0f));
    }
    return values;
  }

  Shape x_shape_, w_shape_;
  std::vector<uint8_t> x_;
  std::vector<int8_t> w_;
  std::vector<float> min_, max_, bias_;
};

TEST_P(LayerTest, AgreesWithTheFloatLayer) {
  const std::string plain = GetParam().product == "Conv2D" ? "PerChannel" : "";
  for (const std::string& suffix :
       {plain, std::string("WithBias"), std::string("WithBiasAndRelu")}) {
    if (suffix.empty() && GetParam().product == "MatMul") continue;
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> wide,
        Node(suffix, "out_type", tensorflow::DT_QINT32).RunAll(3));
    const std::vector<float> expected =
        Expected(suffix.find("WithBias") == 0, suffix == "WithBiasAndRelu");
    const std::vector<float> values = Decoded(wide);
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], 2e-4f * (1 + std::abs(expected[i])))
          << suffix << " " << i;
    }
  }
}

TEST_P(LayerTest, FusedGivesTheSameCodesAsItsParts) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> wide,
      Node("WithBiasAndRelu", "out_type", tensorflow::DT_QINT32).RunAll(3));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> range,
                               Op("RequantizationRangePerChannel")
                                   .Type("T", tensorflow::DT_QINT32)
                                   .Float("clip_value_max", 6.0f)
                                   .In(wide[0])
                                   .In(wide[1])
                                   .In(wide[2])
                                   .RunAll(2));
  EXPECT_EQ(range[0].flat<float>()[0], 0.0f);
  EXPECT_GT(range[1].flat<float>()[0], 0.0f);
  EXPECT_LE(range[1].flat<float>()[0], 6.0f);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts,
                               Op("RequantizePerChannel")
                                   .Type("T", tensorflow::DT_QINT32)
                                   .Type("out_type", tensorflow::DT_QUINT8)
                                   .In(wide[0])
                                   .In(wide[1])
                                   .In(wide[2])
                                   .In(range[0])
                                   .In(range[1])
                                   .RunAll(3));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> fused,
      Node("WithBiasAndReluAndRequantize", "out_type", tensorflow::DT_QUINT8)
          .In(range[0])
          .In(range[1])
          .RunAll(3));
  EXPECT_EQ(fused[0].flat<uint8_t>(), parts[0].flat<uint8_t>());
  const float step = range[1].flat<float>()[0] / 255.0f;
  const std::vector<float> expected = Expected(true, true);
  for (size_t i = 0; i < expected.size(); ++i) {
    const float limited = std::min(expected[i], range[1].flat<float>()[0]);
    ASSERT_NEAR(fused[0].flat<uint8_t>()[i] * step, limited, 0.501f * step);
  }
}

TEST_P(LayerTest, RefusesRangesThatAreNotOneForEachChannel) {
  max_.pop_back();
  min_.pop_back();
  EXPECT_THAT(Node("WithBias", "out_type", tensorflow::DT_QINT32).RunAll(3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("one for each of 6 channels")));
}

INSTANTIATE_TEST_SUITE_P(
    Products, LayerTest,
    ::testing::Values(Case{"Conv2D"}, Case{"Conv2D", 2}, Case{"Conv2D", 1, 2},
                      Case{"Conv2D", 1, 1, "VALID"}, Case{"DepthwiseConv2D"},
                      Case{"DepthwiseConv2D", 2},
                      Case{"DepthwiseConv2D", 1, 2, "VALID"}, Case{"MatMul"}));

TEST(RequantizePerChannelTest, ZeroStaysZeroWhereverTheRangeLies) {
  for (const Range to : {Range{-0.37f, 5.1f}, Range{-3.0f, 0.0f},
                         Range{1.0f, 5.0f}, Range{-9.0f, -1.0f}}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> y,
        Op("RequantizePerChannel")
            .Type("T", tensorflow::DT_QINT32)
            .Type("out_type", tensorflow::DT_QUINT8)
            .In(Tensor::FromValues<int32_t>(Shape({1, 2}), {0, 0})
                    .Reinterpreted(tensorflow::DT_QINT32))
            .In(Tensor::FromValues<float>(Shape({2}), {-1e6f, -3e7f}))
            .In(Tensor::FromValues<float>(Shape({2}), {1e6f, 3e7f}))
            .In(Tensor::Scalar(to.min))
            .In(Tensor::Scalar(to.max))
            .RunAll(3));
    const Range used = {y[1].flat<float>()[0], y[2].flat<float>()[0]};
    const Dequantizer<uint8_t> dequantize(used);
    EXPECT_NEAR(dequantize(y[0].flat<uint8_t>()[0]), 0.0f, 1e-6f) << to.min;
    EXPECT_NEAR(dequantize(y[0].flat<uint8_t>()[1]), 0.0f, 1e-6f) << to.min;
  }
}

TEST(DequantizeTest, TakesARangeForEachIndexOfAnAxis) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Op("Dequantize")
          .Type("T", tensorflow::DT_QINT8)
          .Text("mode", "SCALED")
          .Int("axis", 1)
          .In(Tensor::FromValues<int8_t>(Shape({2, 2, 1}), {127, 127, -127, 0})
                  .Reinterpreted(tensorflow::DT_QINT8))
          .In(Tensor::FromValues<float>(Shape({2}), {-1, -2}))
          .In(Tensor::FromValues<float>(Shape({2}), {1, 2}))
          .Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(1, 2, -1, 0));
}

TEST(QuantizedConcatV2Test, CopiesCodesOfOneRange) {
  const auto quantized = [](const std::vector<uint8_t>& values) {
    return Tensor::FromValues<uint8_t>(
               Shape({1, static_cast<int64_t>(values.size())}), values)
        .Reinterpreted(tensorflow::DT_QUINT8);
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> y,
                               Op("QuantizedConcatV2")
                                   .Type("T", tensorflow::DT_QUINT8)
                                   .Int("N", 2)
                                   .In(quantized({1, 2}))
                                   .In(quantized({250}))
                                   .In(Tensor::Scalar<int32_t>(-1))
                                   .In(Tensor::Scalar(-1.0f))
                                   .In(Tensor::Scalar(-1.0f))
                                   .In(Tensor::Scalar(2.0f))
                                   .In(Tensor::Scalar(2.0f))
                                   .RunAll(3));
  EXPECT_THAT(ValuesOf<uint8_t>(y[0]), ElementsAre(1, 2, 250));
  EXPECT_EQ(y[2].flat<float>()[0], 2.0f);
}

}  // namespace
}  // namespace optfarm::runtime
