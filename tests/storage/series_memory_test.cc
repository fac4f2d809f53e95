// Answers are the same whether the numbers of results are in memory, only the
// newest of them are, or none: under writes, retention, restarts, and while
// others write.

#include "storage/sql/series_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/sql/run.h"
#include "tests/storage/results_store.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::Not;
using ::testing::SizeIs;

// Room for some points of each series, but not for all.
constexpr int64_t kSmall = 32 << 10;

std::string TextOf(const SeriesKey& key) {
  return absl::StrCat(key.project, "/", key.device, "/", key.model_name, "/",
                      key.recipe_name, "/", key.variant, "/", key.threads);
}

std::string TextOf(const PointNumbers& p) {
  return absl::StrCat(" ", p.result_id, ":", p.median_us, ",", p.p90_us, ",",
                      p.peak_memory_bytes, ",", p.file_size_bytes, ",",
                      p.noisy);
}

// A farm whose jobs come, are measured, end and are let go of at random.
class RandomFarm {
 public:
  explicit RandomFarm(uint32_t seed) : random_(seed) {}

  int Pick(int n) {
    return static_cast<int>(random_() % static_cast<uint32_t>(n));
  }
  bool Chance(int n) { return Pick(n) == 0; }

  // A job that has ended, with its results.
  WriteBatch NextJob() {
    const std::string id = absl::StrCat("job", ++jobs_);
    WriteBatch batch;
    NewJob& job = batch.new_jobs.emplace_back();
    job.job.job_id = id;
    job.job.project = Chance(3) ? "other" : kDefaultProject;
    job.job.create_time = job.job.end_time = Now();
    job.job.state = Chance(8) ? v1::RUNNING : v1::SUCCEEDED;
    if (Chance(2)) job.job.spec.add_tags("nightly");
    if (Chance(2)) job.job.spec.add_tags("all");
    if (Chance(3)) job.job.spec.add_tags(absl::StrCat("commit=", Pick(9)));
    TaskRecord& task = job.tasks.emplace_back();
    task.task_id = id + "/t";
    task.job_id = id;
    task.create_time = Now();
    for (int i = Pick(20); i >= 0; --i) {
      batch.measurements.push_back(Measure(id));
    }
    return batch;
  }

  MeasurementFilter NextFilter() {
    MeasurementFilter filter;
    if (Chance(4)) filter.project = Chance(2) ? "other" : kDefaultProject;
    if (Chance(4)) filter.device = absl::StrCat("pi", Pick(3));
    if (Chance(6)) filter.variant = "int8";
    if (Chance(6)) filter.threads = 1;
    if (Chance(8)) filter.recipe_name = "int8";
    if (Chance(3)) filter.tag = Chance(2) ? "nightly" : "all";
    if (Chance(6)) filter.tag = absl::StrCat("commit=", Pick(10));
    if (Chance(12)) filter.job_id = absl::StrCat("job", 1 + Pick(jobs_ + 1));
    if (Chance(6)) filter.model = ModelFilter{Sha(Pick(9)), ""};
    if (Chance(6)) filter.model = ModelFilter{"", "m1.pb"};
    if (Chance(9)) filter.model = ModelFilter{Sha(Pick(9)), "m0.pb"};
    if (Chance(5)) filter.from_time = kStart + absl::Seconds(Pick(jobs_ + 1));
    if (Chance(5)) filter.until_time = kStart + absl::Seconds(Pick(jobs_ + 1));
    for (const v1::Metric metric :
         {v1::MEDIAN_US, v1::P90_US, v1::PEAK_MEMORY_BYTES,
          v1::FILE_SIZE_BYTES}) {
      if (!Chance(8)) continue;
      filter.metrics.push_back({metric, 90.0 + Pick(30)});
      if (Chance(2)) filter.metrics.back().below = 100.0 + Pick(30);
    }
    return filter;
  }

  absl::Time Now() const { return kStart + absl::Seconds(jobs_); }

 private:
  MeasurementRecord Measure(const std::string& job) {
    MeasurementRecord record;
    record.job_id = job;
    record.task_id = job + "/t";
    record.create_time = Now();
    record.recipe_name = "int8";
    const int model = Pick(2);
    record.source_model.set_name(absl::StrCat("m", model, ".pb"));
    record.source_model.mutable_digest()->set_sha256(Sha(Pick(8)));
    v1::Measurement& m = record.measurement;
    m.mutable_model()->set_sha256(Sha(Pick(8)));
    m.set_device(absl::StrCat("pi", Pick(2)));
    m.set_variant("int8");
    m.set_threads(1);
    m.set_median_us(90 + Pick(30));
    m.set_p90_us(m.median_us() + Pick(10));
    m.set_peak_memory_bytes(90 + Pick(30));
    m.set_file_size_bytes(90 + Pick(30));
    m.set_noisy(Chance(4));
    return record;
  }

