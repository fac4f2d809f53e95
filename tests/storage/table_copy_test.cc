// A database's rows go to another one, of the same or of another engine, and
// nothing is lost, doubled or changed, also when the copy ended in the middle.

#include "storage/sql/table_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "storage/postgres/catalog.h"
#include "storage/sqlite/catalog.h"
#include "tests/storage/engines.h"
#include "tests/storage/sample_job.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::Contains;
using ::testing::Field;
using ::testing::Not;

class TableCopyTest
    : public ::testing::TestWithParam<std::tuple<Engine, Engine>> {
 protected:
  // A database with an up-to-date schema and a connection to it.
  struct Side {
    explicit Side(Engine engine) : place(engine) {}

    EnginePlace place;
    std::unique_ptr<SqlDatabase> db;
    SqlSide side;
  };

  void SetUp() override {
    for (Side* side : {&from_, &to_}) {
      OPTFARM_MAKE_PLACE(side->place);
      ASSERT_THAT(side->place.Open(kNow), IsOk());
      side->db = side->place.Connect();
      side->side = {side->db.get(), side->place.engine() == Engine::kSqlite
                                        ? &SqliteCatalog()
                                        : &PostgresCatalog()};
    }
    // The schema of SQLite begins with a row.
    {
      SqlTransaction transaction(*to_.db);
      SqlStatement remove = to_.db->Prepare("DELETE FROM environments");
      ASSERT_THAT(remove.Run(), IsOk());
      ASSERT_THAT(transaction.Commit(), IsOk());
    }
    Fill();
  }

  static MeasurementRecord Measured(const std::string& job_id, int i) {
    MeasurementRecord record;
    record.job_id = job_id;
    record.task_id = job_id + "/benchmark/pi4";
    record.create_time = kNow;
    record.recipe_name = "int8";
    record.source_model.set_name("model.pb");
    record.source_model.mutable_digest()->set_sha256("aa");
    record.measurement.set_device(absl::StrCat("device", i % 3));
    record.measurement.set_median_us(0.1 * i);
    record.measurement.add_samples_us(static_cast<float>(i));
    record.measurement.mutable_model()->set_sha256("bb");
    return record;
  }

  void Fill() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto store, from_.place.Open(kNow));
    for (int i = 0; i < 9; ++i) {
      const std::string id = absl::StrCat("job", i);
      WriteBatch batch;
      NewJob job = SampleJob(id);
      // A zero byte, which one of the engines has no text for.
      job.job.spec.add_tags(std::string("a\0b", 3));
      job.job.spec.add_tags("caf\xc3\xa9");
      batch.new_jobs.push_back(std::move(job));
      for (int k = 0; k < 1000; ++k) {
        EventRecord& event = batch.events.emplace_back();
        event.job_id = id;
        event.event.mutable_log()->set_text(absl::StrCat("line ", k));
      }
      for (int k = 0; k < 3; ++k) {
        batch.measurements.push_back(Measured(id, 10 * i + k));
      }
      ASSERT_THAT(store->Commit(batch), IsOk());
    }
  }

  // Copies every table that both have.
  void CopyAll() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto tables, RecordTables(from_.side));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto others, RecordTables(to_.side));
    for (const SqlTable& table : tables) {
      for (const SqlTable& other : others) {
        if (other.name != table.name) continue;
        EXPECT_EQ(other.columns, table.columns) << table.name;
        ASSERT_THAT(CopyRows(table, from_.side, to_.side,
                             [this](int64_t rows) { copied_ += rows; }),
                    IsOk())
            << table.name;
      }
    }
  }
  void ExpectTheSame() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto tables, RecordTables(to_.side));
    int64_t rows = 0;
    for (const SqlTable& table : tables) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const TableDigest there,
                                   DigestOf(table, to_.side));
      rows += there.rows;
      if (there.rows == 0) continue;
      OPTFARM_ASSERT_OK_AND_ASSIGN(const TableDigest here,
                                   DigestOf(table, from_.side));
      EXPECT_EQ(here, there) << table.name;
    }
    EXPECT_GT(rows, 9000 + 9 * 5);
  }

  Side from_{std::get<0>(GetParam())};
  Side to_{std::get<1>(GetParam())};
  int64_t copied_ = 0;
};

TEST_P(TableCopyTest, EveryRowArrivesOnce) {
  CopyAll();
  ExpectTheSame();
  const int64_t first = copied_;
  // There is nothing left to do.
  CopyAll();
  EXPECT_EQ(copied_, first);
  ExpectTheSame();
}

TEST_P(TableCopyTest, GoesOnWhereItEnded) {
  // What a copy that was killed leaves: a beginning of each table.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto tables, RecordTables(from_.side));
  CopyAll();
  const int64_t all = copied_;
  {
    SqlTransaction transaction(*to_.db);
    SqlStatement gone = to_.db->Prepare(
        "DELETE FROM events WHERE job_id > 'job4' OR (job_id = 'job4' AND"
        " sequence > 500)");
    ASSERT_THAT(gone.Run(), IsOk());
    ASSERT_THAT(transaction.Commit(), IsOk());
  }
  copied_ = 0;
  CopyAll();
  EXPECT_EQ(copied_, 4500);
  EXPECT_GT(all, 9000);
  ExpectTheSame();
}

TEST_P(TableCopyTest, NumbersGoOnAfterThoseThatWereGiven) {
  CopyAll();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto store, to_.place.Open(kNow));
  WriteBatch batch;
  batch.new_jobs.push_back(SampleJob("next"));
  batch.measurements.push_back(Measured("next", 1));
  ASSERT_THAT(store->Commit(batch), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto jobs, store->ListJobs({}, {0, 2}));
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].job.job_id, "next");
  EXPECT_EQ(jobs[0].job.number, jobs[1].job.number + 1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto results,
                               store->QueryMeasurements({}, {0, 2}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].job_id, "next");
  EXPECT_EQ(results[0].result_id, results[1].result_id + 1);
}

TEST_P(TableCopyTest, HalfACopyIsMarked) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string source, UnfinishedCopyOf(to_.side));
  EXPECT_EQ(source, "");
  ASSERT_THAT(MarkUnfinished(to_.side, "sqlite:/a"), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(source, UnfinishedCopyOf(to_.side));
  EXPECT_EQ(source, "sqlite:/a");
  // The mark is no record.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto tables, RecordTables(to_.side));
  EXPECT_THAT(tables, Not(Contains(Field(&SqlTable::name, "unfinished_copy"))));
  EXPECT_THAT(tables, Contains(Field(&SqlTable::name, "events")));
  ASSERT_THAT(MarkFinished(to_.side), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(source, UnfinishedCopyOf(to_.side));
  EXPECT_EQ(source, "");
}

std::string WayName(
    const ::testing::TestParamInfo<std::tuple<Engine, Engine>>& way) {
  const auto name = [](Engine engine) {
    return engine == Engine::kSqlite ? "Sqlite" : "Postgres";
  };
  return absl::StrCat(name(std::get<0>(way.param)), "To",
                      name(std::get<1>(way.param)));
}

INSTANTIATE_TEST_SUITE_P(
    , TableCopyTest,
    ::testing::Combine(::testing::Values(Engine::kSqlite, Engine::kPostgres),
                       ::testing::Values(Engine::kSqlite, Engine::kPostgres)),
    WayName);

}  // namespace
}  // namespace optfarm::storage
