// The metadata store takes batches whole or not at all and finds again what it
// was given.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "storage/sqlite/analyst.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/metadata_store.h"
#include "storage/sqlite/migrations.h"
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

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

NewJob SampleJob(const std::string& id, const std::string& recipe = "int8") {
  NewJob job;
  job.job.job_id = id;
  job.job.client_request_id = "request-" + id;
  job.job.spec_digest = "digest-" + id;
  job.job.create_time = kNow;
  job.job.spec.set_name("name of " + id);
  job.job.spec.mutable_recipe()->set_name(recipe);
  job.job.spec.mutable_model()->set_name(id + ".pb");
  job.job.spec.mutable_model()->mutable_digest()->set_sha256(
      std::string(60, 'a') + id.substr(0, 4));
  job.job.spec.mutable_calibration()->add_sources()->set_input("a");
  TaskRecord task;
  task.task_id = id + "/optimize";
  task.job_id = id;
  task.state = v1::READY;
  task.create_time = kNow;
  task.max_attempts = 3;
  job.tasks.push_back(task);
  task.task_id = id + "/benchmark/pi4";
  task.ordinal = 1;
  task.kind = v1::BENCHMARK;
  task.state = v1::BLOCKED;
  task.device = "pi4";
  job.tasks.push_back(task);
  job.blobs = {"blob-of-" + id};
  return job;
}

class SqliteMetadataStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("metadata"));
    path_ = JoinPath(folder_, "optfarm.db");
    Reopen();
  }
  void TearDown() override {
    store_.reset();
    EXPECT_THAT(RemoveAll(folder_), IsOk());
  }
  void Reopen() {
    store_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, OpenSqliteMetadataStore(path_, kNow));
  }
  absl::Status Insert(const NewJob& job) {
    WriteBatch batch;
    batch.new_jobs.push_back(job);
    return store_->Commit(batch);
  }

  std::string folder_;
  std::string path_;
  std::unique_ptr<MetadataStore> store_;
};

