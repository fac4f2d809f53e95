// Results are found by every filter as a plain look at all rows finds them, and
// survive backups, retention and curious analysts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "storage/deflate.h"
#include "storage/sqlite_analyst.h"
#include "storage/sqlite_database.h"
#include "storage/sqlite_metadata_store.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1700000000);

std::string Sha(int number) { return absl::StrCat("abcdef", 1000 + number); }

class SqliteResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("results"));
    path_ = JoinPath(folder_, "optfarm.db");
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_,
                                 OpenSqliteMetadataStore(path_, kStart));
  }
  void TearDown() override {
    store_.reset();
    EXPECT_THAT(RemoveAll(folder_), IsOk());
  }

  NewJob JobWith(const std::string& id, std::vector<std::string> tags) {
    NewJob job;
    job.job.job_id = id;
    job.job.create_time = kStart;
    job.job.state = v1::RUNNING;
    for (std::string& tag : tags) job.job.spec.add_tags(std::move(tag));
    TaskRecord task;
    task.task_id = id + "/benchmark";
    task.job_id = id;
    task.create_time = kStart;
    job.tasks.push_back(task);
    job.blobs = {"blob-of-" + id};
    return job;
  }

  MeasurementRecord Measured(const std::string& job, int second, double median,
                             const std::string& device = "pi4", int model = 0) {
    MeasurementRecord record;
    record.job_id = job;
    record.task_id = job + "/benchmark";
    record.create_time = kStart + absl::Seconds(second);
    record.recipe_name = "int8";
    record.source_model.set_name("model.pb");
    record.source_model.mutable_digest()->set_sha256(Sha(model));
    v1::Measurement& m = record.measurement;
    m.mutable_model()->set_sha256(Sha(model + 1));
    m.set_device(device);
    m.set_variant("int8");
    m.set_threads(1);
    m.set_median_us(median);
    m.set_p90_us(median * 1.1);
    m.set_runs(3);
    m.mutable_before()->set_build_version("1.0");
    for (int i = 0; i < 100; ++i) m.add_samples_us(static_cast<float>(median));
    m.add_op_times()->set_op("Conv2D");
    return record;
  }

  void Commit(WriteBatch batch) { ASSERT_THAT(store_->Commit(batch), IsOk()); }

  // Ten jobs' worth of results that differ in everything a filter asks about.
  std::vector<MeasurementRecord> CommitMany(int count);

  std::string folder_;
  std::string path_;
  std::unique_ptr<MetadataStore> store_;
};

std::vector<MeasurementRecord> SqliteResultsTest::CommitMany(int count) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  WriteBatch batch;
  for (int job = 0; job < 10; ++job) {
    batch.new_jobs.push_back(
        JobWith(absl::StrCat("job", job),
                job % 2 == 0 ? std::vector<std::string>{"nightly", "even"}
                             : std::vector<std::string>{"odd"}));
  }
  std::vector<MeasurementRecord> records;
  for (int i = 0; i < count; ++i) {
    MeasurementRecord record =
        Measured(absl::StrCat("job", pick(10)), i / 3, 100 + pick(50),
                 absl::StrCat("pi", pick(4)), pick(6));
    record.recipe_name = pick(2) == 0 ? "int8" : "fp32";
    record.source_model.set_name(absl::StrCat("m", pick(3), ".pb"));
    record.measurement.set_variant(pick(2) == 0 ? "float" : "int8");
    record.measurement.set_threads(pick(2) == 0 ? 1 : 4);
    batch.measurements.push_back(record);
    record.result_id = i + 1;
    records.push_back(std::move(record));
  }
  EXPECT_THAT(store_->Commit(batch), IsOk());
  return records;
}

