// Which verdicts a job has, in which order, and from which numbers.

#include "engine/verdict/job_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace optfarm::verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobVerdictsTest : public ::testing::Test {
 protected:
  JobVerdictsTest() {
    job_.set_state(v1::SUCCEEDED);
    v1::Report& report = *job_.mutable_report();
    report.set_recipe_name("int8");
    report.mutable_size_before()->set_file_bytes(2'000'000);
    report.mutable_size_after()->set_file_bytes(500'000);
    report.mutable_float_accuracy()->set_top1(47.7);
    report.mutable_optimized_accuracy()->set_top1(47.4);
    report.add_outputs_compared()->set_top1_agreement(0.93);
    report.add_outputs_compared()->set_top1_agreement(-1);
    report.add_outputs_compared()->set_top1_agreement(0.91);
  }

  void Measure(const std::string& variant, const std::string& device,
               int threads, double median_us) {
    v1::Measurement& m = *job_.add_measurements();
    m.set_variant(variant);
    m.set_device(device);
    m.set_threads(threads);
    m.set_median_us(median_us);
    m.set_mad_us(median_us / 100);
  }

  void AddGate(const std::string& name, bool passed, double value,
               double bound) {
    v1::GateResult& gate = *job_.add_gates();
    gate.set_name(name);
    gate.set_passed(passed);
    gate.set_value(value);
    gate.set_bound(bound);
  }

  // "int8 pi4 1: yes: ...", one a verdict.
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (const v1::ShippingVerdict& verdict : DecideVerdicts(job_)) {
      texts.push_back(absl::StrCat(verdict.variant(), " ", verdict.device(),
                                   " ", verdict.threads(), ": ",
                                   verdict.text()));
    }
    return texts;
  }

  v1::Job job_;
};

TEST_F(JobVerdictsTest, EnginesHaveRowsThatAnswerNothing) {
  Measure("float", "pi4", 1, 4000);
  Measure("int8", "pi4", 1, 2000);
  v1::EngineFailure& failure =
      *job_.mutable_measurements(1)->add_engine_failures();
  failure.set_engine("tflite");
  failure.set_reason("tflite: it was killed by signal 11");
  Measure("int8@onnxruntime", "pi4", 1, 3000);
  job_.mutable_measurements(2)->mutable_numeric_check()->set_passed(true);
  EXPECT_THAT(
      Texts(),
      ElementsAre(
          HasSubstr("float pi4 1"), HasSubstr("int8 pi4 1"),
          "int8@tflite pi4 1: not measured: tflite: it was killed by signal 11",
          "int8@onnxruntime pi4 1: 1.50 times the time of Optfarm's runtime, "
          "the same answers"));
  EXPECT_EQ(DecideVerdicts(job_)[2].answer(),
            v1::ShippingVerdict::ANSWER_UNSPECIFIED);
}

TEST_F(JobVerdictsTest, OneForEachVariantDeviceAndThreadCount) {
  Measure("int8", "pi5", 4, 1000);
  Measure("int8", "pi4", 1, 2000);
  Measure("float", "pi5", 4, 900);
  Measure("float", "pi4", 1, 4000);
  Measure("float", "pi5", 1, 3000);
  EXPECT_THAT(
      Texts(),
      ElementsAre("float pi5 1: baseline", "float pi5 4: baseline",
                  "int8 pi5 4: no: 1.11x slower than float here",
                  "float pi4 1: baseline",
                  "int8 pi4 1: yes: 0.25x size, 2.00x faster, -0.3 points"));
}

TEST_F(JobVerdictsTest, VariantsThatNobodyMeasuredHaveNoDevice) {
  EXPECT_THAT(Texts(), ElementsAre("float  0: baseline",
                                   "int8  0: unclear: speed not measured; "
                                   "0.25x size, -0.3 points"));
  job_.clear_report();
  EXPECT_THAT(Texts(), IsEmpty());
}

