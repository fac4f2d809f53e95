// Kernels that compute over whole tensors: matrix products, reductions,
// normalization, softmax, fake quantization, resizing, random numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(MatMulTest, AllTransposesGiveTheSameProduct) {
  const Tensor a = Scattered({5, 7}, 1);
  const Tensor b = Scattered({7, 3}, 2);
  const auto transposed = [](const Tensor& x) {
    return *Op("Transpose").In(x).In(Ints({1, 0})).Run();
  };
  std::vector<float> want;
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 7; ++k) {
        sum += double{a.data<float>()[i * 7 + k]} * b.data<float>()[k * 3 + j];
      }
      want.push_back(static_cast<float>(sum));
    }
  }
  for (bool flip_a : {false, true}) {
    for (bool flip_b : {false, true}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                                   Op("MatMul")
                                       .Bool("transpose_a", flip_a)
                                       .Bool("transpose_b", flip_b)
                                       .In(flip_a ? transposed(a) : a)
                                       .In(flip_b ? transposed(b) : b)
                                       .Run());
      EXPECT_THAT(ValuesOf<float>(out), Pointwise(FloatNear(1e-5f), want));
    }
  }
}

TEST(MatMulTest, SizesThatDoNotMatchAreShown) {
  EXPECT_THAT(Op("MatMul").In(Counted({2, 3})).In(Counted({2, 3})).Run(),
              StatusIs(kInvalid, HasSubstr("3 is not 2")));
}

TEST(MatMulTest, AnEmptySumIsZero) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("MatMul").In(Counted({2, 0})).In(Counted({0, 2})).Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(0, 0, 0, 0));
}

TEST(BatchMatMulTest, V2BroadcastsBatches) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("BatchMatMulV2")
                                   .In(Floats({2, 1, 1, 1}, {2, 3}))
                                   .In(Floats({3, 1, 1}, {1, 10, 100}))
                                   .Run());
  EXPECT_EQ(out.shape(), Shape({2, 3, 1, 1}));
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(2, 20, 200, 3, 30, 300));
  const auto third = [](DataType type) {
    return Op("BatchMatMulV3")
        .Type("Ta", type)
        .Type("Tb", tensorflow::DT_FLOAT)
        .Type("Tout", tensorflow::DT_FLOAT)
        .In(Floats({2, 1, 1}, {2, 3}))
        .In(Floats({1, 1, 1}, {10}))
        .Run();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor same, third(tensorflow::DT_FLOAT));
  EXPECT_THAT(ValuesOf<float>(same), ElementsAre(20, 30));
  EXPECT_THAT(third(tensorflow::DT_INT8),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'Tb'")));
  EXPECT_THAT(
      Op("BatchMatMul").In(Counted({2, 1, 1})).In(Counted({3, 1, 1})).Run(),
      StatusIs(kInvalid, HasSubstr("do not match")));
}

// [1 2 3; 4 5 6] times [1 2; 3 4; 5 6], stored in every way.
TEST(MatMulTest, IntegersAreMultipliedExactlyAndWrapAround) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Tensor out,
          Op("MatMul")
              .Type("T", tensorflow::DT_INT32)
              .Bool("transpose_a", transpose_a)
              .Bool("transpose_b", transpose_b)
              .In(transpose_a ? Ints({3, 2}, {1, 4, 2, 5, 3, 6})
                              : Ints({2, 3}, {1, 2, 3, 4, 5, 6}))
              .In(transpose_b ? Ints({2, 3}, {1, 3, 5, 2, 4, 6})
                              : Ints({3, 2}, {1, 2, 3, 4, 5, 6}))
              .Run());
      EXPECT_THAT(ValuesOf<int32_t>(out), ElementsAre(22, 28, 49, 64));
    }
  }
  const Tensor large = Tensor::FromValues<uint16_t>({1, 1}, {65535});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("BatchMatMulV2")
                                   .Type("T", tensorflow::DT_UINT16)
                                   .In(large)
                                   .In(large)
                                   .Run());
  EXPECT_THAT(ValuesOf<uint16_t>(out), ElementsAre(1));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wrapped,
                               Op("MatMul")
                                   .Type("T", tensorflow::DT_INT32)
                                   .In(Ints({1, 2}, {1 << 30, 1 << 30}))
                                   .In(Ints({2, 1}, {2, 3}))
                                   .Run());
  EXPECT_THAT(ValuesOf<int32_t>(wrapped), ElementsAre(1 << 30));
}