bool Matches(const MeasurementRecord& r, const MeasurementFilter& f) {
  const v1::Measurement& m = r.measurement;
  const bool even = (r.job_id.back() - '0') % 2 == 0;
  if (f.result_id > 0 && r.result_id != f.result_id) return false;
  if (f.job_id && r.job_id != *f.job_id) return false;
  if (f.recipe_name && r.recipe_name != *f.recipe_name) return false;
  if (f.device && m.device() != *f.device) return false;
  if (f.variant && m.variant() != *f.variant) return false;
  if (f.threads && m.threads() != *f.threads) return false;
  if (f.tag && *f.tag != (even ? "nightly" : "odd")) return false;
  if (f.model) {
    const auto begins = [&](const std::string& sha) {
      return !f.model->sha256_prefix.empty() &&
             sha.rfind(f.model->sha256_prefix, 0) == 0;
    };
    if (!begins(m.model().sha256()) &&
        !begins(r.source_model.digest().sha256()) &&
        r.source_model.name() != f.model->file_name) {
      return false;
    }
  }
  for (const MetricFilter& range : f.metrics) {
    const double value =
        range.metric == v1::P90_US ? m.p90_us() : m.median_us();
    if (value < range.at_least || value >= range.below) return false;
  }
  return r.create_time >= f.from_time && r.create_time < f.until_time;
}

MeasurementFilter RandomFilter(std::mt19937& random) {
  const auto chance = [&](int n) { return random() % n == 0; };
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  MeasurementFilter f;
  if (chance(3)) f.device = absl::StrCat("pi", pick(5));
  if (chance(4)) f.recipe_name = chance(2) ? "int8" : "fp32";
  if (chance(4)) f.variant = "float";
  if (chance(5)) f.threads = 4;
  if (chance(4)) f.tag = chance(2) ? "nightly" : "odd";
  if (chance(6)) f.job_id = absl::StrCat("job", pick(10));
  if (chance(20)) f.result_id = 1 + pick(400);
  if (chance(4)) f.model = ModelFilter{Sha(pick(7)), ""};
  if (chance(4)) f.model = ModelFilter{"", absl::StrCat("m", pick(4), ".pb")};
  if (chance(8)) f.model = ModelFilter{Sha(pick(7)), "m1.pb"};
  if (chance(4)) f.from_time = kStart + absl::Seconds(pick(140));
  if (chance(4)) f.until_time = kStart + absl::Seconds(pick(140));
  if (chance(4)) {
    MetricFilter& range = f.metrics.emplace_back();
    range.metric = chance(2) ? v1::MEDIAN_US : v1::P90_US;
    range.at_least = 90 + pick(50);
    if (chance(2)) range.below = 110 + pick(50);
  }
  if (chance(8)) {
    f.metrics.push_back({v1::MEDIAN_US, 90.0 + pick(50), 1000});
    f.metrics.push_back({v1::P90_US, 0, 110.0 + pick(50)});
  }
  return f;
}

std::vector<int64_t> IdsOf(const std::vector<MeasurementRecord>& records) {
  std::vector<int64_t> ids;
  for (const MeasurementRecord& record : records) {
    ids.push_back(record.result_id);
  }
  return ids;
}

// What a look at all rows finds.
std::vector<int64_t> IdsAmongAll(const std::vector<MeasurementRecord>& records,
                                 const MeasurementFilter& filter,
                                 const PageRequest& page) {
  std::vector<int64_t> ids;
  for (auto r = records.rbegin(); r != records.rend(); ++r) {
    if (page.before > 0 && r->result_id >= page.before) continue;
    if (Matches(*r, filter)) ids.push_back(r->result_id);
    if (static_cast<int>(ids.size()) == page.limit) break;
  }
  return ids;
}

// As if very many results of a series that is not there had the tag.
void MakeCommon(const std::string& path, const std::string& tag) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto db, SqliteDatabase::Open(path));
  ASSERT_THAT(db->Run("PRAGMA foreign_keys = OFF"), IsOk());
  SqliteStatement insert = db->Prepare(
      "INSERT INTO result_tags WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
      " SELECT i + 1 FROM n WHERE i < 25000) SELECT ?1, 1000000, i FROM n");
  insert.BindText(1, tag);
  ASSERT_THAT(insert.Run(), IsOk());
}

