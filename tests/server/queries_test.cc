// Filters, pages and comparisons.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/services/list_query.h"
#include "server/services/result_comparison.h"
#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::_;
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
  const v1::CompareResultsResponse response = Compare(a, b);
  ASSERT_EQ(response.rows_size(), 3);
  EXPECT_EQ(response.rows(0).speedup(), 2);
  EXPECT_TRUE(response.rows(0).significant());
  EXPECT_FALSE(response.rows(1).has_b());
  EXPECT_EQ(response.rows(1).speedup(), 0);
  EXPECT_EQ(response.rows(2).device(), "pi5");
}

TEST(ComparisonTest, NoiseAndSpreadAreNotSignificant) {
  EXPECT_FALSE(
      Compare({{Measured("d", 1, 100, 10)}}, {{Measured("d", 1, 90, 10)}})
          .rows(0)
          .significant());
  EXPECT_FALSE(
      Compare({{Measured("d", 1, 100, 1, true)}}, {{Measured("d", 1, 50)}})
          .rows(0)
          .significant());
}

}  // namespace
}  // namespace optfarm::server