std::vector<float> Reduced(const char* op, const std::vector<int32_t>& axes) {
  const auto out = Op(op).In(Counted({2, 3, 2})).In(Ints(axes)).Run();
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? ValuesOf<float>(*out) : std::vector<float>();
}

TEST(ReductionTest, AnyAxes) {
  EXPECT_THAT(Reduced("Sum", {0}), ElementsAre(6, 8, 10, 12, 14, 16));
  EXPECT_THAT(Reduced("Sum", {1}), ElementsAre(6, 9, 24, 27));
  EXPECT_THAT(Reduced("Sum", {0, 2}), ElementsAre(14, 22, 30));
  EXPECT_THAT(Reduced("Sum", {-1, 1, 0}), ElementsAre(66));
  EXPECT_THAT(Reduced("Mean", {1, 2}), ElementsAre(2.5f, 8.5f));
  EXPECT_THAT(Reduced("Max", {0, 1}), ElementsAre(10, 11));
  EXPECT_THAT(Reduced("Min", {2}), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(Reduced("Prod", {0, 1, 2}), ElementsAre(0));
  EXPECT_THAT(Reduced("Sum", {}),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(ReductionTest, KeepsDimensionsWhenAsked) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Op("Mean")
                                                     .Bool("keep_dims", true)
                                                     .In(Counted({2, 3, 2}))
                                                     .In(Ints({1}))
                                                     .Run());
  EXPECT_EQ(out.shape(), Shape({2, 1, 2}));
}

TEST(ReductionTest, MeanOfIntegersIsCut) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("Mean").In(Ints({2, 3})).In(Ints({0})).Run());
  EXPECT_THAT(ValuesOf<int32_t>(out), ElementsAre(2));
}

TEST(ReductionTest, OfNothing) {
  const auto reduce = [](const char* op) {
    return ValuesOf<float>(*Op(op).In(Counted({0})).In(Ints({0})).Run())[0];
  };
  EXPECT_EQ(reduce("Sum"), 0);
  EXPECT_EQ(reduce("Prod"), 1);
  EXPECT_EQ(reduce("Max"), -INFINITY);
  EXPECT_TRUE(std::isnan(reduce("Mean")));
  EXPECT_THAT(Op("Mean").In(Ints(std::vector<int32_t>())).In(Ints({0})).Run(),
              StatusIs(kInvalid, HasSubstr("mean of no integers")));
}

TEST(ReductionTest, AxisOutOfRange) {
  EXPECT_THAT(Op("Sum").In(Counted({2})).In(Ints({1})).Run(),
              StatusIs(kInvalid, HasSubstr("axis 1")));
}

TEST(ReductionTest, LongSumsKeepTheirPrecision) {
  const Tensor ones = *Op("Fill").In(Ints({1 << 22})).In(Float(0.1f)).Run();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("Mean").In(ones).In(Ints({0})).Run());
  // Off by 4.1e-4, as eight partial sums are; one sum would be off by 2e-2.
  EXPECT_NEAR(*out.data<float>(), 0.1f, 4.2e-4f);
}

TEST(ArgMaxTest, FirstOfEqualsWins) {
  const Tensor x = Floats({2, 3}, {1, 5, 5, 7, 7, 0});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor rows,
                               Op("ArgMax").In(x).In(Int(1)).Run());
  EXPECT_THAT(ValuesOf<int64_t>(rows), ElementsAre(1, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor columns,
                               Op("ArgMin")
                                   .Type("output_type", tensorflow::DT_INT32)
                                   .In(x)
                                   .In(Int(0))
                                   .Run());
  EXPECT_THAT(ValuesOf<int32_t>(columns), ElementsAre(0, 0, 1));
  EXPECT_THAT(Op("ArgMax").In(Counted({2, 0})).In(Int(1)).Run(),
              StatusIs(kInvalid, HasSubstr("is empty")));
}

