// Rules, intervals, and the services that answer from the results store.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optfarm/v1/store.grpc.pb.h"
#include "server/services/interval.h"
#include "server/services/regression_rule.h"
#include "server/services/student.h"
#include "server/upkeep/retention.h"
#include "storage/sqlite/metadata_store.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Measurement Measured(double median, double low, double high) {
  v1::Measurement m;
  m.set_median_us(median);
  m.set_median_low_us(low);
  m.set_median_high_us(high);
  return m;
}

TEST(IntervalTest, RatioIsAsSureAsItsMedians) {
  const Interval sure =
      MedianRatio(Measured(200, 200, 200), Measured(100, 100, 100), {0, 9});
  EXPECT_EQ(sure.value, 2);
  EXPECT_EQ(sure.low, 2);
  EXPECT_EQ(sure.high, 2);
  // One side's interval becomes the ratio's.
  const Interval one =
      MedianRatio(Measured(200, 100, 400), Measured(100, 100, 100), {0, 9});
  EXPECT_THAT(one.low, DoubleNear(1, 1e-9));
  EXPECT_THAT(one.high, DoubleNear(4, 1e-9));
}

TEST(IntervalTest, MadStandsInForAMissingInterval) {
  v1::Measurement a = Measured(100, 0, 0);
  a.set_mad_us(10);
  a.set_runs(100);
  const Interval ratio = MedianRatio(a, Measured(100, 100, 100), {0, 9});
  // 1.96 * 1.2533 * 1.4826 * 0.1 / 10.
  EXPECT_THAT(ratio.high, DoubleNear(std::exp(0.036419), 1e-5));
  EXPECT_THAT(ratio.low * ratio.high, DoubleNear(1, 1e-9));
}

TEST(IntervalTest, GeometricMeanUsesStudentsT) {
  EXPECT_EQ(GeometricMean({}).value, 0);
  EXPECT_EQ(GeometricMean({3.0}).value, 3);
  EXPECT_EQ(GeometricMean({3.0}).low, 0);
  const Interval mean = GeometricMean({2.0, 8.0});
  EXPECT_THAT(mean.value, DoubleNear(4, 1e-9));
  // Logarithms differ from their mean by ln 2; its error is ln 2.
  EXPECT_THAT(mean.high, DoubleNear(4 * std::pow(2, 12.706), 1));
}

// The factor of Student's distribution from a mean of logarithms 1 and -1.
double StudentOf(size_t degrees) {
  std::vector<double> ratios(degrees + 1, std::exp(1));
  for (size_t i = 0; i <= degrees; i += 2) ratios[i] = std::exp(-1);
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  const auto count = static_cast<double>(ratios.size());
  const double error =
      std::sqrt((count - sum * sum / count) / (count - 1) / count);
  const Interval mean = GeometricMean(ratios);
  return std::log(mean.high / mean.value) / error;
}

TEST(IntervalTest, ManyRatiosHaveNearlyTheNormalFactor) {
  EXPECT_THAT(StudentOf(5), DoubleNear(2.5706, 1e-3));
  EXPECT_THAT(StudentOf(11), DoubleNear(2.2010, 5e-4));
  EXPECT_THAT(StudentOf(30), DoubleNear(2.0423, 1e-4));
  EXPECT_THAT(StudentOf(31), DoubleNear(2.0395, 1e-4));
  EXPECT_THAT(StudentOf(1000), DoubleNear(1.9623, 1e-4));
}

std::vector<storage::PointNumbers> Points(std::vector<double> newest_first) {
  std::vector<storage::PointNumbers> points;
  for (const double value : newest_first) {
    storage::PointNumbers& point = points.emplace_back();
    point.median_us = value;
    point.p90_us = value + 1;
  }
  return points;
}

Judgement JudgeBy(v1::RegressionRule rule, std::vector<double> newest_first) {
  const auto points = Points(std::move(newest_first));
  Judgement judgement = Judge(*CompleteRule(rule), points);
  judgement.point = nullptr;
  return judgement;
}

