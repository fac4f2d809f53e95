// A store of results of its own, and jobs and measurements to put
// into it.

#ifndef OPTFARM_TESTS_STORAGE_RESULTS_STORE_H_
#define OPTFARM_TESTS_STORAGE_RESULTS_STORE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/storage/engines.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {

inline const absl::Time kStart = absl::FromUnixSeconds(1700000000);

inline std::string Sha(int number) {
  return absl::StrCat("abcdef", 1000 + number);
}

// A store of results with nothing in it, by engine.
class ResultsTest : public ::testing::TestWithParam<Engine> {
 protected:
  explicit ResultsTest(Engine engine) : place_(engine) {}
  ResultsTest() : ResultsTest(GetParam()) {}

  void SetUp() override {
    OPTFARM_MAKE_PLACE(place_);
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, place_.Open(kStart));
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

  void Commit(WriteBatch batch) {
    ASSERT_THAT(store_->Commit(batch), optfarm::testing::IsOk());
  }

  // Ten jobs' worth of results that differ in everything a filter asks about.
  std::vector<MeasurementRecord> CommitMany(int count);

  EnginePlace place_;
  std::unique_ptr<MetadataStore> store_;
};

// Of what only SQLite does.
class SqliteResultsTest : public ResultsTest {
 protected:
  SqliteResultsTest() : ResultsTest(Engine::kSqlite) {}

  void SetUp() override {
    ResultsTest::SetUp();
    folder_ = place_.folder();
    path_ = place_.path();
  }

  std::string folder_;
  std::string path_;
};

inline std::vector<MeasurementRecord> ResultsTest::CommitMany(int count) {
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
  EXPECT_THAT(store_->Commit(batch), optfarm::testing::IsOk());
  return records;
}

}  // namespace optfarm::storage

#endif  // OPTFARM_TESTS_STORAGE_RESULTS_STORE_H_