TEST(TopKTest, SortsAndBreaksTiesByIndex) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      Op("TopKV2").In(Floats({4}, {3, 9, 3, 1})).In(Int(3)).RunAll(2));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(9, 3, 3));
  EXPECT_THAT(ValuesOf<int32_t>(out[1]), ElementsAre(1, 0, 2));
}

TEST(SoftmaxTest, LargeLogitsDoNotOverflow) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Softmax").In(Floats({2, 2}, {1000, 1000, 0, std::log(3.0f)})).Run());
  EXPECT_THAT(ValuesOf<float>(out),
              Pointwise(FloatNear(1e-6f), {0.5f, 0.5f, 0.25f, 0.75f}));
}

TEST(BiasAddTest, BothFormats) {
  const Tensor bias = Floats({2}, {10, 20});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor nhwc,
      Op("BiasAdd").In(Counted({1, 1, 2, 2})).In(bias).Run());
  EXPECT_THAT(ValuesOf<float>(nhwc), ElementsAre(10, 21, 12, 23));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor nchw,
                               Op("BiasAdd")
                                   .Text("data_format", "NCHW")
                                   .In(Counted({1, 2, 1, 2}))
                                   .In(bias)
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(nchw), ElementsAre(10, 11, 22, 23));
  EXPECT_THAT(Op("BiasAdd").In(Counted({2, 3})).In(bias).Run(),
              StatusIs(kInvalid, HasSubstr("a bias of shape [2]")));
}

Op BatchNorm(bool is_training, const Tensor& x, const std::vector<float>& mean,
             const std::vector<float>& variance) {
  const auto vector = [](const std::vector<float>& values) {
    return Floats({static_cast<int64_t>(values.size())}, values);
  };
  return Op("FusedBatchNorm")
      .Bool("is_training", is_training)
      .Float("epsilon", 0.0f)
      .In(x)
      .In(Floats({1}, {2}))
      .In(Floats({1}, {1}))
      .In(vector(mean))
      .In(vector(variance));
}

TEST(FusedBatchNormTest, InferenceUsesTheGivenStatistics) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      BatchNorm(false, Floats({1, 1, 2, 1}, {3, 7}), {5}, {4}).RunAll(5));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(-1, 3));
  for (int i : {1, 3}) EXPECT_THAT(ValuesOf<float>(out[i]), ElementsAre(5));
  for (int i : {2, 4}) EXPECT_THAT(ValuesOf<float>(out[i]), ElementsAre(4));
}

TEST(FusedBatchNormTest, TrainingMeasuresTheBatch) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      BatchNorm(true, Floats({1, 1, 2, 1}, {3, 7}), {}, {}).RunAll(5));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(-1, 3));
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(5));
  EXPECT_THAT(ValuesOf<float>(out[2]), ElementsAre(8));  // unbiased
  EXPECT_THAT(ValuesOf<float>(out[4]), ElementsAre(4));
}

TEST(FusedBatchNormTest, ChannelsMustAgree) {
  EXPECT_THAT(
      BatchNorm(false, Floats({1, 1, 1, 2}, {3, 7}), {5}, {4}).RunAll(5),
      StatusIs(kInvalid, HasSubstr("'scale' must be of shape [2]")));
}

TEST(LrnTest, DividesByTheNeighbourhood) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("LRN")
                                   .Int("depth_radius", 1)
                                   .Float("bias", 1)
                                   .Float("alpha", 1)
                                   .Float("beta", 1)
                                   .In(Floats({1, 1, 1, 3}, {1, 2, 3}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out),
              Pointwise(FloatNear(1e-6f), {1.0f / 6, 2.0f / 15, 3.0f / 14}));
}

TEST(FakeQuantTest, NudgesZeroOntoACode) {
  // The step is 1.02 / 255 = 0.004 and zero lies at quantized value 25.25,
  // which is rounded to 25: the range becomes [-0.1, 0.92].
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("FakeQuantWithMinMaxArgs")
                                   .Float("min", -0.101f)
                                   .Float("max", 0.919f)
                                   .In(Floats({4}, {-1, 0, 0.5011f, 2}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out),
              Pointwise(FloatNear(1e-6f), {-0.1f, 0.0f, 0.5f, 0.92f}));
  EXPECT_EQ(out.data<float>()[1], 0.0f);
}

