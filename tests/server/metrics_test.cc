// The numbers that the server tells Prometheus.

#include "server/upkeep/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    ServerFixture::SetUp();
  }
  std::string Text() {
    return RestClient(server_->http_address()).Get("/metrics").body;
  }
};

TEST_F(MetricsTest, FollowAJobThroughTheQueue) {
  EXPECT_THAT(Text(), HasSubstr("optfarm_jobs_submitted_total 0"));
  ASSERT_THAT(Submit(GoodSubmit()), ::optfarm::testing::IsOk());
  clock_.Advance(absl::Seconds(30));
  std::string text = Text();
  EXPECT_THAT(text, HasSubstr("optfarm_jobs_submitted_total 1"));
  EXPECT_THAT(text, HasSubstr("optfarm_live_jobs{state=\"queued\"} 1"));
  EXPECT_THAT(text, HasSubstr("optfarm_queue_tasks{kind=\"optimize\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("optfarm_queue_oldest_seconds{kind=\"optimize\"} 30"));
  RunOptimize();
  text = Text();
  EXPECT_THAT(text, HasSubstr("optfarm_live_jobs{state=\"queued\"} 0"));
  EXPECT_THAT(text,
              HasSubstr("optfarm_jobs_ended_total{state=\"succeeded\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("optfarm_attempts_ended_total{outcome=\"done\"} 1"));
  EXPECT_THAT(text, HasSubstr("optfarm_db_commit_seconds_count"));
}

TEST_F(MetricsTest, CountLostLeasesAndRetries) {
  options_.scheduling.lease = absl::Seconds(1);
  Restart();
  ASSERT_THAT(Submit(GoodSubmit()), ::optfarm::testing::IsOk());
  ASSERT_THAT(Synchronize(WorkerCall()), ::optfarm::testing::IsOk());
  EXPECT_THAT(Text(), HasSubstr("optfarm_leased_tasks{kind=\"optimize\"} 1"));
  clock_.Advance(absl::Seconds(2));
  server_->Wake();
  std::string text;
  do {
    text = Text();
  } while (!absl::StrContains(text, "optfarm_lease_expiries_total 1"));
  EXPECT_THAT(text, HasSubstr("optfarm_retries_total 1"));
}

TEST(MetricsTextTest, AJobFromTheCacheIsAHitAndAnEnd) {
  Metrics metrics;
  storage::WriteBatch batch;
  storage::JobRecord& job = batch.new_jobs.emplace_back().job;
  job.from_cache = true;
  job.state = v1::SUCCEEDED;
  metrics.NoteCommit(batch, absl::Milliseconds(3));
  const std::string text = metrics.Text({}, {}, {});
  EXPECT_THAT(text, HasSubstr("optfarm_cache_hits_total 1"));
  EXPECT_THAT(text,
              HasSubstr("optfarm_jobs_ended_total{state=\"succeeded\"} 1"));
  EXPECT_THAT(text, HasSubstr("optfarm_db_commit_seconds_count 1"));
}

TEST(MetricsTextTest, LooksAreCountedUp) {
  Metrics metrics;
  QueueNumbers queue;
  queue.task_looks = 3;
  metrics.Text(queue, {}, {.held = 3, .looks = 5});
  queue.task_looks = 8;
  queue.device_looks = 7;
  const std::string text = metrics.Text(queue, {}, {.held = 2, .looks = 12});
  EXPECT_THAT(text, HasSubstr("optfarm_task_looks_total 8"));
  EXPECT_THAT(text, HasSubstr("optfarm_device_looks_total 7"));
  EXPECT_THAT(text, HasSubstr("optfarm_held_calls 2"));
  EXPECT_THAT(text, HasSubstr("optfarm_held_call_looks_total 12"));
}

TEST(MetricsTextTest, StatesThatNoDeviceIsInAreTold) {
  Metrics metrics;
  metrics.Text({}, {{v1::Device::OFFLINE, 1}}, {});
  const std::string text =
      metrics.Text({}, {{v1::Device::AVAILABLE, 2}, {v1::Device::BUSY, 3}}, {});
  EXPECT_THAT(text, HasSubstr("optfarm_devices{state=\"available\"} 2"));
  EXPECT_THAT(text, HasSubstr("optfarm_devices{state=\"busy\"} 3"));
  EXPECT_THAT(text, HasSubstr("optfarm_devices{state=\"offline\"} 0"));
}

TEST(MetricsTextTest, NamesFromWorkersAreNotLabelsWithoutEnd) {
  Metrics metrics;
  storage::WriteBatch batch;
  v1::Report& report = batch.reports.emplace_back().report;
  for (int i = 0; i < 1000; ++i) {
    report.add_transforms()->set_name(absl::StrCat("\"}\nevil", i));
  }
  metrics.NoteCommit(batch, absl::Milliseconds(3));
  const std::string text = metrics.Text({}, {}, {});
  EXPECT_THAT(text, HasSubstr("transform=\"other\""));
  EXPECT_THAT(text, Not(HasSubstr("evil999")));
  EXPECT_THAT(text, Not(HasSubstr("\nevil")));
}

}  // namespace
}  // namespace optfarm::server
