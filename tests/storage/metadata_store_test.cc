// The metadata store takes batches whole or not at all and finds again what it
// was given.

#include "storage/metadata_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/storage/sample_job.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_P(MetadataStoreTest, JobSurvivesReopen) {
  ASSERT_THAT(Insert(SampleJob("aaa1")), IsOk());
  Reopen();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const StoredJob job, store_->GetJob("aaa1"));
  EXPECT_EQ(job.job.spec.calibration().sources(0).input(), "a");
  EXPECT_EQ(job.job.create_time, kNow);
  EXPECT_EQ(job.job.end_time, absl::InfinitePast());
  ASSERT_THAT(job.tasks, SizeIs(2));
  EXPECT_EQ(job.tasks[1].device, "pi4");
  EXPECT_EQ(job.tasks[1].state, v1::BLOCKED);
  EXPECT_THAT(store_->GetJob("nope"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'nope'")));
}

TEST_P(MetadataStoreTest, SecondJobWithOneRequestIdIsRefusedWhole) {
  ASSERT_THAT(Insert(SampleJob("aaa1")), IsOk());
  NewJob second = SampleJob("aaa2");
  second.job.client_request_id = "request-aaa1";
  EXPECT_THAT(Insert(second), StatusIs(absl::StatusCode::kAlreadyExists, _));
  EXPECT_THAT(store_->GetJob("aaa2"), StatusIs(absl::StatusCode::kNotFound, _));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto match,
                               store_->FindClientRequest("request-aaa1"));
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->job_id, "aaa1");
  EXPECT_EQ(match->spec_digest, "digest-aaa1");
}

TEST_P(MetadataStoreTest, JobsWithoutRequestIdDoNotClash) {
  NewJob first = SampleJob("aaa1");
  NewJob second = SampleJob("aaa2");
  first.job.client_request_id = second.job.client_request_id = "";
  EXPECT_THAT(Insert(first), IsOk());
  EXPECT_THAT(Insert(second), IsOk());
}

TEST_P(MetadataStoreTest, RefusesUpdateFromStaleAttemptWhole) {
  const NewJob job = SampleJob("aaa1");
  ASSERT_THAT(Insert(job), IsOk());
  TaskUpdate lease;
  lease.task = job.tasks[0];
  lease.task.state = v1::LEASED;
  lease.task.attempt = 1;
  lease.expected_state = v1::READY;
  lease.expected_attempt = 0;
  WriteBatch batch;
  batch.tasks.push_back(lease);
  ASSERT_THAT(store_->Commit(batch), IsOk());
  // The same from the old state: refused, and with it the rest of the batch.
  batch.events.emplace_back().job_id = "aaa1";
  EXPECT_THAT(store_->Commit(batch), StatusIs(absl::StatusCode::kAborted, _));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto events,
                               store_->ReadEvents("aaa1", 0, 10, true));
  EXPECT_THAT(events, IsEmpty());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TaskRecord task,
                               store_->GetTask("aaa1/optimize"));
  EXPECT_EQ(task.attempt, 1);
}

TEST_P(MetadataStoreTest, EventsAreNumberedWithoutGaps) {
  ASSERT_THAT(Insert(SampleJob("aaa1")), IsOk());
  ASSERT_THAT(Insert(SampleJob("aaa2")), IsOk());
  WriteBatch batch;
  for (int i = 0; i < 3; ++i) {
    batch.events.emplace_back().job_id = "aaa1";
    batch.events.back().event.mutable_progress()->set_fraction(i);
    batch.events.emplace_back().job_id = "aaa2";
    batch.events.back().event.mutable_log()->set_text("line");
  }
  ASSERT_THAT(store_->Commit(batch), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto events,
                               store_->ReadEvents("aaa1", 1, 10, true));
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].sequence(), 2);
  EXPECT_EQ(events[1].sequence(), 3);
  EXPECT_EQ(events[1].progress().fraction(), 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(events,
                               store_->ReadEvents("aaa2", 0, 10, false));
  EXPECT_THAT(events, IsEmpty());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const StoredJob job, store_->GetJob("aaa2"));
  EXPECT_EQ(job.last_event_sequence, 3);
}

TEST_P(MetadataStoreTest, ListsNewestFirstByPageAndFilter) {
  for (const std::string id : {"aaa1", "aaa2", "aaa3", "aaa4"}) {
    ASSERT_THAT(Insert(SampleJob(id, id == "aaa2" ? "fp32" : "int8")), IsOk());
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto jobs,
                               store_->ListJobs({}, PageRequest{0, 3}));
  ASSERT_THAT(jobs, SizeIs(3));
  EXPECT_EQ(jobs[0].job.job_id, "aaa4");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      jobs, store_->ListJobs({}, PageRequest{jobs[2].job.number, 3}));
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].job.job_id, "aaa1");

  JobFilter filter;
  filter.recipe_name = "fp32";
  OPTFARM_ASSERT_OK_AND_ASSIGN(jobs, store_->ListJobs(filter, PageRequest{}));
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].job.job_id, "aaa2");

  filter = {};
  filter.model = ModelFilter{std::string(60, 'a') + "aaa3", ""};
  EXPECT_EQ(store_->ListJobs(filter, PageRequest{})->size(), 1u);
  filter.model = ModelFilter{"aaaaaa", ""};
  EXPECT_EQ(store_->ListJobs(filter, PageRequest{})->size(), 4u);
  filter.model = ModelFilter{"", "aaa4.pb"};
  EXPECT_EQ(store_->ListJobs(filter, PageRequest{})->size(), 1u);
  filter = {};
  filter.device = "pi4";
  filter.state = v1::QUEUED;
  EXPECT_EQ(store_->ListJobs(filter, PageRequest{})->size(), 4u);
  filter.device = "pi'; DROP TABLE jobs; --";
  EXPECT_EQ(store_->ListJobs(filter, PageRequest{})->size(), 0u);
}

