// Retention lets go of what is old, and of nothing that a live job needs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/storage/results_store.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class RetentionTest : public ResultsTest {
 protected:
  // One job of each state, each with a result, a log and a blob.
  void SetUp() override {
    ResultsTest::SetUp();
    if (store_ == nullptr) return;
    for (const v1::JobState state :
         {v1::QUEUED, v1::RUNNING, v1::SUCCEEDED, v1::FAILED, v1::CANCELLED}) {
      const std::string id = v1::JobState_Name(state);
      WriteBatch batch;
      batch.new_jobs.push_back(JobWith(id, {"tag"}));
      batch.measurements.push_back(Measured(id, 0, 1));
      batch.events.emplace_back().job_id = id;
      batch.events.back().event.mutable_log()->set_text("line");
      batch.events.emplace_back().job_id = id;
      batch.events.back().event.mutable_progress()->set_fraction(1);
      batch.jobs.push_back(batch.new_jobs[0].job);
      batch.jobs[0].state = state;
      if (state > v1::RUNNING) batch.jobs[0].end_time = kStart;
      Commit(batch);
    }
  }
};

TEST_P(RetentionTest, NothingGoesWithoutAPolicy) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RetentionCounts counts,
                               store_->Prune(RetentionPolicy()));
  EXPECT_EQ(counts.jobs + counts.logs + counts.samples, 0);
}

TEST_P(RetentionTest, LiveJobsKeepEverything) {
  RetentionPolicy policy;
  policy.samples_before = policy.logs_before = policy.jobs_before =
      kStart + absl::Hours(1000);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RetentionCounts counts,
                               store_->Prune(policy));
  EXPECT_EQ(counts.jobs, 3);
  EXPECT_FALSE(counts.more);
  for (const std::string id : {"QUEUED", "RUNNING"}) {
    EXPECT_THAT(store_->GetJob(id), IsOk());
    EXPECT_THAT(*store_->ReadEvents(id, 0, 10, true), SizeIs(2));
    MeasurementFilter filter;
    filter.job_id = id;
    filter.full = true;
    const auto found = store_->QueryMeasurements(filter, {});
    ASSERT_THAT(*found, SizeIs(1));
    EXPECT_EQ((*found)[0].measurement.samples_us_size(), 100);
  }
  EXPECT_THAT(*store_->LiveBlobs(), SizeIs(2));
}

TEST_P(RetentionTest, SumsOfASeriesAreThoseOfTheResultsThatStay) {
  Commit([&] {
    WriteBatch batch;
    batch.measurements.push_back(Measured("RUNNING", 1, 40));
    batch.measurements.push_back(Measured("FAILED", 2, 500));
    return batch;
  }());
  const auto sums = [&] {
    const std::unique_ptr<SqlDatabase> db = place_.Connect();
    SqlTransaction snapshot(*db, SqlTransaction::Mode::kRead);
    SqlStatement row =
        db->Prepare("SELECT results, sum_median_us, sum_p90_us FROM series");
    EXPECT_TRUE(row.Step());
    return std::vector<double>{static_cast<double>(row.Int(0)), row.Double(1),
                               row.Double(2)};
  };
  EXPECT_THAT(sums(), ElementsAre(7, DoubleNear(545, 1e-9),
                                  DoubleNear(545 * 1.1, 1e-9)));
  RetentionPolicy policy;
  policy.jobs_before = kStart + absl::Hours(1000);
  ASSERT_THAT(store_->Prune(policy), IsOk());
  EXPECT_THAT(sums(),
              ElementsAre(3, DoubleNear(42, 1e-9), DoubleNear(42 * 1.1, 1e-9)));
}

TEST_P(RetentionTest, SamplesAndLogsGoAndStatisticsStay) {
  RetentionPolicy policy;
  policy.samples_before = policy.logs_before = kStart + absl::Seconds(1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RetentionCounts counts,
                               store_->Prune(policy));
  EXPECT_EQ(counts.samples, 3);
  EXPECT_EQ(counts.logs, 3);
  EXPECT_THAT(*store_->ReadEvents("FAILED", 0, 10, true), SizeIs(1));
  MeasurementFilter filter;
  filter.job_id = "FAILED";
  filter.full = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                               store_->QueryMeasurements(filter, {}));
  EXPECT_EQ(found[0].measurement.samples_us_size(), 0);
  EXPECT_EQ(found[0].measurement.median_us(), 1);
}