TEST(RegressionRuleTest, PastP90sComparesTheMedianWithThem) {
  v1::RegressionRule rule;
  rule.set_kind(v1::RegressionRule::PAST_P90S);
  // Past p90s are 11, 12, 13, 14, 15: p90 14.6, range 4.
  const Judgement fine = JudgeBy(rule, {15.0, 10, 11, 12, 13, 14});
  EXPECT_THAT(fine.allowed, DoubleNear(15, 1e-9));
  EXPECT_FALSE(fine.regressed);
  EXPECT_EQ(fine.past_points, 5);
  EXPECT_EQ(fine.past_median, 12);
  EXPECT_TRUE(JudgeBy(rule, {15.001, 10, 11, 12, 13, 14}).regressed);
}

TEST(RegressionRuleTest, DefaultIsStudentsPredictionOfLogarithms) {
  // Logarithms -1, 0, 0, 1: median 0, deviation sqrt(2/3); t(0.99, 3) is
  // 4.5407.
  const double e = std::exp(1);
  const Judgement judged = JudgeBy({}, {50, 1 / e, 1, 1, e});
  EXPECT_THAT(
      std::log(judged.allowed),
      DoubleNear(4.5407 * std::sqrt(2.0 / 3) * std::sqrt(1 + 1.5708 / 4),
                 1e-3));
  // Equal values: 3 % are allowed.
  EXPECT_FALSE(JudgeBy({}, {10.3, 10, 10, 10, 10}).regressed);
  EXPECT_TRUE(JudgeBy({}, {10.31, 10, 10, 10, 10}).regressed);
  // One disturbed point of eight hides nothing.
  EXPECT_TRUE(
      JudgeBy({}, {11, 10, 10.1, 9.9, 10, 80, 10, 9.9, 10.1}).regressed);
  // Nothing can be said of values that are not above 0.
  EXPECT_THAT(JudgeBy({}, {5, 0, 0, 0, 0}).allowed, 0);
}

TEST(RegressionRuleTest, ASinglePastValueHasNoSpread) {
  v1::RegressionRule rule;
  rule.set_min_points(2);
  EXPECT_FALSE(JudgeBy(rule, {20, 10}).enough_points);
  EXPECT_TRUE(JudgeBy(rule, {20, 10, 10}).enough_points);
  rule.set_kind(v1::RegressionRule::RATIO);
  EXPECT_TRUE(JudgeBy(rule, {20, 10}).enough_points);
}

TEST(StudentTest, QuantilesAreThoseOfTables) {
  EXPECT_THAT(StudentQuantile(0.975, 1), DoubleNear(12.7062, 1e-3));
  EXPECT_THAT(StudentQuantile(0.975, 2), DoubleNear(4.3027, 1e-3));
  EXPECT_THAT(StudentQuantile(0.99, 3), DoubleNear(4.5407, 1e-3));
  EXPECT_THAT(StudentQuantile(0.99, 12), DoubleNear(2.6810, 1e-3));
  EXPECT_THAT(StudentQuantile(0.9, 7), DoubleNear(1.4149, 1e-3));
  EXPECT_THAT(StudentQuantile(0.975, 100), DoubleNear(1.9840, 1e-3));
}

TEST(RegressionRuleTest, FewerThanFivePointsAreNotJudged) {
  EXPECT_FALSE(JudgeBy({}, {100, 1, 1, 1}).enough_points);
  EXPECT_FALSE(JudgeBy({}, {}).enough_points);
  const Judgement judged = JudgeBy({}, {100, 1, 1, 1, 1});
  EXPECT_TRUE(judged.enough_points);
  EXPECT_TRUE(judged.regressed);
}

TEST(RegressionRuleTest, OtherRules) {
  v1::RegressionRule rule;
  rule.set_kind(v1::RegressionRule::RATIO);
  rule.set_limit(1.5);
  EXPECT_FALSE(JudgeBy(rule, {15, 10, 10, 10, 10}).regressed);
  EXPECT_TRUE(JudgeBy(rule, {15.1, 10, 10, 10, 10}).regressed);
  rule.set_kind(v1::RegressionRule::DEVIATIONS);
  rule.set_limit(2);
  // Median 10, MAD 1.
  EXPECT_FALSE(JudgeBy(rule, {12.9, 9, 9, 10, 11, 11}).regressed);
  EXPECT_TRUE(JudgeBy(rule, {13, 9, 9, 10, 11, 11}).regressed);
}