TEST_P(MetadataStoreTest, OnlyLiveJobsProtectBlobs) {
  NewJob ended = SampleJob("aaa2");
  ASSERT_THAT(Insert(SampleJob("aaa1")), IsOk());
  ASSERT_THAT(Insert(ended), IsOk());
  ended.job.state = v1::SUCCEEDED;
  ended.job.end_time = kNow;
  v1::Failure failure;
  failure.set_message("why");
  ended.job.failure = failure;
  WriteBatch batch;
  batch.jobs.push_back(ended.job);
  batch.job_blobs.emplace_back("aaa1", "artifact");
  ASSERT_THAT(store_->Commit(batch), IsOk());
  EXPECT_THAT(*store_->LiveBlobs(),
              UnorderedElementsAre("blob-of-aaa1", "artifact"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto live, store_->LoadLiveJobs());
  ASSERT_THAT(live, SizeIs(1));
  EXPECT_EQ(live[0].job.spec.calibration().sources_size(), 1);
  EXPECT_EQ(store_->GetJob("aaa2")->job.failure->message(), "why");
}

TEST_P(MetadataStoreTest, FindsMeasurementsWithAndWithoutSamples) {
  ASSERT_THAT(Insert(SampleJob("aaa1")), IsOk());
  WriteBatch batch;
  for (int threads : {1, 4}) {
    MeasurementRecord& record = batch.measurements.emplace_back();
    record.job_id = "aaa1";
    record.task_id = "aaa1/benchmark/pi4";
    record.create_time = kNow + absl::Seconds(threads);
    record.recipe_name = "int8";
    record.source_model.mutable_digest()->set_sha256("feedface");
    record.measurement.set_device("pi4");
    record.measurement.set_variant("float");
    record.measurement.set_threads(threads);
    record.measurement.set_median_us(1000.0 / threads);
    record.measurement.add_samples_us(7);
    record.measurement.add_op_times()->set_op("Conv2D");
  }
  ASSERT_THAT(store_->Commit(batch), IsOk());
  MeasurementFilter filter;
  filter.model = ModelFilter{"feedfa", ""};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto found, store_->QueryMeasurements(filter, PageRequest{}));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].measurement.threads(), 4);
  EXPECT_EQ(found[0].measurement.samples_us_size(), 0);
  filter.full = true;
  filter.until_time = kNow + absl::Seconds(2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      found, store_->QueryMeasurements(filter, PageRequest{}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].measurement.samples_us_size(), 1);
  EXPECT_EQ(found[0].measurement.op_times(0).op(), "Conv2D");
  filter.device = "other";
  EXPECT_THAT(*store_->QueryMeasurements(filter, PageRequest{}), IsEmpty());
}

TEST_P(MetadataStoreTest, KeepsReportsActionsDevicesAndRecipes) {
  ASSERT_THAT(Insert(SampleJob("aaa1")), IsOk());
  WriteBatch batch;
  ReportRecord report{"aaa1", {}};
  report.report.set_tool_version("1");
  batch.reports.push_back(report);
  batch.actions.push_back({"action", "1", "aaa1", kNow});
  DeviceRecord device;
  device.info.set_name("pi4");
  device.first_seen = device.last_seen = kNow;
  batch.devices.push_back(device);
  v1::Recipe recipe;
  recipe.set_name("int8");
  batch.recipes.push_back(recipe);
  ASSERT_THAT(store_->Commit(batch), IsOk());
  EXPECT_EQ(store_->GetReport("aaa1")->tool_version(), "1");
  EXPECT_EQ(*store_->FindAction("action", "1"), "aaa1");
  EXPECT_EQ(*store_->FindAction("action", "2"), std::nullopt);
  EXPECT_EQ((*store_->ListRecipes())[0].name(), "int8");

  WriteBatch later;
  device.first_seen = device.last_seen = kNow + absl::Seconds(9);
  later.devices.push_back(device);
  ASSERT_THAT(store_->Commit(later), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto devices, store_->ListDevices());
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].first_seen, kNow);
  EXPECT_EQ(devices[0].last_seen, kNow + absl::Seconds(9));
}

OPTFARM_INSTANTIATE_ENGINES(MetadataStoreTest);

}  // namespace
}  // namespace optfarm::storage
