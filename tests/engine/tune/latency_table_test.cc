// What steps took on a machine, and what others will take.

#include "engine/tune/latency_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/tune/layer_costs.h"

namespace optfarm::tune {
namespace {

v1::StepTime Step(const std::string& op, double multiply_adds, int64_t bytes,
                  double us) {
  v1::StepTime step;
  step.mutable_work()->set_key(
      absl::StrCat(op, " ", multiply_adds, " ", bytes));
  step.mutable_work()->set_op(op);
  step.mutable_work()->set_multiply_adds(multiply_adds);
  step.mutable_work()->set_input_bytes(bytes);
  step.mutable_work()->set_output_bytes(bytes);
  step.set_median_us(us);
  return step;
}

LatencyTable::Prediction Predict(const LatencyTable& table,
                                 const v1::StepTime& step) {
  v1::Report report;
  *report.add_steps() = step.work();
  return table.Predict(report.steps());
}

TEST(LatencyTableTest, KnowsWhatWasMeasured) {
  LatencyTable table;
  table.Add(Step("Conv2D", 1e6, 1000, 20));
  table.Add(Step("Conv2D", 4e6, 1000, 70));
  const auto found = Predict(table, Step("Conv2D", 4e6, 1000, 0));
  EXPECT_DOUBLE_EQ(found.us, 70);
  EXPECT_EQ(found.known, 1);
  EXPECT_EQ(found.estimated, 0);
}

TEST(LatencyTableTest, ComesCloserToNewTimes) {
  LatencyTable table;
  table.Add(Step("Conv2D", 1e6, 1000, 20));
  table.Add(Step("Conv2D", 1e6, 1000, 30));
  EXPECT_DOUBLE_EQ(Predict(table, Step("Conv2D", 1e6, 1000, 0)).us, 25);
}

TEST(LatencyTableTest, EstimatesOthersFromTheirKind) {
  LatencyTable table;
  for (const double work : {1e5, 1e6, 1e7, 1e8}) {
    const auto bytes = static_cast<int64_t>(work / 100);
    table.Add(Step("Conv2D", work, bytes, work / 1e5));
    table.Add(Step("MatMul", work, bytes, work / 1e4));
    table.Add(Step("MaxPool", 0, bytes, work / 2e5));
  }
  const auto between = Predict(table, Step("Conv2D", 3e6, 30'000, 0));
  EXPECT_NEAR(between.us, 30, 3);
  EXPECT_EQ(between.estimated, 1);
  EXPECT_NEAR(Predict(table, Step("Conv2D+Relu", 3e6, 30'000, 0)).us, 30, 3);
  EXPECT_NEAR(Predict(table, Step("MaxPool", 0, 50'000, 0)).us, 25, 3);
  // An op of which nothing is known is like those that work as much.
  const double us = Predict(table, Step("NewOp", 1e6, 10'000, 0)).us;
  EXPECT_GT(us, 9);
  EXPECT_LT(us, 101);
}

TEST(LatencyTableTest, IsCorrectedByWholeVariants) {
  LatencyTable table;
  table.Add(Step("Conv2D", 1e6, 1000, 20));
  table.Correct(100, 90);
  EXPECT_DOUBLE_EQ(Predict(table, Step("Conv2D", 1e6, 1000, 0)).us, 18);
  EXPECT_DOUBLE_EQ(table.Whole(10), 9);
}

TEST(LatencyTableTest, PassesOverWhatIsNoTime) {
  LatencyTable table;
  table.Add(Step("Conv2D", 1e6, 1000, 0));
  table.Add(Step("Conv2D", 1e6, 1000, std::nan("")));
  table.Add(Step("Conv2D", 1e6, 1000, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(table.empty());
  table.Correct(0, 10);
  EXPECT_DOUBLE_EQ(table.Whole(10), 10);
  EXPECT_GE(Predict(table, Step("Conv2D", 1e6, 1000, 0)).us, 0);
}

TEST(LatencyTableTest, MachinesDifferByAllThatTimesDependOn) {
  v1::Measurement one;
  one.set_threads(1);
  one.mutable_before()->set_cpu_model("A57");
  one.mutable_before()->set_build_version("1.0");
  v1::Measurement other = one;
  EXPECT_EQ(MachineOf(one), MachineOf(other));
  other.mutable_before()->set_kernels("neon,dotprod");
  EXPECT_NE(MachineOf(one), MachineOf(other));
  other = one;
  other.set_threads(4);
  EXPECT_NE(MachineOf(one), MachineOf(other));
  other = one;
  other.mutable_before()->set_build_version("1.1");
  EXPECT_NE(MachineOf(one), MachineOf(other));
  other = one;
  other.add_cpu_affinity(4);
  EXPECT_NE(MachineOf(one), MachineOf(other));
}

// Three layers; a, b and c take 10, 20 and 30 us in float and half in 8 bits.
class LayerCostsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::Report report;
    double us = 10;
    for (const char* name : {"a", "b", "c"}) {
      v1::LayerSensitivity& layer = *report.add_sensitivity();
      layer.set_name(name);
      layer.set_output_snr_db(us);
      layer.set_alone_snr_db(30);
      v1::StepTime step = Step("Conv2D", 1e6, 4000, us);
      step.mutable_work()->add_nodes(name);
      step.mutable_work()->add_nodes(absl::StrCat(name, "_bias"));
      *float_.add_steps() = step;
      step.mutable_work()->clear_nodes();
      step.mutable_work()->add_nodes(absl::StrCat(name, "/eightbit"));
      step.set_median_us(us / 2);
      *bytes_.add_steps() = step;
      us += 10;
    }
    *bytes_.add_steps() = Step("QuantizeV2", 0, 4000, 3);
    space_ = LayerSpace(report);
    table_.Add(Step("QuantizeV2", 0, 4000, 3));
  }

  v1::Measurement float_, bytes_;
  LayerSpace space_;
  LatencyTable table_;
};

TEST_F(LayerCostsTest, CountConversions) {
  const LayerCosts costs(space_, float_, bytes_, table_);
  ASSERT_FALSE(costs.empty());
  const double conversion = table_.Conversion(4000);
  EXPECT_GT(conversion, 0);
  EXPECT_DOUBLE_EQ(costs.Sum({}), 0);
  // It saves a conversion at its input, and needs one at its output.
  EXPECT_DOUBLE_EQ(costs.Sum({0}), 5);
  EXPECT_DOUBLE_EQ(costs.Sum({1}), 10 + 2 * conversion);
  EXPECT_DOUBLE_EQ(costs.Sum({0, 1, 2}), 30 - 2 * conversion);
  EXPECT_DOUBLE_EQ(costs.Magnitude(), 30);
}

TEST_F(LayerCostsTest, AreEmptyWhereStepsDoNotTell) {
  EXPECT_TRUE(LayerCosts(space_, float_, v1::Measurement(), table_).empty());
  EXPECT_TRUE(LayerCosts(LayerSpace(), float_, bytes_, table_).empty());
}

}  // namespace
}  // namespace optfarm::tune
