// Ops that ONNX and TensorFlow Lite have and TensorFlow has not: activations,
// normalization, attention, losses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Tensor Longs(const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(values.size())},
                                     values);
}
Tensor NoFloats() { return Floats({0}, {}); }

std::vector<float> Values(const Op& op) {
  const auto out = op.Run();
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? ValuesOf<float>(*out) : std::vector<float>();
}

std::vector<float> Applied(Op op, const std::vector<float>& values) {
  return Values(op.In(Floats({static_cast<int64_t>(values.size())}, values)));
}

TEST(OtherActivationsTest, HardSigmoidIsALineBetweenZeroAndOne) {
  EXPECT_THAT(Applied(Op("HardSigmoid"), {-4, -1, 0, 1, 4}),
              Pointwise(FloatNear(1e-6f), {0.0f, 0.3f, 0.5f, 0.7f, 1.0f}));
}

TEST(OtherActivationsTest, GeluIsTheGaussianShareOfTheInput) {
  std::vector<float> x;
  std::vector<float> exact;
  std::vector<float> by_tanh;
  for (int i = -60; i <= 60; ++i) {
    const double v = i / 10.0;
    x.push_back(static_cast<float>(v));
    exact.push_back(
        static_cast<float>(v * 0.5 * (1.0 + std::erf(v / std::sqrt(2.0)))));
    by_tanh.push_back(static_cast<float>(
        v * 0.5 *
        (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v)))));
  }
  EXPECT_THAT(Applied(Op("Gelu"), x), Pointwise(FloatNear(2e-6f), exact));
  EXPECT_THAT(Applied(Op("Gelu").Bool("approximate", true), x),
              Pointwise(FloatNear(2e-6f), by_tanh));
}

TEST(OtherActivationsTest, SwishMishAndCeluFollowTheirFormulas) {
  const std::vector<float> x = {-30, -2, -0.5f, 0, 1, 3, 30};
  std::vector<float> swish;
  std::vector<float> mish;
  std::vector<float> celu;
  for (const float f : x) {
    const double v = f;
    swish.push_back(static_cast<float>(v / (1.0 + std::exp(-1.5 * v))));
    mish.push_back(static_cast<float>(v * std::tanh(std::log1p(std::exp(v)))));
    celu.push_back(static_cast<float>(v > 0 ? v : 2.0 * std::expm1(v / 2.0)));
  }
  EXPECT_THAT(Applied(Op("Swish").Float("alpha", 1.5f), x),
              Pointwise(FloatNear(2e-6f), swish));
  EXPECT_THAT(Applied(Op("Mish"), x), Pointwise(FloatNear(2e-6f), mish));
  EXPECT_THAT(Applied(Op("Celu").Float("alpha", 2), x),
              Pointwise(FloatNear(2e-6f), celu));
}

TEST(OtherActivationsTest, ThresholdsBendWhereTheAttributesSay) {
  EXPECT_THAT(Applied(Op("ThresholdedRelu").Float("alpha", 2), {-3, 2, 2.5f}),
              ElementsAre(0, 0, 2.5f));
  EXPECT_THAT(Applied(Op("Shrink").Float("lambd", 1).Float("bias", 0.5f),
                      {-2, -1, 0.5f, 1, 3}),
              ElementsAre(-1.5f, 0, 0, 0, 2.5f));
  EXPECT_THAT(
      Applied(Op("ScaledElu").Float("alpha", 2).Float("gamma", 3), {-1, 0, 2}),
      Pointwise(FloatNear(1e-5f), {6.0f * std::expm1(-1.0f), 0.0f, 6.0f}));
}

TEST(OtherActivationsTest, PReluBroadcastsItsSlopes) {
  EXPECT_THAT(Values(Op("PRelu")
                         .In(Floats({2, 2}, {-1, -2, 3, -4}))
                         .In(Floats({2}, {0.5f, 10}))),
              ElementsAre(-0.5f, -20, 3, -40));
}

TEST(OtherActivationsTest, PReluOfLongRowsIsThatOfEachElement) {
  const int64_t rows = 3, channels = 21;
  std::vector<float> x, slopes, by_channel, by_one;
  for (int64_t c = 0; c < channels; ++c) slopes.push_back(c * 0.25f - 1);
  for (int64_t i = 0; i < rows * channels; ++i) {
    x.push_back(static_cast<float>(i * 37 % 64 - 32));
    by_channel.push_back(x[i] < 0 ? x[i] * slopes[i % channels] : x[i]);
    by_one.push_back(x[i] < 0 ? x[i] * 0.5f : x[i]);
  }
  const Tensor in = Floats({rows, channels}, x);
  EXPECT_EQ(Values(Op("PRelu").In(in).In(Floats({channels}, slopes))),
            by_channel);
  EXPECT_EQ(Values(Op("PRelu").In(in).In(Floats({1}, {0.5f}))), by_one);
}

