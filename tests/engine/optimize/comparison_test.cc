#include "engine/optimize/layers/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/optimize/judging/gates.h"
#include "engine/optimize/layers/layers.h"
#include "tests/support/status_matchers.h"

namespace optfarm::optimize {
namespace {

using runtime::Shape;
using runtime::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensor Row(const std::vector<float>& values) {
  return Tensor::FromValues<float>(
      Shape({1, static_cast<int64_t>(values.size())}), values);
}

TEST(ComparisonTest, EqualTensorsHaveNoNoise) {
  TensorComparer comparer;
  OPTFARM_ASSERT_OK(comparer.Add(Row({1, 2, 3}), Row({1, 2, 3})));
  const v1::TensorComparison result = comparer.Result();
  EXPECT_EQ(result.max_abs_error(), 0);
  EXPECT_TRUE(std::isinf(result.snr_db()));
  EXPECT_EQ(result.top1_agreement(), 1);
}

TEST(ComparisonTest, AddsUpOverSamples) {
  TensorComparer comparer;
  OPTFARM_ASSERT_OK(comparer.Add(Row({3, 4}), Row({3, 4.5f})));
  OPTFARM_ASSERT_OK(comparer.Add(Row({3, 4}), Row({4, 3.5f})));
  const v1::TensorComparison result = comparer.Result();
  EXPECT_EQ(result.samples(), 2);
  EXPECT_DOUBLE_EQ(result.max_abs_error(), 1);
  EXPECT_DOUBLE_EQ(result.mean_abs_error(), 0.5);
  EXPECT_DOUBLE_EQ(result.max_abs_value(), 4);
  EXPECT_NEAR(result.snr_db(), 10 * std::log10(50 / 1.5), 1e-9);
  EXPECT_DOUBLE_EQ(result.top1_agreement(), 0.5);
}

TEST(ComparisonTest, NotFiniteAnyMoreIsCounted) {
  TensorComparer comparer;
  OPTFARM_ASSERT_OK(comparer.Add(Row({1, kNaN}), Row({kNaN, 2})));
  EXPECT_EQ(comparer.Result().non_finite(), 1);
  EXPECT_LT(comparer.Result().snr_db(), 0);
}

TEST(ComparisonTest, OtherShapesAreRefused) {
  TensorComparer comparer;
  EXPECT_FALSE(comparer.Add(Row({1, 2}), Row({1, 2, 3})).ok());
}

TEST(ComparisonTest, PicturesHaveNoClasses) {
  EXPECT_EQ(
      ClassesOf(*Tensor::Zeros(tensorflow::DT_FLOAT, Shape({1, 4, 4, 3}))), -1);
  EXPECT_EQ(
      ClassesOf(*Tensor::Zeros(tensorflow::DT_FLOAT, Shape({1, 1, 1, 3}))), 3);
  EXPECT_EQ(ClassesOf(Row({1})), -1);
}

TEST(ComparisonTest, LargestElementsComeFirstAndNanLast) {
  EXPECT_THAT(LargestElements({1.0f, 5.0f, kNaN, 5.0f}, 3),
              ElementsAre(1, 3, 0));
}

TEST(ComparisonTest, CountsTop1AndTop5) {
  AccuracyCounter counter;
  const Tensor scores = Row({0, 1, 2, 3, 4, 5, 6});
  counter.Add(scores, 6);
  counter.Add(scores, 2);
  counter.Add(scores, 0);
  counter.Add(scores, 6);
  EXPECT_DOUBLE_EQ(counter.Result().top1(), 50);
  EXPECT_DOUBLE_EQ(counter.Result().top5(), 75);
}

TEST(ComparisonTest, DecodesCodesOfModeMinFirst) {
  Tensor quantized = *Tensor::Allocate(tensorflow::DT_QUINT8, Shape({2}));
  quantized.data<uint8_t>()[0] = 0;
  quantized.data<uint8_t>()[1] = 255;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor values, Decode(quantized, 0, 6));
  EXPECT_THAT(values.flat<float>(), ElementsAre(0, ::testing::FloatEq(6)));
}

GateFacts Facts(double agreement, double snr) {
  GateFacts facts;
  v1::TensorComparison& output = facts.outputs.emplace_back();
  output.set_samples(10);
  output.set_top1_agreement(agreement);
  output.set_snr_db(snr);
  facts.bytes_before = 100;
  facts.bytes_after = 30;
  return facts;
}

v1::Accuracy Top1(double top1) {
  v1::Accuracy accuracy;
  accuracy.set_top1(top1);
  accuracy.set_samples(10);
  return accuracy;
}

TEST(GatesTest, OnlyBoundsThatAreSetAreChecked) {
  EXPECT_THAT(CheckGates(v1::Bounds(), Facts(0, 0)), SizeIs(0));
  EXPECT_TRUE(AllPassed(CheckGates(v1::Bounds(), Facts(0, 0))));
}

TEST(GatesTest, ABoundThatCannotBeCheckedFails) {
  v1::Bounds bounds;
  bounds.set_max_accuracy_drop(1);
  const auto gates = CheckGates(bounds, Facts(1, 50));
  ASSERT_THAT(gates, SizeIs(1));
  EXPECT_FALSE(gates[0].passed());
  EXPECT_THAT(gates[0].message(), HasSubstr("--labels"));
  EXPECT_FALSE(MayBeMended(gates));
}

TEST(GatesTest, LabelsDecideBetweenAccuracyAndAgreement) {
  v1::Bounds bounds;
  bounds.set_max_accuracy_drop(2);
  bounds.set_min_top1_agreement(0.9);
  bounds.set_labels_decide(true);
  const auto without = CheckGates(bounds, Facts(0.95, 20));
  ASSERT_THAT(without, SizeIs(1));
  EXPECT_EQ(without[0].name(), "min_top1_agreement");
  EXPECT_TRUE(without[0].passed());
  GateFacts facts = Facts(0.5, 20);
  facts.float_accuracy = Top1(50);
  facts.optimized_accuracy = Top1(47);
  const auto with = CheckGates(bounds, facts);
  ASSERT_THAT(with, SizeIs(1));
  EXPECT_EQ(with[0].name(), "max_accuracy_drop");
  EXPECT_FALSE(with[0].passed());
  EXPECT_DOUBLE_EQ(with[0].value(), 3);
  EXPECT_TRUE(MayBeMended(with));
}

TEST(GatesTest, ALossOnFewSamplesAsksForMore) {
  v1::Bounds bounds;
  bounds.set_max_accuracy_drop(2);
  GateFacts facts = Facts(0.95, 20);
  facts.float_accuracy = Top1(50);
  facts.optimized_accuracy = Top1(45);
  facts.optimized_accuracy->set_samples(20);
  EXPECT_THAT(CheckGates(bounds, facts)[0].message(),
              HasSubstr("One of the 20 samples it was measured on is 5"));
  facts.optimized_accuracy->set_samples(200);
  EXPECT_THAT(CheckGates(bounds, facts)[0].message(), HasSubstr("keep_float"));
}

TEST(GatesTest, OutputsWithoutClassesCannotAgree) {
  v1::Bounds bounds;
  bounds.set_min_top1_agreement(0.9);
  const auto gates = CheckGates(bounds, Facts(-1, 20));
  EXPECT_FALSE(gates[0].passed());
  EXPECT_THAT(gates[0].message(), HasSubstr("min_snr_db"));
}

TEST(GatesTest, ClassesDecideBetweenAgreementAndSnr) {
  v1::Bounds bounds;
  bounds.set_classes_decide(true);
  bounds.set_min_top1_agreement(0.9);
  bounds.set_min_snr_db(30);
  EXPECT_TRUE(AllPassed(CheckGates(bounds, Facts(0.95, 10))));
  EXPECT_TRUE(AllPassed(CheckGates(bounds, Facts(-1, 31))));
  EXPECT_THAT(CheckGates(bounds, Facts(-1, 29)), SizeIs(1));
  EXPECT_FALSE(AllPassed(CheckGates(bounds, Facts(-1, 29))));
  // One output of each kind: both count.
  GateFacts facts = Facts(0.95, 10);
  facts.outputs.push_back(Facts(-1, 40).outputs[0]);
  EXPECT_THAT(CheckGates(bounds, facts), SizeIs(2));
  EXPECT_TRUE(AllPassed(CheckGates(bounds, facts)));
}

TEST(GatesTest, WithoutLabelsAgreementLimitsWhatAccuracyCanLose) {
  v1::Bounds bounds;
  bounds.set_max_accuracy_drop(2);
  bounds.set_labels_decide(true);
  const v1::Bounds guide = BoundsWithoutLabels(bounds);
  EXPECT_FALSE(guide.has_max_accuracy_drop());
  EXPECT_FALSE(guide.labels_decide());
  EXPECT_DOUBLE_EQ(guide.min_top1_agreement(), 0.98);
  bounds.set_min_top1_agreement(0.9);
  EXPECT_DOUBLE_EQ(BoundsWithoutLabels(bounds).min_top1_agreement(), 0.9);
}

TEST(GatesTest, AimsOnlyRaiseBounds) {
  v1::Bounds bounds;
  bounds.set_min_top1_agreement(0.9);
  v1::KeepFloat aims;
  EXPECT_FALSE(WithAims(bounds, aims).has_min_snr_db());
  aims.set_aim_agreement(0.5);
  aims.set_aim_snr_db(-3);
  EXPECT_EQ(WithAims(bounds, aims).min_top1_agreement(), 0.9);
  EXPECT_EQ(WithAims(bounds, aims).min_snr_db(), -3);
  aims.set_aim_agreement(0.98);
  EXPECT_EQ(WithAims(bounds, aims).min_top1_agreement(), 0.98);
}

TEST(GatesTest, SizeAndSnrAreChecked) {
  v1::Bounds bounds;
  bounds.set_max_size_ratio(0.3);
  bounds.set_min_snr_db(30);
  EXPECT_TRUE(AllPassed(CheckGates(bounds, Facts(1, 31))));
  GateFacts worse = Facts(1, 29);
  worse.bytes_after = 40;
  const auto gates = CheckGates(bounds, worse);
  EXPECT_FALSE(gates[0].passed());
  EXPECT_FALSE(gates[1].passed());
  EXPECT_GT(Badness(gates, worse), Badness({}, worse));
}

TEST(ComparisonTest, ALostTensorIsAllNoise) {
  TensorComparer comparer;
  const Tensor tensor = Row({3, 0, 4});
  OPTFARM_ASSERT_OK(comparer.Add(tensor, tensor));
  OPTFARM_ASSERT_OK(comparer.AddLost(tensor));
  const v1::TensorComparison result = comparer.Result();
  EXPECT_EQ(result.samples(), 2);
  EXPECT_EQ(result.top1_agreement(), 0.5);
  EXPECT_NEAR(result.snr_db(), 3.01, 0.01);
  EXPECT_EQ(result.max_abs_error(), 4);
}

}  // namespace
}  // namespace optfarm::optimize
