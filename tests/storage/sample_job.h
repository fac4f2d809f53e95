// A job with two tasks, and a store to put it into, by engine.

#ifndef OPTFARM_TESTS_STORAGE_SAMPLE_JOB_H_
#define OPTFARM_TESTS_STORAGE_SAMPLE_JOB_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/storage/engines.h"
#include "tests/storage/sample_time.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {

inline NewJob SampleJob(const std::string& id,
                        const std::string& recipe = "int8") {
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

class MetadataStoreTest : public ::testing::TestWithParam<Engine> {
 protected:
  explicit MetadataStoreTest(Engine engine) : place_(engine) {}
  MetadataStoreTest() : MetadataStoreTest(GetParam()) {}

  void SetUp() override {
    OPTFARM_MAKE_PLACE(place_);
    Reopen();
  }
  void Reopen() {
    store_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, place_.Open(kNow));
  }
  absl::Status Insert(const NewJob& job) {
    WriteBatch batch;
    batch.new_jobs.push_back(job);
    return store_->Commit(batch);
  }

  EnginePlace place_;
  std::unique_ptr<MetadataStore> store_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_TESTS_STORAGE_SAMPLE_JOB_H_