TEST(LayerNormTest, RowsGetMeanZeroAndDeviationOne) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out,
                               Op("LayerNorm")
                                   .Float("epsilon", 0)
                                   .In(Floats({2, 4}, {1, 3, 5, 7, 2, 2, 4, 4}))
                                   .In(Floats({4}, {1, 1, 1, 2}))
                                   .In(Floats({1}, {10}))
                                   .RunAll(3));
  const float d = std::sqrt(5.0f);
  EXPECT_THAT(
      ValuesOf<float>(out[0]),
      Pointwise(FloatNear(1e-5f), {10 - 3 / d, 10 - 1 / d, 10 + 1 / d,
                                   10 + 6 / d, 9.0f, 9.0f, 11.0f, 12.0f}));
  EXPECT_EQ(out[1].shape(), Shape({2, 1}));
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(4, 3));
  EXPECT_THAT(ValuesOf<float>(out[2]),
              Pointwise(FloatNear(1e-6f), {1 / d, 1.0f}));
}

TEST(LayerNormTest, LongRowsKeepTheirPrecision) {
  std::vector<float> x(5000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1000.0f + (i % 2 == 0 ? 1 : -1);
  const std::vector<float> y = Values(Op("LayerNorm")
                                          .In(Floats({1, 5000}, x))
                                          .In(Floats({1}, {1}))
                                          .In(Floats({1}, {0})));
  EXPECT_NEAR(y[0], 1.0f, 1e-4f);
  EXPECT_NEAR(y[4999], -1.0f, 1e-4f);
}

TEST(LayerNormTest, RefusesAScaleOfAnotherSize) {
  EXPECT_THAT(Op("LayerNorm")
                  .In(Floats({2, 4}, std::vector<float>(8)))
                  .In(Floats({3}, {1, 1, 1}))
                  .In(Floats({1}, {0}))
                  .Run()
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(RmsNormTest, DividesByTheRootMeanSquare) {
  EXPECT_THAT(Values(Op("RmsNorm")
                         .Float("epsilon", 0)
                         .In(Floats({2, 2}, {3, 3, 1, 7}))
                         .In(Floats({2}, {1, 2}))),
              Pointwise(FloatNear(1e-6f), {1.0f, 2.0f, 0.2f, 2.8f}));
}

TEST(GroupNormTest, ChannelsFirstAndLastAgree) {
  // Four channels of two pixels in two groups.
  const std::vector<float> first = {1, 3, 5, 7, 10, 10, 20, 20};
  const std::vector<float> last = {1, 5, 10, 20, 3, 7, 10, 20};
  const Tensor scale = Floats({4}, {1, 1, 2, 2});
  const Tensor bias = Floats({4}, {0, 0, 0, 1});
  const float d = std::sqrt(5.0f);
  EXPECT_THAT(Values(Op("GroupNorm")
                         .Int("groups", 2)
                         .Float("epsilon", 0)
                         .Text("data_format", "NCHW")
                         .In(Floats({1, 4, 2}, first))
                         .In(scale)
                         .In(bias)),
              Pointwise(FloatNear(1e-5f), {-3 / d, -1 / d, 1 / d, 3 / d, -2.0f,
                                           -2.0f, 3.0f, 3.0f}));
  EXPECT_THAT(Values(Op("GroupNorm")
                         .Int("groups", 2)
                         .Float("epsilon", 0)
                         .In(Floats({1, 2, 4}, last))
                         .In(scale)
                         .In(bias)),
              Pointwise(FloatNear(1e-5f), {-3 / d, 1 / d, -2.0f, 3.0f, -1 / d,
                                           3 / d, -2.0f, 3.0f}));
}

TEST(InstanceNormTest, EachChannelIsNormalizedByItself) {
  EXPECT_THAT(Values(Op("InstanceNorm")
                         .Float("epsilon", 0)
                         .Text("data_format", "NCHW")
                         .In(Floats({1, 2, 2}, {1, 3, 10, 30}))
                         .In(Floats({2}, {1, 5}))
                         .In(Floats({2}, {0, 1}))),
              Pointwise(FloatNear(1e-5f), {-1.0f, 1.0f, -4.0f, 6.0f}));
}

Op LossOf(const Tensor& weight) {
  return Op("NllLoss")
      .In(Floats({2, 3}, {-1, -2, -3, -4, -5, -6}))
      .In(Longs({2, 0}))
      .In(weight);
}

TEST(NllLossTest, ReducesWithTheWeightsOfTheClasses) {
  EXPECT_THAT(Values(LossOf(NoFloats())), ElementsAre(3.5f));
  EXPECT_THAT(Values(LossOf(NoFloats()).Text("reduction", "none")),
              ElementsAre(3, 4));
  EXPECT_THAT(Values(LossOf(Floats({3}, {1, 1, 3}))),
              ElementsAre((9.0f + 4.0f) / 4.0f));
  EXPECT_THAT(Values(LossOf(NoFloats())
                         .Bool("ignores_index", true)
                         .Int("ignore_index", 2)),
              ElementsAre(4));
}

// One head of size 1: scores are products.
Op SmallAttention() {
  return Op("Attention")
      .Float("scale", 1)
      .In(Floats({1, 1, 2, 1}, {0, 1}))
      .In(Floats({1, 1, 2, 1}, {0, std::log(3.0f)}))
      .In(Floats({1, 1, 2, 1}, {10, 20}));
}

TEST(AttentionTest, WeighsValuesBySoftmaxOfScores) {
  EXPECT_THAT(Values(SmallAttention()
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(Longs({}))),
              Pointwise(FloatNear(1e-5f), {15.0f, 17.5f}));
}

TEST(AttentionTest, CausalRowsDoNotLookAhead) {
  EXPECT_THAT(Values(SmallAttention()
                         .Bool("is_causal", true)
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(Longs({}))),
              Pointwise(FloatNear(1e-5f), {10.0f, 17.5f}));
}

TEST(AttentionTest, MasksAndLengthsHideKeys) {
  const float hidden = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(Values(SmallAttention()
                         .In(Floats({2, 2}, {hidden, 0, 0, hidden}))
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(Longs({}))),
              ElementsAre(20, 10));
  EXPECT_THAT(Values(SmallAttention()
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(Longs({1}))),
              ElementsAre(10, 10));
}

TEST(AttentionTest, CachedKeysComeFirst) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out,
                               SmallAttention()
                                   .Bool("is_causal", true)
                                   .Bool("emits_present", true)
                                   .In(NoFloats())
                                   .In(Floats({1, 1, 1, 1}, {0}))
                                   .In(Floats({1, 1, 1, 1}, {40}))
                                   .In(Longs({}))
                                   .RunAll(4));
  EXPECT_THAT(ValuesOf<float>(out[0]),
              Pointwise(FloatNear(1e-4f), {25.0f, (40 + 10 + 3 * 20) / 5.0f}));
  EXPECT_THAT(ValuesOf<float>(out[2]), ElementsAre(40, 10, 20));
}

TEST(AttentionTest, HeadsOfFlatInputsShareKeys) {
  // Two heads of queries, one of keys; softmax over one key is 1.
  EXPECT_THAT(Values(Op("Attention")
                         .Int("query_heads", 2)
                         .Int("key_heads", 1)
                         .In(Floats({1, 1, 4}, {1, 2, 3, 4}))
                         .In(Floats({1, 1, 2}, {1, 1}))
                         .In(Floats({1, 1, 2}, {5, 6}))
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(NoFloats())
                         .In(Longs({}))),
              ElementsAre(5, 6, 5, 6));
}

TEST(RotaryEmbeddingTest, TurnsPairsByTheAngleOfTheirPosition) {
  // A quarter turn at position 1.
  const Tensor cos = Floats({2, 1}, {1, 0});
  const Tensor sin = Floats({2, 1}, {0, 1});
  const Tensor positions = Tensor::FromValues<int64_t>({1, 2}, {0, 1});
  EXPECT_THAT(Values(Op("RotaryEmbedding")
                         .Int("turned", 2)
                         .In(Floats({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}))
                         .In(cos)
                         .In(sin)
                         .In(positions)),
              ElementsAre(1, 2, 3, -5, 4, 6));
  EXPECT_THAT(
      Op("RotaryEmbedding")
          .Int("turned", 2)
          .In(Floats({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}))
          .In(cos)
          .In(sin)
          .In(Tensor::FromValues<int64_t>({1, 2}, {0, 2}))
          .Run()
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("position 2")));
}

}  // namespace
}  // namespace optfarm::runtime