TEST_F(SqliteResultsTest, EveryFilterFindsWhatALookAtAllRowsFinds) {
  const std::vector<MeasurementRecord> records = CommitMany(400);
  std::mt19937 random(11);
  for (int round = 0; round < 600; ++round) {
    if (round == 300) {
      MakeCommon(path_, "nightly");
      MakeCommon(path_, "odd");
    }
    const MeasurementFilter filter = RandomFilter(random);
    const PageRequest page{
        random() % 2 == 0 ? 0 : static_cast<int64_t>(1 + random() % 420),
        static_cast<int>(1 + random() % 30)};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                                 store_->QueryMeasurements(filter, page));
    ASSERT_EQ(IdsOf(found), IdsAmongAll(records, filter, page))
        << "round " << round;
    // The same rows, whatever way they are asked for.
    OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList list,
                                 store_->ListSeries(filter, {1000, 1000}));
    size_t points = 0;
    for (const SeriesRecord& series : list.series) {
      EXPECT_FALSE(series.points.empty());
      points += series.points.size();
    }
    EXPECT_EQ(points, static_cast<size_t>(std::count_if(
                          records.begin(), records.end(),
                          [&](const auto& r) { return Matches(r, filter); })));
  }
}

// Far back lie results that are rare among the newest, so that the walk over
// all results is given up and series are asked.
TEST_F(SqliteResultsTest, WhatIsRareAmongTheNewestIsFoundFurtherBack) {
  std::vector<MeasurementRecord> records = CommitMany(200);
  WriteBatch batch;
  for (int i = 0; i < 2300; ++i) {
    MeasurementRecord record =
        Measured(absl::StrCat("job", i % 100 == 0 ? 1 : 0), 100 + i, 1000);
    record.measurement.clear_samples_us();
    record.result_id = 201 + i;
    records.push_back(record);
    batch.measurements.push_back(std::move(record));
  }
  Commit(std::move(batch));
  MakeCommon(path_, "odd");
  MeasurementFilter rare;
  rare.metrics.push_back({v1::MEDIAN_US, 0, 900});
  MeasurementFilter rare_tag;
  rare_tag.tag = "odd";
  MeasurementFilter both = rare;
  both.tag = "odd";
  for (const MeasurementFilter& filter : {rare, rare_tag, both}) {
    for (const int limit : {1, 30, 1000}) {
      const PageRequest page{0, limit};
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                                   store_->QueryMeasurements(filter, page));
      EXPECT_EQ(IdsOf(found), IdsAmongAll(records, filter, page));
    }
  }
}

TEST_F(SqliteResultsTest, ResultComesBackAsItWasTaken) {
  const std::vector<MeasurementRecord> records = CommitMany(20);
  MeasurementFilter filter;
  filter.full = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                               store_->QueryMeasurements(filter, {0, 20}));
  ASSERT_THAT(found, SizeIs(20));
  for (size_t i = 0; i < 20; ++i) {
    const MeasurementRecord& got = found[19 - i];
    EXPECT_EQ(got.measurement.SerializeAsString(),
              records[i].measurement.SerializeAsString());
    EXPECT_EQ(got.source_model.SerializeAsString(),
              records[i].source_model.SerializeAsString());
    EXPECT_EQ(got.create_time, records[i].create_time);
    EXPECT_FALSE(got.tags.empty());
  }
}