TEST_F(SqliteMetadataStoreTest, JobSurvivesReopen) {
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

TEST_F(SqliteMetadataStoreTest, SecondJobWithOneRequestIdIsRefusedWhole) {
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

TEST_F(SqliteMetadataStoreTest, JobsWithoutRequestIdDoNotClash) {
  NewJob first = SampleJob("aaa1");
  NewJob second = SampleJob("aaa2");
  first.job.client_request_id = second.job.client_request_id = "";
  EXPECT_THAT(Insert(first), IsOk());
  EXPECT_THAT(Insert(second), IsOk());
}

TEST_F(SqliteMetadataStoreTest, RefusesUpdateFromStaleAttemptWhole) {
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

TEST_F(SqliteMetadataStoreTest, EventsAreNumberedWithoutGaps) {
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

TEST_F(SqliteMetadataStoreTest, ListsNewestFirstByPageAndFilter) {
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

TEST_F(SqliteMetadataStoreTest, OnlyLiveJobsProtectBlobs) {
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

TEST_F(SqliteMetadataStoreTest, FindsMeasurementsWithAndWithoutSamples) {
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

TEST_F(SqliteMetadataStoreTest, KeepsReportsActionsDevicesAndRecipes) {
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

TEST_F(SqliteMetadataStoreTest, RefusesDamagedFile) {
  store_.reset();
  ASSERT_THAT(WriteFileAtomically(path_, std::string(8192, 'x')), IsOk());
  EXPECT_THAT(OpenSqliteMetadataStore(path_, kNow),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("backup")));
}

TEST_F(SqliteMetadataStoreTest, FullDatabaseTakesNothingAndGoesOnReading) {
  ASSERT_THAT(Insert(SampleJob("aaa1")), IsOk());
  store_.reset();
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto db, SqliteDatabase::Open(path_));
    // The limit is per connection; what SQLite answers is what this tests.
    ASSERT_THAT(db->Run("PRAGMA max_page_count = 1"), IsOk());
    EXPECT_THAT(db->Run("CREATE TABLE big AS SELECT zeroblob(1000000) AS z"),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("free space")));
  }
  Reopen();
  EXPECT_THAT(store_->GetJob("aaa1"), IsOk());
}

class SqliteMigrationTest : public SqliteMetadataStoreTest,
                            public ::testing::WithParamInterface<int> {};

TEST_P(SqliteMigrationTest, OpensDatabaseOfOlderVersion) {
  const std::string path = JoinPath(folder_, "older.db");
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto db, SqliteDatabase::Open(path));
    ASSERT_THAT(MigrateSqlite(*db,
                              AllSqliteMigrations().subspan(
                                  0, static_cast<size_t>(GetParam())),
                              kNow),
                IsOk());
    EXPECT_EQ(*SqliteSchemaVersion(*db), GetParam());
    if (GetParam() >= 1) {
      ASSERT_THAT(
          db->Run("INSERT INTO jobs (job_id, spec_digest, state, name,"
                  " recipe_name, model_sha256, model_name, create_time,"
                  " from_cache, cached_from_job_id, spec_proto,"
                  " calibration_proto, outcome_proto) VALUES"
                  " ('old', '', 1, '', '', '', '', 1, 0, '', x'', x'', x'')"),
          IsOk());
    }
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto store, OpenSqliteMetadataStore(path, kNow));
  if (GetParam() >= 1) {
    EXPECT_THAT(store->GetJob("old"), IsOk());
  }
  WriteBatch batch;
  batch.new_jobs.push_back(SampleJob("aaa1"));
  EXPECT_THAT(store->Commit(batch), IsOk());
}

TEST_F(SqliteMetadataStoreTest, ResultsOfVersion2ComeAlong) {
  const std::string path = JoinPath(folder_, "older.db");
  v1::Measurement summary;
  summary.set_device("pi4");
  summary.set_p90_us(12);
  summary.set_runs(9);
  summary.mutable_before()->set_build_version("0.9");
  v1::Measurement raw;
  raw.add_samples_us(3);
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto db, SqliteDatabase::Open(path));
    ASSERT_THAT(MigrateSqlite(*db, AllSqliteMigrations().subspan(0, 2), kNow),
                IsOk());
    ASSERT_THAT(
        db->Run("INSERT INTO jobs (job_id, spec_digest, state, name,"
                " recipe_name, model_sha256, model_name, create_time,"
                " from_cache, cached_from_job_id, spec_proto,"
                " calibration_proto, outcome_proto) VALUES"
                " ('old', '', 1, '', '', '', '', 1, 0, '', x'', x'', x'');"
                "INSERT INTO tasks VALUES ('t', 'old', 0, 1, 1, 0, 0, 0, 1,"
                " '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, x'')"),
        IsOk());
    for (const int64_t id : {3, 7}) {
      SqlStatement insert = db->Prepare(
          "INSERT INTO measurements VALUES (?1, 'old', 't', ?2, 'int8', 'aa',"
          " 'm.pb', 5, 'bb', 'pi4', 'float', 4, 10.5, ?3, ?4)");
      insert.BindInt(1, id);
      // The clock was set back in between.
      insert.BindTime(2, kNow - absl::Seconds(id));
      insert.BindBlob(3, summary.SerializeAsString());
      insert.BindBlob(4, raw.SerializeAsString());
      ASSERT_THAT(insert.Run(), IsOk());
    }
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto store, OpenSqliteMetadataStore(path, kNow));
  MeasurementFilter filter;
  filter.model = ModelFilter{"", "m.pb"};
  filter.full = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                               store->QueryMeasurements(filter, {}));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].result_id, 7);
  EXPECT_EQ(found[0].create_time, kNow - absl::Seconds(3));
  EXPECT_EQ(found[0].source_model.digest().sha256(), "aa");
  EXPECT_EQ(found[0].source_model.digest().size_bytes(), 5);
  EXPECT_EQ(found[0].measurement.runs(), 9);
  EXPECT_EQ(found[0].measurement.samples_us(0), 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList list,
                               store->ListSeries(filter, {}));
  ASSERT_THAT(list.series, SizeIs(1));
  EXPECT_EQ(list.series[0].key.threads, 4);
  EXPECT_EQ(list.series[0].points[1].median_us, 10.5);
  EXPECT_EQ(list.series[0].points[1].p90_us, 12);
  EXPECT_EQ(list.series[0].points[1].build_version, "0.9");
  EXPECT_EQ(list.series[0].points[1].measured_sha256, "bb");
  // A question about a metric knows what the series holds.
  filter.metrics = {{v1::MEDIAN_US, 10, 11}};
  EXPECT_THAT(*store->QueryMeasurements(filter, {}), SizeIs(2));
  filter.metrics = {{v1::MEDIAN_US, 11}};
  EXPECT_THAT(*store->QueryMeasurements(filter, {}), SizeIs(0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::QuerySqlResponse sums,
      RunReadOnlySql(path, "SELECT results, sum_median_us FROM series", {}));
  EXPECT_EQ(sums.rows(0).values(0).integer(), 2);
  EXPECT_EQ(sums.rows(0).values(1).real(), 21);
  // And ids go on from where they were.
  WriteBatch batch;
  batch.measurements.push_back(found[0]);
  ASSERT_THAT(store->Commit(batch), IsOk());
  EXPECT_EQ((*store->QueryMeasurements({}, {}))[0].result_id, 8);
}

INSTANTIATE_TEST_SUITE_P(
    EveryVersion, SqliteMigrationTest,
    ::testing::Range(0, static_cast<int>(AllSqliteMigrations().size()) + 1));

TEST_F(SqliteMetadataStoreTest, RefusesDatabaseOfNewerServer) {
  store_.reset();
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto db, SqliteDatabase::Open(path_));
    ASSERT_THAT(db->Run("INSERT INTO schema_version VALUES (999, 'x', 0)"),
                IsOk());
  }
  EXPECT_THAT(
      OpenSqliteMetadataStore(path_, kNow),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("newer")));
}

TEST_F(SqliteMetadataStoreTest, FailedMigrationLeavesNothingBehind) {
  const std::string path = JoinPath(folder_, "failing.db");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto db, SqliteDatabase::Open(path));
  constexpr SqliteMigration kSteps[] = {
      {"good", "CREATE TABLE a (x)"},
      {"bad", "CREATE TABLE b (x); CREATE TABLE a (x)"},
  };
  EXPECT_FALSE(MigrateSqlite(*db, kSteps, kNow).ok());
  EXPECT_EQ(*SqliteSchemaVersion(*db), 1);
  EXPECT_FALSE(db->Run("SELECT * FROM b").ok());
  EXPECT_THAT(db->Run("SELECT * FROM a"), IsOk());
}

}  // namespace
}  // namespace optfarm::storage