TEST(RegressionRuleTest, SaysHowFarAboveOrBelowThePastItIs) {
  v1::RegressionRule rule;
  rule.set_kind(v1::RegressionRule::RATIO);
  rule.set_limit(0.5);
  EXPECT_THAT(Explain(rule, JudgeBy(rule, {11, 10, 10, 10, 10})),
              HasSubstr("11 us is 10 % above the 10 us of 4 points"));
  EXPECT_THAT(Explain(rule, JudgeBy(rule, {9, 10, 10, 10, 10})),
              HasSubstr("9 us is 10 % below the 10 us of 4 points"));
}

TEST(RegressionRuleTest, LooksOnlyAtTheWindow) {
  v1::RegressionRule rule;
  rule.set_window(5);
  EXPECT_TRUE(JudgeBy(rule, {20, 10, 10, 10, 10, 99, 99}).regressed);
  rule.set_window(6);
  EXPECT_FALSE(JudgeBy(rule, {20, 10, 10, 10, 10, 99, 99}).regressed);
}

TEST(RegressionRuleTest, LeavesNoisyPointsOutWhenAsked) {
  auto points = Points({100, 10, 10, 10, 10, 10});
  points[0].noisy = true;
  v1::RegressionRule rule;
  EXPECT_TRUE(Judge(*CompleteRule(rule), points).regressed);
  rule.set_skip_noisy(true);
  EXPECT_FALSE(Judge(*CompleteRule(rule), points).regressed);
}

// By the words of the rules, with everything sorted.
std::optional<double> AllowedByTheBook(const v1::RegressionRule& rule,
                                       std::vector<double> past,
                                       std::vector<double> past_p90s) {
  const auto quantile = [](std::vector<double>& values, double fraction) {
    std::sort(values.begin(), values.end());
    const double place = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (values[above] - values[below]) *
                               (place - static_cast<double>(below));
  };
  const bool has_spread =
      past.size() > 1 || rule.kind() != v1::RegressionRule::CHANGE;
  if (!has_spread || static_cast<int>(past.size()) + 1 < rule.min_points()) {
    return std::nullopt;
  }
  const double median = quantile(past, 0.5);
  if (rule.kind() == v1::RegressionRule::RATIO) return rule.limit() * median;
  if (rule.kind() == v1::RegressionRule::PAST_P90S) {
    const double p90 = quantile(past_p90s, 0.9);
    return p90 + (past_p90s.back() - past_p90s.front()) / 10;
  }
  if (rule.kind() == v1::RegressionRule::CHANGE) {
    const size_t cut = past.size() < 7 ? 0 : past.size() / 5;
    std::sort(past.begin(), past.end());
    for (size_t i = 0; i < cut; ++i) {
      past[i] = past[cut];
      past[past.size() - 1 - i] = past[past.size() - 1 - cut];
    }
    double sum = 0, squares = 0;
    for (double& value : past) sum += value = std::log(value);
    const auto n = static_cast<double>(past.size());
    for (const double value : past) squares += std::pow(value - sum / n, 2);
    const int degrees = static_cast<int>(past.size() - 2 * cut) - 1;
    const double reach = StudentQuantile(1 - rule.limit(), degrees) *
                         std::sqrt(squares / (n - 1)) * (n - 1) / degrees *
                         std::sqrt(1 + 1.5708 / n);
    return std::max(1.03 * median, median * std::exp(reach));
  }
  for (double& value : past) value = std::abs(value - median);
  return median + rule.limit() * 1.4826 * quantile(past, 0.5);
}