TEST_F(SqliteResultsTest, SeriesComeNewestFirstWithDetails) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("job", {}));
  for (int i = 0; i < 6; ++i) {
    batch.measurements.push_back(
        Measured("job", i, 100 + i, i < 3 ? "old" : "new", i));
  }
  Commit(batch);
  OPTFARM_ASSERT_OK_AND_ASSIGN(SeriesList list, store_->ListSeries({}, {1, 2}));
  EXPECT_TRUE(list.more);
  ASSERT_THAT(list.series, SizeIs(1));
  EXPECT_EQ(list.series[0].key.device, "new");
  EXPECT_EQ(list.series[0].key.model_name, "model.pb");
  ASSERT_THAT(list.series[0].points, SizeIs(2));
  const PointRecord& newest = list.series[0].points[0];
  EXPECT_EQ(newest.median_us, 105);
  EXPECT_EQ(newest.create_time, kStart + absl::Seconds(5));
  EXPECT_EQ(newest.measured_sha256, Sha(6));
  EXPECT_EQ(newest.build_version, "1.0");
  EXPECT_EQ(newest.job_id, "job");
}

TEST_F(SqliteResultsTest, SeriesEndWhereEnoughWasRead) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("job", {}));
  for (int i = 0; i < 6; ++i) {
    batch.measurements.push_back(Measured("job", i, 100 + i));
  }
  Commit(batch);
  SeriesRequest request;
  request.enough = [](absl::Span<const PointRecord> points) {
    return points.back().median_us < 104;
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList list,
                               store_->ListSeries({}, request));
  ASSERT_THAT(list.series, SizeIs(1));
  ASSERT_THAT(list.series[0].points, SizeIs(3));
  EXPECT_EQ(list.series[0].points[2].median_us, 103);
}

TEST_F(SqliteResultsTest, ClockSetBackDoesNotPutResultsOutOfOrder) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("job", {}));
  batch.measurements.push_back(Measured("job", 100, 1));
  batch.measurements.push_back(Measured("job", 50, 2));
  Commit(batch);
  MeasurementFilter filter;
  filter.from_time = kStart + absl::Seconds(100);
  EXPECT_THAT(*store_->QueryMeasurements(filter, {}), SizeIs(2));
}

TEST_F(SqliteResultsTest, IdsAreNeverGivenAgain) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("job", {"t"}));
  batch.measurements.push_back(Measured("job", 0, 1));
  batch.measurements.push_back(Measured("job", 0, 1));
  Commit(batch);
  WriteBatch end;
  end.jobs.push_back(batch.new_jobs[0].job);
  end.jobs[0].state = v1::SUCCEEDED;
  end.jobs[0].end_time = kStart;
  Commit(end);
  RetentionPolicy policy;
  policy.jobs_before = kStart + absl::Seconds(1);
  EXPECT_EQ(store_->Prune(policy)->jobs, 1);
  EXPECT_THAT(store_->GetJob("job"), StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_THAT(*store_->QueryMeasurements({}, {}), IsEmpty());
  EXPECT_THAT(store_->ListSeries({}, {})->series, IsEmpty());
  Commit(batch);
  EXPECT_EQ((*store_->QueryMeasurements({}, {}))[0].result_id, 4);
}

class RetentionTest : public SqliteResultsTest {
 protected:
  // One job of each state, each with a result, a log and a blob.
  void SetUp() override {
    SqliteResultsTest::SetUp();
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

TEST_F(RetentionTest, NothingGoesWithoutAPolicy) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RetentionCounts counts,
                               store_->Prune(RetentionPolicy()));
  EXPECT_EQ(counts.jobs + counts.logs + counts.samples, 0);
}