TEST_P(RetentionTest, NothingRefersToAJobThatIsGone) {
  WriteBatch batch;
  batch.attempts.emplace_back().task_id = "SUCCEEDED/benchmark";
  batch.attempts[0].start_time = kStart;
  batch.reports.emplace_back().job_id = "SUCCEEDED";
  batch.actions.push_back({"digest", "1.0", "SUCCEEDED", kStart});
  Commit(batch);
  RetentionPolicy policy;
  policy.jobs_before = kStart + absl::Seconds(1);
  EXPECT_EQ(store_->Prune(policy)->jobs, 3);
  // PostgreSQL looks at this with every statement.
  if (GetParam() != Engine::kSqlite) return;
  const std::unique_ptr<SqlDatabase> db = place_.Connect();
  SqlStatement broken = db->Prepare("PRAGMA foreign_key_check");
  EXPECT_FALSE(broken.Step()) << broken.Text(0) << " " << broken.Text(2);
  EXPECT_THAT(broken.status(), IsOk());
}

TEST_P(RetentionTest, GoesInBoundedSteps) {
  RetentionPolicy policy;
  policy.samples_before = kStart + absl::Seconds(1);
  policy.max_rows = 2;
  EXPECT_TRUE(store_->Prune(policy)->more);
  EXPECT_FALSE(store_->Prune(policy)->more);
}

TEST_P(RetentionTest, LogsGoInBoundedStepsByTheEndOfTheirJob) {
  // Three jobs have ended at kStart already.
  for (int i = 1; i <= 4; ++i) {
    WriteBatch batch;
    const std::string id = absl::StrCat("job", i);
    batch.new_jobs.push_back(JobWith(id, {}));
    for (int line = 0; line < i; ++line) {
      batch.events.emplace_back().job_id = id;
      batch.events.back().event.mutable_log()->set_text("line");
    }
    batch.jobs.push_back(batch.new_jobs[0].job);
    batch.jobs[0].state = v1::SUCCEEDED;
    batch.jobs[0].end_time = kStart + absl::Hours(i);
    Commit(batch);
  }
  RetentionPolicy policy;
  policy.max_rows = 2;
  int64_t logs = 0;
  const auto let_go = [&](absl::Time before) {
    policy.logs_before = before;
    bool more = true;
    while (more) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const RetentionCounts counts,
                                   store_->Prune(policy));
      EXPECT_LE(counts.logs, policy.max_rows);
      logs += counts.logs;
      more = counts.more;
    }
  };
  let_go(kStart + absl::Hours(2.5));
  EXPECT_EQ(logs, 3 + 1 + 2);
  EXPECT_THAT(*store_->ReadEvents("job2", 0, 10, true), SizeIs(0));
  EXPECT_THAT(*store_->ReadEvents("job3", 0, 10, true), SizeIs(3));
  let_go(kStart + absl::Hours(100));
  EXPECT_EQ(logs, 3 + 1 + 2 + 3 + 4);
  EXPECT_THAT(*store_->ReadEvents("QUEUED", 0, 10, true), SizeIs(2));
}

TEST_P(RetentionTest, JobThatALiveOneTookItsAnswerFromStays) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("later", {}));
  batch.new_jobs[0].job.from_cache = true;
  batch.new_jobs[0].job.cached_from_job_id = "SUCCEEDED";
  Commit(batch);
  RetentionPolicy policy;
  policy.jobs_before = kStart + absl::Seconds(1);
  EXPECT_EQ(store_->Prune(policy)->jobs, 2);
  EXPECT_THAT(store_->GetJob("SUCCEEDED"), IsOk());
}

OPTFARM_INSTANTIATE_ENGINES(RetentionTest);

}  // namespace
}  // namespace optfarm::storage