TEST(FakeQuantTest, NarrowRangeLeavesOutTheLowestCode) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("FakeQuantWithMinMaxVars")
                                   .Int("num_bits", 2)
                                   .Bool("narrow_range", true)
                                   .In(Floats({4}, {-9, -0.2f, 0.6f, 9}))
                                   .In(Float(-1))
                                   .In(Float(1))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(-1, 0, 1, 1));
}

TEST(FakeQuantTest, EachChannelHasItsRange) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("FakeQuantWithMinMaxVarsPerChannel")
                                   .In(Floats({1, 2}, {9, 9}))
                                   .In(Floats({2}, {0, 0}))
                                   .In(Floats({2}, {2.55f, 5.1f}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), Pointwise(FloatNear(1e-5f), {2.55f, 5.1f}));
}

TEST(FakeQuantTest, RangeMustBeOne) {
  EXPECT_THAT(Op("FakeQuantWithMinMaxVars")
                  .In(Float(0))
                  .In(Float(1))
                  .In(Float(-1))
                  .Run(),
              StatusIs(kInvalid, HasSubstr("min (1) must be below max (-1)")));
}

TEST(ResizeTest, BilinearAndNearest) {
  const Tensor x = Floats({1, 1, 2, 1}, {0, 4});
  const auto resized = [&](const char* op, const char* flag) {
    Op run(op);
    if (*flag != '\0') run.Bool(flag, true);
    return ValuesOf<float>(*run.In(x).In(Ints({1, 4})).Run());
  };
  EXPECT_THAT(resized("ResizeBilinear", ""), ElementsAre(0, 2, 4, 4));
  EXPECT_THAT(resized("ResizeBilinear", "align_corners"),
              Pointwise(FloatNear(1e-5f), {0.0f, 4.0f / 3, 8.0f / 3, 4.0f}));
  EXPECT_THAT(resized("ResizeBilinear", "half_pixel_centers").size(), 4u);
  EXPECT_THAT(resized("ResizeNearestNeighbor", ""), ElementsAre(0, 0, 4, 4));
  EXPECT_THAT(Op("ResizeBilinear").In(x).In(Ints({0, 4})).Run(),
              StatusIs(kInvalid, HasSubstr("two values >= 1")));
}

// Shares of 0, 1/4, 1/2, 3/4 become 0, 0, 1/2, 1.
TEST(ResizeTest, WeightsInFixedPoint) {
  const auto resized = [](int64_t bits) {
    return Op("ResizeBilinear")
        .Int("weight_bits", bits)
        .In(Floats({1, 1, 2, 1}, {0, 8}))
        .In(Ints({1, 8}))
        .Run();
  };
  EXPECT_THAT(ValuesOf<float>(*resized(1)),
              ElementsAre(0, 0, 4, 8, 8, 8, 8, 8));
  EXPECT_THAT(resized(40),
              StatusIs(kInvalid, HasSubstr("must be from 0 to 16, not 40")));
}

TEST(RandomTest, DropoutKeepsEverythingWithProbabilityOne) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor random,
                               Op("RandomUniform").In(Ints({5000})).Run());
  const std::vector<float> values = ValuesOf<float>(random);
  for (float value : values) {
    EXPECT_GE(value, 0.0f);
    EXPECT_EQ(std::floor(value + 1.0f), 1.0f);
  }
}

TEST(RandomTest, SeedsRepeatAndRunsDiffer) {
  const auto draw = [](const char* op, int64_t seed) {
    return ValuesOf<float>(
        *Op(op).Int("seed", seed).Int("seed2", 7).In(Ints({1000})).Run());
  };
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    EXPECT_EQ(draw(op, 1), draw(op, 1)) << op;
    EXPECT_NE(draw(op, 1), draw(op, 2)) << op;
  }
  const std::vector<float> cut = draw("TruncatedNormal", 3);
  EXPECT_LT(*std::max_element(cut.begin(), cut.end()), 2.0f);
  EXPECT_GT(*std::min_element(cut.begin(), cut.end()), -2.0f);
}

}  // namespace
}  // namespace optfarm::runtime