TEST_F(RetentionTest, LiveJobsKeepEverything) {
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

TEST_F(RetentionTest, SumsOfASeriesAreThoseOfTheResultsThatStay) {
  Commit([&] {
    WriteBatch batch;
    batch.measurements.push_back(Measured("RUNNING", 1, 40));
    batch.measurements.push_back(Measured("FAILED", 2, 500));
    return batch;
  }());
  const auto sums = [&] {
    const auto answer = RunReadOnlySql(
        path_, "SELECT results, sum_median_us, sum_p90_us FROM series", {});
    EXPECT_THAT(answer, IsOk());
    const auto& values = answer->rows(0).values();
    return std::vector<double>{static_cast<double>(values[0].integer()),
                               values[1].real(), values[2].real()};
  };
  EXPECT_THAT(sums(), ElementsAre(7, DoubleNear(545, 1e-9),
                                  DoubleNear(545 * 1.1, 1e-9)));
  RetentionPolicy policy;
  policy.jobs_before = kStart + absl::Hours(1000);
  ASSERT_THAT(store_->Prune(policy), IsOk());
  EXPECT_THAT(sums(),
              ElementsAre(3, DoubleNear(42, 1e-9), DoubleNear(42 * 1.1, 1e-9)));
}

TEST_F(RetentionTest, SamplesAndLogsGoAndStatisticsStay) {
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

TEST_F(RetentionTest, NothingRefersToAJobThatIsGone) {
  WriteBatch batch;
  batch.attempts.emplace_back().task_id = "SUCCEEDED/benchmark";
  batch.attempts[0].start_time = kStart;
  batch.reports.emplace_back().job_id = "SUCCEEDED";
  batch.actions.push_back({"digest", "1.0", "SUCCEEDED", kStart});
  Commit(batch);
  RetentionPolicy policy;
  policy.jobs_before = kStart + absl::Seconds(1);
  EXPECT_EQ(store_->Prune(policy)->jobs, 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto db, SqliteDatabase::Open(path_));
  SqliteStatement broken = db->Prepare("PRAGMA foreign_key_check");
  EXPECT_FALSE(broken.Step()) << broken.Text(0) << " " << broken.Text(2);
  EXPECT_THAT(broken.status(), IsOk());
}

TEST_F(RetentionTest, GoesInBoundedSteps) {
  RetentionPolicy policy;
  policy.samples_before = kStart + absl::Seconds(1);
  policy.max_rows = 2;
  EXPECT_TRUE(store_->Prune(policy)->more);
  EXPECT_FALSE(store_->Prune(policy)->more);
}

TEST_F(RetentionTest, JobThatALiveOneTookItsAnswerFromStays) {
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

TEST_F(SqliteResultsTest, BackupOpensAsAStoreAndHasWhatWasThere) {
  CommitMany(50);
  const std::string copy = JoinPath(folder_, "copy.db");
  ASSERT_THAT(store_->Backup(copy), IsOk());
  EXPECT_THAT(store_->Backup(copy),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("copy.db")));
  EXPECT_FALSE(Exists(copy + "-wal"));
  WriteBatch batch;
  batch.measurements.push_back(Measured("job0", 999, 1));
  Commit(batch);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto restored,
                               OpenSqliteMetadataStore(copy, kStart));
  EXPECT_THAT(*restored->QueryMeasurements({}, {0, 100}), SizeIs(50));
}

TEST_F(SqliteResultsTest, FailedBackupLeavesNothing) {
  const std::string folder = JoinPath(folder_, "backups");
  EXPECT_FALSE(store_->Backup(JoinPath(folder, "copy.db")).ok());
  ASSERT_THAT(MakeFolders(folder), IsOk());
  EXPECT_FALSE(store_->Backup(JoinPath(folder, "no/copy.db")).ok());
  EXPECT_THAT(*ListFolder(folder), IsEmpty());
}

class AnalystTest : public SqliteResultsTest {
 protected:
  void SetUp() override {
    SqliteResultsTest::SetUp();
    CommitMany(30);
  }
  absl::StatusOr<v1::QuerySqlResponse> Ask(const std::string& sql,
                                           SqlLimits limits = {}) {
    return RunReadOnlySql(path_, sql, limits);
  }
};

TEST_F(AnalystTest, AnswersWithColumnsAndTypedValues) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::QuerySqlResponse answer,
      Ask("SELECT COUNT(*) AS n, MIN(median_us), MAX(device), NULL, x'00ff'"
          " FROM results; "));
  EXPECT_THAT(answer.columns(), ElementsAre("n", "MIN(median_us)",
                                            "MAX(device)", "NULL", "x'00ff'"));
  const auto& values = answer.rows(0).values();
  EXPECT_EQ(values[0].integer(), 30);
  EXPECT_GE(values[1].real(), 100);
  EXPECT_EQ(values[2].text(), "pi3");
  EXPECT_EQ(values[3].value_case(), v1::SqlValue::VALUE_NOT_SET);
  EXPECT_EQ(values[4].blob().size(), 2u);
}

