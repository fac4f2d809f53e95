// Filters, pages and comparisons.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "server/services/list_query.h"
#include "server/services/result_comparison.h"
#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

TEST(JobFilterTest, ReadsTerms) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      storage::JobFilter filter,
      ParseJobFilter("  state=RUNNING recipe=int8\tdevice=pi4 name=a=b "));
  EXPECT_EQ(filter.state, v1::RUNNING);
  EXPECT_EQ(filter.recipe_name, "int8");
  EXPECT_EQ(filter.device, "pi4");
  EXPECT_EQ(filter.name, "a=b");
  EXPECT_FALSE(filter.model.has_value());
}

TEST(JobFilterTest, ModelIsADigestABeginningOfOneOrAFileName) {
  EXPECT_EQ(ParseJobFilter("model=0123ab")->model->sha256_prefix, "0123ab");
  EXPECT_EQ(ParseJobFilter("model=0123a")->model->sha256_prefix, "");
  EXPECT_EQ(ParseJobFilter("model=a.pb")->model->sha256_prefix, "");
  EXPECT_EQ(ParseJobFilter("model=a.pb")->model->file_name, "a.pb");
}

TEST(JobFilterTest, SaysWhatIsWrong) {
  EXPECT_THAT(ParseJobFilter("state=DONE"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("DONE")));
  EXPECT_THAT(ParseJobFilter("running"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("=")));
  EXPECT_THAT(ParseJobFilter("state="),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST(PageTest, TokensSurviveTheRoundTripAndNothingElseDoes) {
  EXPECT_EQ(ParsePage(0, 50, "")->limit, 50);
  EXPECT_EQ(ParsePage(7, 50, PageToken(123))->before, 123);
  for (const char* bad : {"123", "after-", "after-x", "after-0", "after--1",
                          "after-99999999999999999999"}) {
    EXPECT_THAT(ParsePage(0, 50, bad),
                StatusIs(absl::StatusCode::kInvalidArgument, _))
        << bad;
  }
  EXPECT_THAT(ParsePage(-1, 50, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(ParsePage(1001, 50, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

storage::MeasurementRecord Measured(const std::string& device, int threads,
                                    double median, double mad = 1,
                                    bool noisy = false) {
  storage::MeasurementRecord record;
  record.create_time = absl::UnixEpoch();
  record.measurement.set_device(device);
  record.measurement.set_variant("int8");
  record.measurement.set_threads(threads);
  record.measurement.set_median_us(median);
  record.measurement.set_mad_us(mad);
  record.measurement.set_noisy(noisy);
  return record;
}

TEST(ComparisonTest, PairsOnlyEqualConditionsAndNewestFirst) {
  const std::vector<storage::MeasurementRecord> a = {
      Measured("pi4", 1, 100), Measured("pi4", 1, 900), Measured("pi4", 4, 40)};
  const std::vector<storage::MeasurementRecord> b = {Measured("pi4", 1, 50),
                                                     Measured("pi5", 1, 10)};
  const v1::CompareResultsResponse response = Compare(a, b, {});
  ASSERT_EQ(response.rows_size(), 3);
  EXPECT_EQ(response.rows(0).speedup(), 2);
  EXPECT_TRUE(response.rows(0).significant());
  EXPECT_FALSE(response.rows(1).has_b());
  EXPECT_EQ(response.rows(1).speedup(), 0);
  EXPECT_EQ(response.rows(2).device(), "pi5");
}

TEST(ComparisonTest, NoiseAndSpreadAreNotSignificant) {
  auto a = Measured("d", 1, 100, 10), b = Measured("d", 1, 90, 10);
  a.measurement.set_runs(20);
  b.measurement.set_runs(20);
  EXPECT_FALSE(Compare({{a}}, {{b}}, {}).rows(0).significant());
  a.measurement.set_mad_us(1);
  b.measurement.set_mad_us(1);
  EXPECT_TRUE(Compare({{a}}, {{b}}, {}).rows(0).significant());
  a.measurement.set_noisy(true);
  EXPECT_FALSE(Compare({{a}}, {{b}}, {}).rows(0).significant());
}

storage::SeriesKey KeyOf(const std::string& model) {
  storage::SeriesKey key;
  key.model_name = model;
  key.device = "d";
  key.variant = "int8";
  key.threads = 1;
  return key;
}

// Medians that alternate around 100, and one that does not belong.
std::vector<storage::PointNumbers> History(double other) {
  std::vector<storage::PointNumbers> points(12);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].median_us = i % 2 == 0 ? 100 : other;
  }
  points[5].median_us = 900;
  return points;
}

TEST(ComparisonTest, IntervalContainsTheSpreadBetweenMeasurements) {
  auto a = Measured("d", 1, 100), b = Measured("d", 1, 90);
  a.source_model.set_name("net.pb");
  b.source_model.set_name("net.pb");
  // Nothing is known: 3 % of both sides, 1.96 times.
  const auto assumed = Compare({{a}}, {{b}}, {}).rows(0);
  EXPECT_EQ(assumed.run_to_run_spread(), kAssumedSpread);
  EXPECT_EQ(assumed.spread_results(), 0);
  EXPECT_THAT(std::log(assumed.speedup_high() / assumed.speedup()),
              DoubleNear(1.96 * std::sqrt(2) * 0.03, 1e-4));
  EXPECT_TRUE(assumed.significant());

  RunSpreads spreads;
  spreads.Add(KeyOf("other.pb"), History(130));
  const auto device = Compare({{a}}, {{b}}, spreads).rows(0);
  EXPECT_EQ(device.spread_results(), 11);
  EXPECT_THAT(device.run_to_run_spread(),
              DoubleNear(std::log(1.3) / (0.6745 * std::sqrt(2)), 1e-9));
  EXPECT_FALSE(device.significant());

  // Those of the same series are better to know.
  spreads.Add(KeyOf("net.pb"), History(101));
  const auto own = Compare({{a}}, {{b}}, spreads).rows(0);
  EXPECT_EQ(own.spread_results(), 11);
  EXPECT_LT(own.run_to_run_spread(), 0.011);
  EXPECT_TRUE(own.significant());
}

// Of pairs that do not differ, 95 % of the intervals contain 1.
TEST(ComparisonTest, IntervalsOfEqualModelsContainOne) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.08);
  const auto draw = [&] { return 1000 * std::exp(noise(random)); };
  int outside = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<storage::PointNumbers> points(21);
    for (storage::PointNumbers& point : points) point.median_us = draw();
    auto a = Measured("d", 1, draw()), b = Measured("d", 1, draw());
    RunSpreads spreads;
    spreads.Add(KeyOf(""), points);
    outside += Compare({{a}}, {{b}}, spreads).rows(0).significant() ? 1 : 0;
  }
  EXPECT_GT(outside, kRounds / 100);
  EXPECT_LT(outside, kRounds * 8 / 100);
}

}  // namespace
}  // namespace optfarm::server