TEST(RegressionRuleTest, JudgesByTheBookAndAsEarlyAsItCan) {
  std::mt19937 random(5);
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  int regressed = 0;
  for (int round = 0; round < 4000; ++round) {
    v1::RegressionRule rule;
    rule.set_kind(static_cast<v1::RegressionRule::Kind>(1 + pick(4)));
    rule.set_metric(static_cast<v1::Metric>(1 + pick(4)));
    rule.set_skip_noisy(pick(2) == 0);
    rule.set_min_points(2 + pick(6));
    rule.set_window(rule.min_points() + pick(90));
    if (rule.kind() == v1::RegressionRule::CHANGE) {
      rule.set_limit(0.01 * pick(30));
    } else {
      rule.set_limit(pick(2) == 0 ? 0 : 1 + 0.1 * pick(10));
    }
    rule = *CompleteRule(rule);
    std::vector<storage::PointNumbers> points(pick(250));
    for (storage::PointNumbers& point : points) {
      point.median_us = 90 + pick(12);
      point.p90_us = point.median_us + pick(5);
      point.peak_memory_bytes = 90 + pick(12);
      point.file_size_bytes = 90 + pick(12);
      point.noisy = pick(5) == 0;
    }
    // Some newest are worse than all others.
    if (!points.empty() && pick(2) == 0) points[0].median_us += pick(20);
    std::optional<double> newest;
    std::vector<double> past;
    std::vector<double> past_p90s;
    for (const storage::PointNumbers& point : points) {
      if (rule.skip_noisy() && point.noisy) continue;
      const double value = ValueOf(point, rule.metric());
      if (!newest) {
        newest = value;
      } else if (static_cast<int>(past.size()) + 1 < rule.window()) {
        past.push_back(value);
        past_p90s.push_back(rule.metric() == v1::MEDIAN_US ? point.p90_us
                                                           : value);
      }
    }
    const std::optional<double> allowed =
        AllowedByTheBook(rule, past, past_p90s);
    const Judgement judgement = Judge(rule, points);
    ASSERT_EQ(judgement.enough_points, newest && allowed);
    if (!judgement.enough_points) continue;
    EXPECT_EQ(judgement.newest, *newest);
    EXPECT_THAT(judgement.allowed, DoubleNear(*allowed, 1e-9 * *allowed));
    EXPECT_EQ(judgement.regressed, *newest > judgement.allowed);
    regressed += judgement.regressed ? 1 : 0;
    // Those that were read before it was enough say the same.
    const absl::Span<const storage::PointNumbers> all(points);
    size_t read = 1;
    while (read < all.size() && !IsEnough(rule, all.first(read))) ++read;
    const Judgement early = Judge(rule, all.first(read));
    EXPECT_TRUE(early.enough_points);
    EXPECT_EQ(early.regressed, judgement.regressed);
    if (early.regressed) {
      EXPECT_EQ(early.allowed, judgement.allowed);
    }
  }
  EXPECT_GT(regressed, 200);
}

TEST(RegressionRuleTest, WhatIsFineIsFineWhateverWasBefore) {
  std::mt19937 random(1);
  size_t early = 0;
  for (int round = 0; round < 3000; ++round) {
    v1::RegressionRule rule;
    rule.set_kind(static_cast<v1::RegressionRule::Kind>(1 + random() % 4));
    rule.set_metric(random() % 2 == 0 ? v1::MEDIAN_US : v1::P90_US);
    rule.set_skip_noisy(random() % 2 == 0);
    rule.set_min_points(2 + static_cast<int>(random() % 4));
    rule.set_window(rule.min_points() + static_cast<int>(random() % 20));
    std::vector<double> values(random() % 40);
    for (double& value : values) value = static_cast<double>(90 + random() % 9);
    std::vector<storage::PointNumbers> points = Points(values);
    for (storage::PointNumbers& point : points) point.noisy = random() % 4 == 0;
    const v1::RegressionRule complete = *CompleteRule(rule);
    const absl::Span<const storage::PointNumbers> all(points);
    size_t read = 0;
    while (read < all.size() && !IsFine(complete, all.first(read))) ++read;
    if (!IsFine(complete, all.first(read))) continue;
    early += read < all.size() ? 1 : 0;
    EXPECT_TRUE(Judge(complete, all.first(read)).enough_points);
    for (size_t i = read; i <= all.size(); ++i) {
      EXPECT_FALSE(Judge(complete, all.first(i)).regressed);
    }
  }
  EXPECT_GT(early, 1000u);
}

