// What SQLite alone does: files that are damaged, full, older or newer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "storage/sqlite/analyst.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/durable_log.h"
#include "storage/sqlite/metadata_store.h"
#include "storage/sqlite/migrations.h"
#include "tests/storage/sample_job.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SqliteMetadataStoreTest : public MetadataStoreTest {
 protected:
  SqliteMetadataStoreTest() : MetadataStoreTest(Engine::kSqlite) {}

  void SetUp() override {
    MetadataStoreTest::SetUp();
    folder_ = place_.folder();
    path_ = place_.path();
  }

  std::string folder_;
  std::string path_;
};

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

WriteBatch WithLargeDevice(absl::string_view name) {
  WriteBatch batch;
  DeviceRecord& device = batch.devices.emplace_back();
  device.info.set_name(std::string(name));
  device.first_seen = device.last_seen = kNow;
  device.reason = std::string(2'000'000, 'x');
  return batch;
}

// The next server writes the log of a killed one over itself: all of it, also
// when it is larger than what SQLite writes at once.
TEST_F(SqliteMetadataStoreTest, TakesOverALargeLogOfAKilledServer) {
  ASSERT_THAT(store_->Commit(WithLargeDevice("pi4")), IsOk());
  const std::string left = JoinPath(folder_, "left.db");
  for (const char* part : {"", "-wal"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                                 ReadFile(path_ + part));
    ASSERT_THAT(WriteFileAtomically(left + part, bytes), IsOk());
  }
  ASSERT_GT(std::filesystem::file_size(left + "-wal"), 1 << 20);
  const std::string link = JoinPath(folder_, "link.db");
  std::filesystem::create_symlink(left, link);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto store,
                               OpenSqliteMetadataStore(link, kNow));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto devices, store->ListDevices());
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].info.name(), "pi4");
}

// Another connection may be writing to it.
TEST_F(SqliteMetadataStoreTest, LeavesALogAloneThatIsInUse) {
  ASSERT_THAT(store_->Commit(WithLargeDevice("pi4")), IsOk());
  const std::string log = path_ + "-wal";
  const auto long_ago =
      std::filesystem::last_write_time(log) - std::chrono::hours(1);
  std::filesystem::last_write_time(log, long_ago);
  EXPECT_THAT(MakeLogDurable(path_), IsOk());
  EXPECT_EQ(std::filesystem::last_write_time(log), long_ago);
  // And its own locks are as they were: the store still has the database.
  ASSERT_THAT(store_->Commit(WithLargeDevice("pi5")), IsOk());
  EXPECT_THAT(MakeLogDurable(path_), IsOk());
  EXPECT_THAT(*store_->ListDevices(), SizeIs(2));
}

class SqliteMigrationTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { EXPECT_EQ(place_.Make(), ""); }

  EnginePlace place_{Engine::kSqlite};
};

TEST_P(SqliteMigrationTest, OpensDatabaseOfOlderVersion) {
  const std::string& path = place_.path();
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

TEST_F(SqliteMetadataStoreTest, ArtifactsOfVersion14CountForTheirProject) {
  const std::string path = JoinPath(folder_, "older.db");
  v1::Task details;
  v1::Artifact& artifact = *details.add_artifacts();
  artifact.set_name("optimized.pb");
  artifact.mutable_digest()->set_sha256("made");
  artifact.mutable_digest()->set_size_bytes(7);
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto db, SqliteDatabase::Open(path));
    ASSERT_THAT(MigrateSqlite(*db, AllSqliteMigrations().subspan(0, 14), kNow),
                IsOk());
    ASSERT_THAT(
        db->Run("INSERT INTO jobs (job_id, spec_digest, state, name,"
                " recipe_name, model_sha256, model_name, create_time,"
                " from_cache, cached_from_job_id, spec_proto,"
                " calibration_proto, outcome_proto, project) VALUES"
                " ('old', '', 3, '', '', '', '', 1, 0, '', x'', x'', x'',"
                "  'vision');"
                "INSERT INTO project_blobs VALUES ('vision', 'model', 5)"),
        IsOk());
    SqlStatement insert = db->Prepare(
        "INSERT INTO tasks VALUES ('t', 'old', 0, 1, 1, 0, 0, 0, 1,"
        " '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, ?1)");
    insert.BindBlob(1, details.SerializeAsString());
    ASSERT_THAT(insert.Run(), IsOk());
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto store, OpenSqliteMetadataStore(path, kNow));
  EXPECT_EQ(store->GetProjectUsage("vision", kNow)->bytes, 12);
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