TEST_F(AnalystTest, RefusesEverythingThatIsNotAQuestionAboutResults) {
  for (const char* sql : {"DELETE FROM measurements",
                          "UPDATE series SET device = 'x'",
                          "INSERT INTO graphs VALUES (999, 'x')",
                          "DROP TABLE samples",
                          "CREATE TABLE t (x)",
                          "CREATE TEMP TABLE t (x)",
                          "VACUUM",
                          "ATTACH 'other.db' AS o",
                          "PRAGMA query_only=OFF",
                          "PRAGMA journal_mode=DELETE",
                          "BEGIN IMMEDIATE",
                          "ANALYZE",
                          "SELECT load_extension('/tmp/x.so')",
                          "SELECT spec_proto FROM jobs",
                          "SELECT * FROM jobs",
                          "SELECT * FROM participants",
                          "SELECT * FROM sqlite_master",
                          "SELECT * FROM events",
                          "SELECT COUNT(*) FROM events",
                          "SELECT COUNT(*) FROM sqlite_schema",
                          "SELECT COUNT(*) FROM pragma_table_info('jobs')",
                          "SELECT * FROM pragma_table_info('jobs')",
                          "SELECT 1; DELETE FROM measurements",
                          "SELECT 1; SELECT 2",
                          "",
                          "--",
                          "SELEC 1",
                          "SELECT * FROM nothing",
                          "WITH x AS (SELECT 1) DELETE FROM measurements",
                          "REPLACE INTO graphs VALUES (1, 'x')"}) {
    const auto answer = Ask(sql);
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kInvalidArgument, _)) << sql;
  }
  EXPECT_THAT(*store_->QueryMeasurements({}, {}), SizeIs(30));
}

TEST_F(AnalystTest, StopsAtItsBounds) {
  SqlLimits limits;
  limits.max_rows = 7;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto answer,
                               Ask("SELECT result_id FROM results", limits));
  EXPECT_EQ(answer.rows_size(), 7);
  EXPECT_TRUE(answer.truncated());
  limits.max_rows = 100;
  limits.max_bytes = 200;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      answer, Ask("SELECT measured_sha256 FROM results", limits));
  EXPECT_TRUE(answer.truncated());
  EXPECT_LT(answer.rows_size(), 20);
  EXPECT_THAT(Ask("SELECT hex(zeroblob(1000))", limits),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  EXPECT_THAT(Ask("SELECT zeroblob(100000000)"),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  limits.max_time = absl::Milliseconds(20);
  EXPECT_THAT(
      Ask("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
          " SELECT COUNT(*) FROM c",
          limits),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("20ms")));
}

TEST(DeflateTest, RoundTripsAndNoticesDamage) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(100'000, 'x')}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string small, Deflate(text));
    EXPECT_EQ(*Inflate(small, text.size()), text);
    EXPECT_THAT(Inflate(small, text.size() + 1),
                StatusIs(absl::StatusCode::kDataLoss, _));
  }
  EXPECT_THAT(Inflate("nonsense", 10),
              StatusIs(absl::StatusCode::kDataLoss, _));
  EXPECT_THAT(Inflate("x", size_t{1} << 40),
              StatusIs(absl::StatusCode::kDataLoss, _));
}

}  // namespace
}  // namespace optfarm::storage