TEST(RegressionRuleTest, RefusesNonsense) {
  for (const auto& spoil : std::vector<void (*)(v1::RegressionRule&)>{
           [](v1::RegressionRule& r) { r.set_limit(-1); },
           [](v1::RegressionRule& r) { r.set_limit(NAN); },
           [](v1::RegressionRule& r) { r.set_limit(1.1); },
           [](v1::RegressionRule& r) { r.set_min_points(1); },
           [](v1::RegressionRule& r) { r.set_window(3); },
           [](v1::RegressionRule& r) { r.set_window(101); },
           [](v1::RegressionRule& r) {
             r.set_kind(static_cast<v1::RegressionRule::Kind>(99));
           }}) {
    v1::RegressionRule rule;
    spoil(rule);
    EXPECT_THAT(CompleteRule(rule),
                StatusIs(absl::StatusCode::kInvalidArgument, _));
  }
}

// A server whose database was filled before it began.
class ResultServicesTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    server_.reset();
    Fill();
    Restart();
    store_ = v1::StoreService::NewStub(channel_);
  }

  // Ten points for each of two devices; on "bad" the newest is twice as slow.
  void Fill() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        auto store,
        storage::OpenSqliteMetadataStore(
            JoinPath(options_.data_dir, "optfarm.db"), clock_.Now()));
    storage::WriteBatch batch;
    storage::NewJob& job = batch.new_jobs.emplace_back();
    job.job.job_id = "old";
    job.job.create_time = clock_.Now();
    job.job.state = v1::SUCCEEDED;
    job.job.end_time = clock_.Now();
    job.job.spec.add_tags("nightly");
    storage::TaskRecord task;
    task.task_id = "t";
    task.job_id = "old";
    task.create_time = clock_.Now();
    job.tasks.push_back(task);
    for (int i = 0; i < 10; ++i) {
      for (const std::string device : {"good", "bad"}) {
        storage::MeasurementRecord& record = batch.measurements.emplace_back();
        record.job_id = "old";
        record.task_id = "t";
        record.create_time = clock_.Now() + absl::Seconds(i);
        record.recipe_name = "int8";
        record.source_model.set_name("m.pb");
        record.source_model.mutable_digest()->set_sha256(std::string(63, 'a') +
                                                         std::to_string(i));
        v1::Measurement& m = record.measurement;
        m.set_device(device);
        m.set_variant("int8");
        m.set_threads(1);
        m.set_median_us(device == "bad" && i == 9 ? 2000 : 1000 + i);
        m.set_p90_us(m.median_us() + 10);
        m.set_runs(50);
        m.add_samples_us(1000);
      }
    }
    ASSERT_THAT(store->Commit(batch), IsOk());
  }

  template <typename Response, typename Request, typename Stub>
  absl::StatusOr<Response> Call(
      Stub* stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request) {
    Context context;
    Response response;
    const absl::Status status =
        rpc::FromGrpc((stub->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  absl::StatusOr<v1::QuerySqlResponse> Sql(const std::string& sql) {
    v1::QuerySqlRequest request;
    request.set_sql(sql);
    return Call(store_.get(), &v1::StoreService::Stub::QuerySql, request);
  }

  std::unique_ptr<v1::StoreService::Stub> store_;
};

TEST_F(ResultServicesTest, HistoryIsOldestFirstAndChosenByFilter) {
  v1::ListHistoryRequest request;
  request.mutable_filter()->set_tag("nightly");
  request.mutable_filter()->set_device("bad");
  request.set_max_points(3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto history,
      Call(results_.get(), &v1::ResultService::Stub::ListHistory, request));
  ASSERT_THAT(history.series(), SizeIs(1));
  EXPECT_FALSE(history.more_series());
  EXPECT_EQ(history.series(0).series().model_name(), "m.pb");
  ASSERT_THAT(history.series(0).points(), SizeIs(3));
  EXPECT_EQ(history.series(0).points(0).median_us(), 1007);
  EXPECT_EQ(history.series(0).points(2).median_us(), 2000);
  EXPECT_EQ(history.series(0).points(2).job_id(), "old");
  request.set_max_series(101);
  EXPECT_THAT(
      Call(results_.get(), &v1::ResultService::Stub::ListHistory, request),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_series")));
}

TEST_F(ResultServicesTest, FindsTheSeriesThatBecameWorse) {
  v1::FindRegressionsRequest request;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answer,
      Call(results_.get(), &v1::ResultService::Stub::FindRegressions, request));
  EXPECT_EQ(answer.judged(), 2);
  EXPECT_EQ(answer.found(), 1);
  ASSERT_THAT(answer.regressions(), SizeIs(1));
  EXPECT_EQ(answer.regressions(0).series().device(), "bad");
  EXPECT_EQ(answer.regressions(0).past_points(), 9);
  EXPECT_EQ(answer.regressions(0).newest().result_id(), 20);
  EXPECT_THAT(answer.regressions(0).message(), HasSubstr("2 ms"));
  request.mutable_rule()->set_min_points(11);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto few,
      Call(results_.get(), &v1::ResultService::Stub::FindRegressions, request));
  EXPECT_EQ(few.too_few_points(), 2);
  EXPECT_THAT(few.regressions(), IsEmpty());
}

TEST_F(ResultServicesTest, ResultIsFoundByItsIdAndByAMetric) {
  v1::QueryResultsRequest request;
  request.set_result_id(20);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto answer,
      Call(results_.get(), &v1::ResultService::Stub::QueryResults, request));
  ASSERT_THAT(answer.results(), SizeIs(1));
  EXPECT_EQ(answer.results(0).tags(0), "nightly");
  request.clear_result_id();
  v1::MetricRange& range = *request.add_metrics();
  range.set_metric(v1::MEDIAN_US);
  range.set_at_least(1500);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      answer,
      Call(results_.get(), &v1::ResultService::Stub::QueryResults, request));
  ASSERT_THAT(answer.results(), SizeIs(1));
  range.set_metric(v1::METRIC_UNSPECIFIED);
  EXPECT_THAT(
      Call(results_.get(), &v1::ResultService::Stub::QueryResults, request),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("metric")));
}