TEST_F(JobVerdictsTest, CarriesTheNumbersItWasDecidedFrom) {
  Measure("float", "pi4", 1, 4000);
  Measure("int8", "pi4", 1, 2000);
  job_.mutable_measurements(1)->set_file_size_bytes(400'000);
  const std::vector<v1::ShippingVerdict> verdicts = DecideVerdicts(job_);
  ASSERT_EQ(verdicts.size(), 2u);
  const v1::ShippingVerdict& original = verdicts[0];
  EXPECT_EQ(original.answer(), v1::ShippingVerdict::BASELINE);
  EXPECT_EQ(original.file_size_bytes(), 2'000'000);
  EXPECT_DOUBLE_EQ(original.speedup(), 1);
  EXPECT_FALSE(original.has_top1_change());
  EXPECT_FALSE(original.has_agreement());
  const v1::ShippingVerdict& result = verdicts[1];
  EXPECT_EQ(result.answer(), v1::ShippingVerdict::YES);
  EXPECT_EQ(result.file_size_bytes(), 400'000);
  EXPECT_DOUBLE_EQ(result.size_ratio(), 0.2);
  EXPECT_DOUBLE_EQ(result.speedup(), 2);
  EXPECT_NEAR(result.top1_change(), -0.3, 1e-9);
  // The worst of the outputs that have classes.
  EXPECT_DOUBLE_EQ(result.agreement(), 0.91);
}

TEST_F(JobVerdictsTest, GateOfOneThreadCountConcernsThatRowOnly) {
  for (const int threads : {1, 4}) {
    Measure("float", "pi4", threads, 4000);
    Measure("int8", "pi4", threads, 2000);
  }
  Measure("float", "pi5", 4, 4000);
  Measure("int8", "pi5", 4, 2000);
  AddGate("min_speedup[pi4,4]", false, 0.63, 1.5);
  EXPECT_THAT(
      Texts(),
      ElementsAre(HasSubstr("baseline"), HasSubstr("int8 pi4 1: yes"),
                  HasSubstr("baseline"),
                  "int8 pi4 4: no: only 0.63x the speed of float (bound 1.50x)",
                  HasSubstr("baseline"), HasSubstr("int8 pi5 4: yes")));
}

TEST_F(JobVerdictsTest, FailedGatesAreNamedInTheJobsOrder) {
  Measure("float", "pi4", 1, 4000);
  Measure("int8", "pi4", 1, 2000);
  AddGate("min_speedup[pi4,1]", false, 1.2, 1.5);
  AddGate("max_size_ratio", false, 0.45, 0.3);
  EXPECT_THAT(Texts()[1],
              HasSubstr("no: only 1.20x the speed of float (bound 1.50x); file "
                        "is 0.45x the float size (bound 0.30x)"));
}

TEST_F(JobVerdictsTest, AccuracyBoundThatHeldAllowsTheLoss) {
  job_.mutable_report()->mutable_optimized_accuracy()->set_top1(40);
  Measure("float", "pi4", 1, 4000);
  Measure("int8", "pi4", 1, 2000);
  EXPECT_THAT(Texts()[1], HasSubstr("no: loses 7.7 points of top-1"));
  AddGate("max_accuracy_drop", true, 7.7, 10);
  EXPECT_THAT(Texts()[1], HasSubstr("yes: "));
}

TEST_F(JobVerdictsTest, NoiseOfTheOriginalCountsToo) {
  Measure("float", "pi4", 1, 4000);
  Measure("int8", "pi4", 1, 2000);
  job_.mutable_measurements(0)->set_noisy(true);
  EXPECT_THAT(Texts()[1], HasSubstr("unclear: noisy (float: not steady)"));
  job_.mutable_measurements(0)->add_noise_reasons("spread 14 % of the median");
  EXPECT_THAT(Texts()[1],
              HasSubstr("unclear: noisy (float: spread 14 % of the median)"));
}

TEST_F(JobVerdictsTest, AddedOnceWhenTheJobHasEnded) {
  job_.set_state(v1::RUNNING);
  AddVerdicts(job_);
  EXPECT_THAT(job_.verdicts(), IsEmpty());
  job_.set_state(v1::FAILED);
  AddVerdicts(job_);
  ASSERT_EQ(job_.verdicts_size(), 2);
  job_.mutable_verdicts(1)->set_text("the server's own");
  AddVerdicts(job_);
  ASSERT_EQ(job_.verdicts_size(), 2);
  EXPECT_EQ(job_.verdicts(1).text(), "the server's own");
}

}  // namespace
}  // namespace optfarm::verdict