  std::mt19937 random_;
  int jobs_ = 0;
};

class SeriesMemoryTest : public ResultsTest {
 protected:
  std::unique_ptr<MetadataStore> OpenWith(int64_t results_bytes) {
    auto store = place_.OpenBeside(kStart, results_bytes);
    EXPECT_THAT(store, IsOk());
    return *std::move(store);
  }

  void Fill(int jobs) {
    RandomFarm farm(3);
    for (int i = 0; i < jobs; ++i) Commit(farm.NextJob());
  }
};

std::string Page(MetadataStore& store, const MeasurementFilter& filter,
                 const PageRequest& page) {
  const auto records = store.QueryMeasurements(filter, page);
  EXPECT_THAT(records, IsOk());
  std::string text;
  for (const MeasurementRecord& record : *records) {
    absl::StrAppend(&text, " ", record.result_id);
  }
  return text;
}

std::string Series(MetadataStore& store, const MeasurementFilter& filter,
                   const SeriesRequest& request) {
  const auto list = store.ListSeries(filter, request);
  EXPECT_THAT(list, IsOk());
  std::string text = list->more ? "more\n" : "";
  for (const SeriesRecord& series : list->series) {
    absl::StrAppend(&text, TextOf(series.key));
    for (const PointRecord& point : series.points) {
      absl::StrAppend(&text, TextOf(point), ",", point.job_id, ",",
                      point.measured_sha256);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// What a rule that looks at the newest values would be given.
std::string Taken(MetadataStore& store, const MeasurementFilter& filter,
                  int most, double enough) {
  std::string text;
  SeriesRequest request{1000, most, false};
  request.enough = [&](absl::Span<const PointNumbers> points) {
    return points.back().median_us > enough;
  };
  request.take = [&](const SeriesKey& key,
                     absl::Span<const PointNumbers> points) {
    absl::StrAppend(&text, TextOf(key));
    for (const PointNumbers& point : points) {
      absl::StrAppend(&text, TextOf(point));
    }
    absl::StrAppend(&text, "\n");
  };
  const auto list = store.ListSeries(filter, request);
  EXPECT_THAT(list, IsOk());
  EXPECT_THAT(list->series, SizeIs(0));
  return text;
}

TEST_P(SeriesMemoryTest, AnswersAreThoseOfTheDatabase) {
  RandomFarm farm(1);
  const auto without = OpenWith(0);
  auto small = OpenWith(kSmall);
  size_t found = 0;
  const bool is_sqlite = GetParam() == Engine::kSqlite;
  for (int round = 0; round < (is_sqlite ? 120 : 24); ++round) {
    Commit(farm.NextJob());
    if (farm.Chance(12)) {
      RetentionPolicy policy;
      policy.jobs_before = farm.Now() - absl::Seconds(farm.Pick(60));
      policy.max_rows = 1 + farm.Pick(400);
      ASSERT_THAT(store_->Prune(policy), IsOk());
    }
    if (round == (is_sqlite ? 70 : 15)) {
      store_ = OpenWith(kResultsBytes);
      small = OpenWith(kSmall);
    }
    for (int question = 0; question < 6; ++question) {
      const MeasurementFilter filter = farm.NextFilter();
      const PageRequest page{farm.Chance(2) ? 0 : 1 + farm.Pick(1500),
                             1 + farm.Pick(120)};
      const SeriesRequest series{static_cast<size_t>(1 + farm.Pick(9)),
                                 1 + farm.Pick(150)};
      const int most = 1 + farm.Pick(200);
      const double enough = 90 + farm.Pick(60);
      const std::string ids = Page(*without, filter, page);
      const std::string lines = Series(*without, filter, series);
      const std::string taken = Taken(*without, filter, most, enough);
      found += lines.size();
      for (MetadataStore* store : {store_.get(), small.get()}) {
        SCOPED_TRACE(absl::StrCat("round ", round, " question ", question,
                                  store == small.get() ? " small" : ""));
        ASSERT_EQ(Page(*store, filter, page), ids);
        ASSERT_EQ(Series(*store, filter, series), lines);
        ASSERT_EQ(Taken(*store, filter, most, enough), taken);
      }
    }
  }
  EXPECT_GT(found, is_sqlite ? 100'000u : 10'000u);
}

TEST_P(SeriesMemoryTest, KeepsTheNewestWithinItsBound) {
  Fill(120);
  const std::unique_ptr<SqlDatabase> db = place_.Connect();
  sql::SeriesMemory all(kResultsBytes);
  sql::SeriesMemory newest(kSmall);
  sql::SeriesMemory none(1000);
  const auto catch_up = [&] {
    SqlTransaction snapshot(*db, SqlTransaction::Mode::kRead);
    for (sql::SeriesMemory* memory : {&all, &newest, &none}) {
      ASSERT_THAT(memory->CatchUp(*db), IsOk());
    }
  };
  for (int round = 0; round < 2; ++round) {
    catch_up();
    EXPECT_FALSE(none.usable());
    EXPECT_EQ(none.points(), 0);
    ASSERT_TRUE(all.usable());
    ASSERT_TRUE(newest.usable());
    EXPECT_LE(newest.bytes(), kSmall);
    EXPECT_GT(newest.points(), 8 * 25);
    EXPECT_LT(newest.points(), all.points());
    for (const auto& series : all.series()) {
      EXPECT_FALSE(series->has_older());
      const auto* part = newest.Find(series->series_id);
      ASSERT_NE(part, nullptr);
      EXPECT_EQ(part->has_older(), part->points.size() < series->points.size());
      EXPECT_EQ(part->points.back().result_id, series->points.back().result_id);
    }
    // More come, so that some of those here must go.
    RandomFarm farm(9);
    for (int i = 0; i < 60; ++i) {
      WriteBatch batch = farm.NextJob();
      const std::string id = absl::StrCat("more", i);
      batch.new_jobs[0].job.job_id = batch.new_jobs[0].tasks[0].job_id = id;
      batch.new_jobs[0].tasks[0].task_id = id;
      for (MeasurementRecord& record : batch.measurements) {
        record.job_id = record.task_id = id;
      }
      if (round == 0) Commit(batch);
    }
  }
}

absl::Status CatchUp(sql::SeriesMemory& memory, SqlDatabase& db) {
  return RunInTransaction(db, SqlTransaction::Mode::kRead,
                          [&] { return memory.CatchUp(db); });
}

TEST_P(SeriesMemoryTest, BeginsAnewAfterAnError) {
  Fill(5);
  const std::unique_ptr<SqlDatabase> db = place_.Connect();
  EnginePlace other(GetParam());
  OPTFARM_MAKE_PLACE(other);
  const std::unique_ptr<SqlDatabase> empty = other.Connect();
  sql::SeriesMemory memory(kResultsBytes);
  EXPECT_THAT(CatchUp(memory, *db), IsOk());
  const int64_t points = memory.points();
  EXPECT_GT(points, 0);
  EXPECT_THAT(CatchUp(memory, *empty), Not(IsOk()));
  EXPECT_FALSE(memory.usable());
  EXPECT_THAT(CatchUp(memory, *db), IsOk());
  EXPECT_TRUE(memory.usable());
  EXPECT_EQ(memory.points(), points);
}

// Each job measures once on each of three devices, so that in any one state of
// the database all series are as long as each other.
TEST_P(SeriesMemoryTest, EachAnswerIsOfOneStateWhileOthersWrite) {
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 150; ++i) {
      WriteBatch batch;
      const std::string id = absl::StrCat("job", i);
      batch.new_jobs.push_back(JobWith(id, {"tag"}));
      batch.new_jobs[0].job.state = v1::SUCCEEDED;
      batch.new_jobs[0].job.end_time = kStart + absl::Seconds(i);
      for (const char* device : {"a", "b", "c"}) {
        batch.measurements.push_back(Measured(id, i, 100 + i, device));
      }
      EXPECT_THAT(store_->Commit(batch), IsOk());
      if (i % 10 != 9) continue;
      RetentionPolicy policy;
      policy.jobs_before = kStart + absl::Seconds(i - 40);
      EXPECT_THAT(store_->Prune(policy), IsOk());
    }
    done = true;
  });
  const auto ask = [&] {
    MeasurementFilter tagged;
    tagged.tag = "tag";
    for (bool last = false; !last;) {
      last = done;
      for (const MeasurementFilter& filter : {MeasurementFilter(), tagged}) {
        const auto list = store_->ListSeries(filter, {10, 1000, false});
        ASSERT_THAT(list, IsOk());
        for (const SeriesRecord& series : list->series) {
          EXPECT_EQ(list->series.size(), 3u);
          EXPECT_EQ(series.points.size(), list->series[0].points.size());
          EXPECT_EQ(series.points[0].median_us,
                    list->series[0].points[0].median_us);
        }
      }
    }
  };
  std::thread other(ask);
  ask();
  other.join();
  writer.join();
  const auto list = store_->ListSeries({}, {10, 1000, false});
  ASSERT_THAT(list->series, SizeIs(3));
  // Jobs from the 109th on have stayed.
  EXPECT_THAT(list->series[0].points, SizeIs(150 - 109));
}

OPTFARM_INSTANTIATE_ENGINES(SeriesMemoryTest);

}  // namespace
}  // namespace optfarm::storage