TEST_F(ResultServicesTest, AnswersSqlAndWritesNothing) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answer,
      Sql("SELECT device, MAX(median_us), CAST(x'ff' AS TEXT) FROM results"
          " GROUP BY device ORDER BY device"));
  ASSERT_THAT(answer.rows(), SizeIs(2));
  EXPECT_EQ(answer.rows(0).values(0).text(), "bad");
  EXPECT_EQ(answer.rows(0).values(1).real(), 2000);
  EXPECT_EQ(answer.rows(0).values(2).text(), "\xEF\xBF\xBD");
  EXPECT_THAT(Sql("DELETE FROM measurements"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(ResultServicesTest, BackupIsADatabaseBelowTheDataFolder) {
  v1::BackupRequest request;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto backup,
      Call(store_.get(), &v1::StoreService::Stub::Backup, request));
  EXPECT_EQ(backup.path(),
            JoinPath(options_.data_dir, "backups/20231114T221320Z.db"));
  EXPECT_EQ(*Sha256OfFile(backup.path()), backup.sha256());
  EXPECT_THAT(Call(store_.get(), &v1::StoreService::Stub::Backup, request),
              StatusIs(absl::StatusCode::kAlreadyExists, _));
  request.set_name("../escape");
  EXPECT_THAT(Call(store_.get(), &v1::StoreService::Stub::Backup, request),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto restored,
      storage::OpenSqliteMetadataStore(backup.path(), clock_.Now()));
  EXPECT_THAT(*restored->QueryMeasurements({}, {0, 100}), SizeIs(20));
}

TEST_F(ResultServicesTest, LetsGoOfWhatIsOldAndNothingByDefault) {
  server_.reset();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto store, storage::OpenSqliteMetadataStore(
                      JoinPath(options_.data_dir, "optfarm.db"), clock_.Now()));
  const absl::Time later = clock_.Now() + absl::Hours(48);
  EXPECT_FALSE(LetGo(*store, RetentionOptions(), later));
  EXPECT_THAT(store->GetJob("old"), IsOk());
  RetentionOptions options;
  options.jobs = absl::Hours(24);
  EXPECT_FALSE(LetGo(*store, options, later));
  EXPECT_THAT(store->GetJob("old"), StatusIs(absl::StatusCode::kNotFound, _));
}

}  // namespace
}  // namespace optfarm::server
