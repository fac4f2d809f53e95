// Results are found by every filter as a plain look at all rows finds them, and
// survive backups.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/metadata_store.h"
#include "tests/storage/results_store.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
void MakeCommon(SqlDatabase& db, const std::string& tag) {
  const bool is_sqlite = dynamic_cast<SqliteDatabase*>(&db) != nullptr;
  if (is_sqlite) {
    // There are no such results, which is checked otherwise.
    auto& sqlite = static_cast<SqliteDatabase&>(db);
    ASSERT_THAT(sqlite.Run("PRAGMA foreign_keys = OFF"), IsOk());
  }
  SqlTransaction transaction(db);
  if (!is_sqlite) {
    ASSERT_THAT(
        db.Prepare("SET LOCAL session_replication_role = replica").Run(),
        IsOk());
  }
  {
    SqlStatement insert = db.Prepare(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n WHERE i < 25000)"
        " INSERT INTO result_tags SELECT ?1, 1000000, i FROM n");
    insert.BindText(1, tag);
    ASSERT_THAT(insert.Run(), IsOk());
  }
  ASSERT_THAT(transaction.Commit(), IsOk());
}

TEST_P(ResultsTest, EveryFilterFindsWhatALookAtAllRowsFinds) {
  const std::vector<MeasurementRecord> records = CommitMany(400);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto without_memory,
                               place_.OpenBeside(kStart, 0));
  const std::unique_ptr<SqlDatabase> db = place_.Connect();
  std::mt19937 random(11);
  // A question is many statements, and each takes its way.
  const int rounds = GetParam() == Engine::kSqlite ? 1200 : 60;
  for (int round = 0; round < rounds; ++round) {
    if (round == rounds / 2) {
      MakeCommon(*db, "nightly");
      MakeCommon(*db, "odd");
    }
    MetadataStore& store = round % 2 == 0 ? *store_ : *without_memory;
    const MeasurementFilter filter = RandomFilter(random);
    const PageRequest page{
        random() % 2 == 0 ? 0 : static_cast<int64_t>(1 + random() % 420),
        static_cast<int>(1 + random() % 30)};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                                 store.QueryMeasurements(filter, page));
    ASSERT_EQ(IdsOf(found), IdsAmongAll(records, filter, page))
        << "round " << round;
    // The same rows, whatever way they are asked for.
    OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList list,
                                 store.ListSeries(filter, {1000, 1000}));
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
TEST_P(ResultsTest, WhatIsRareAmongTheNewestIsFoundFurtherBack) {
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
  MakeCommon(*place_.Connect(), "odd");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto without_memory,
                               place_.OpenBeside(kStart, 0));
  MeasurementFilter rare;
  rare.metrics.push_back({v1::MEDIAN_US, 0, 900});
  MeasurementFilter rare_tag;
  rare_tag.tag = "odd";
  MeasurementFilter both = rare;
  both.tag = "odd";
  for (const MeasurementFilter& filter : {rare, rare_tag, both}) {
    for (const int limit : {1, 30, 1000}) {
      const PageRequest page{0, limit};
      for (MetadataStore* store : {store_.get(), without_memory.get()}) {
        OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                                     store->QueryMeasurements(filter, page));
        EXPECT_EQ(IdsOf(found), IdsAmongAll(records, filter, page));
      }
    }
  }
}

TEST_P(ResultsTest, ResultComesBackAsItWasTaken) {
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

TEST_P(ResultsTest, ResultsComeByIdsInTheirOrderWhereTheyAreThere) {
  CommitMany(20);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto all,
                               store_->QueryMeasurements({}, {0, 20}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                               store_->GetMeasurements({7, 1000, 3, 20}));
  ASSERT_THAT(found, SizeIs(3));
  const size_t places[] = {13, 17, 0};
  for (size_t i = 0; i < found.size(); ++i) {
    const MeasurementRecord& same = all[places[i]];
    EXPECT_EQ(found[i].result_id, same.result_id);
    EXPECT_EQ(found[i].job_id, same.job_id);
    EXPECT_EQ(found[i].tags, same.tags);
    EXPECT_EQ(found[i].measurement.SerializeAsString(),
              same.measurement.SerializeAsString());
  }
}

TEST_P(ResultsTest, SeriesComeNewestFirstWithDetails) {
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

TEST_P(ResultsTest, PointsThatLieFarApartHaveTheirDetailsToo) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("job", {}));
  // One in so many is asked for, with ever more between.
  std::vector<int> wanted;
  for (int i = 0; i < 200; ++i) {
    const bool high = i % (i / 20 + 1) == 0;
    if (high) wanted.push_back(i);
    batch.measurements.push_back(
        Measured("job", i, high ? 1000 + i : 100, "pi4", i));
  }
  Commit(batch);
  MeasurementFilter filter;
  filter.metrics.push_back({v1::MEDIAN_US, 1000});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList list,
                               store_->ListSeries(filter, {1, 1000}));
  ASSERT_THAT(list.series, SizeIs(1));
  const std::vector<PointRecord>& points = list.series[0].points;
  ASSERT_THAT(points, SizeIs(wanted.size()));
  for (size_t i = 0; i < points.size(); ++i) {
    const int number = wanted[wanted.size() - 1 - i];
    EXPECT_EQ(points[i].median_us, 1000 + number);
    EXPECT_EQ(points[i].create_time, kStart + absl::Seconds(number));
    EXPECT_EQ(points[i].measured_sha256, Sha(number + 1));
    EXPECT_EQ(points[i].job_id, "job");
  }
}

TEST_P(ResultsTest, SeriesEndWhereEnoughWasRead) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("job", {}));
  for (int i = 0; i < 6; ++i) {
    batch.measurements.push_back(Measured("job", i, 100 + i));
  }
  Commit(batch);
  SeriesRequest request;
  request.enough = [](absl::Span<const PointNumbers> points) {
    return points.back().median_us < 104;
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList list,
                               store_->ListSeries({}, request));
  ASSERT_THAT(list.series, SizeIs(1));
  ASSERT_THAT(list.series[0].points, SizeIs(3));
  EXPECT_EQ(list.series[0].points[2].median_us, 103);
}

TEST_P(ResultsTest, ClockSetBackDoesNotPutResultsOutOfOrder) {
  WriteBatch batch;
  batch.new_jobs.push_back(JobWith("job", {}));
  batch.measurements.push_back(Measured("job", 100, 1));
  batch.measurements.push_back(Measured("job", 50, 2));
  Commit(batch);
  MeasurementFilter filter;
  filter.from_time = kStart + absl::Seconds(100);
  EXPECT_THAT(*store_->QueryMeasurements(filter, {}), SizeIs(2));
}

TEST_P(ResultsTest, IdsAreNeverGivenAgain) {
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

OPTFARM_INSTANTIATE_ENGINES(ResultsTest);

using SqliteBackupTest = SqliteResultsTest;

TEST_F(SqliteBackupTest, BackupOpensAsAStoreAndHasWhatWasThere) {
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

TEST_F(SqliteBackupTest, FailedBackupLeavesNothing) {
  const std::string folder = JoinPath(folder_, "backups");
  EXPECT_FALSE(store_->Backup(JoinPath(folder, "copy.db")).ok());
  ASSERT_THAT(MakeFolders(folder), IsOk());
  EXPECT_FALSE(store_->Backup(JoinPath(folder, "no/copy.db")).ok());
  EXPECT_THAT(*ListFolder(folder), IsEmpty());
}

}  // namespace
}  // namespace optfarm::storage
