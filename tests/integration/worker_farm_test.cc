// Optimize jobs through real processes: what the farm promises when a server,
// a worker or a task's process dies, runs out of something, or is told to stop.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <set>
#include <string>

#include "tests/integration/farm.h"

namespace optfarm::integration {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> ArtifactNames(const v1::Job& job) {
  std::set<std::string> names;
  for (const v1::Artifact& artifact : job.artifacts()) {
    EXPECT_TRUE(names.insert(artifact.name()).second)
        << artifact.name() << " is there twice";
  }
  return names;
}

// One report, one set of files, and a result that can be fetched.
void ExpectOneGoodResult(Farm* farm, const v1::Job& job) {
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.failure().DebugString();
  ASSERT_EQ(job.tasks_size(), 1);
  EXPECT_EQ(job.tasks(0).state(), v1::TASK_DONE);
  EXPECT_TRUE(job.report().passed());
  EXPECT_TRUE(ArtifactNames(job).contains("optimized.pb"));
  const std::string graph = farm->Artifact(job, "optimized.pb");
  EXPECT_EQ(static_cast<int64_t>(graph.size()),
            job.report().optimized_model().size_bytes());
}

TEST(WorkerFarmTest, AnAcknowledgedJobSurvivesTheServersDeath) {
  Farm farm;
  auto worker = farm.StartWorker("w1");
  const v1::JobSpec spec = farm.DigitsJob("fp32");
  worker->Terminate();
  const std::string job_id = farm.Submit(spec);
  farm.server().Kill9();
  farm.StartServer();
  EXPECT_EQ(farm.Get(job_id).state(), v1::QUEUED);
  worker = farm.StartWorker("w1");
  ExpectOneGoodResult(&farm, farm.AwaitEnd(job_id));
}

// With leases that no busy machine lets end: a second attempt would mean that
// the worker lost what it held. How soon it calls again within a short lease is
// SynchronizerTest's to show, on a clock of its own.
TEST(WorkerFarmTest, AWorkerOutlivesItsServerAndFinishesWhatItHolds) {
  Farm farm({"--lease_seconds=300"});
  const auto worker = farm.StartWorker("w1");
  const std::string job_id = farm.Submit(farm.DigitsJob("int8"));
  const pid_t task = worker->AwaitTaskProcess();
  ::kill(task, SIGSTOP);
  farm.server().Kill9();
  farm.StartServer();
  ::kill(task, SIGCONT);
  const v1::Job job = farm.AwaitEnd(job_id);
  ExpectOneGoodResult(&farm, job);
  EXPECT_EQ(job.tasks(0).attempt(), 1);
  EXPECT_EQ(job.tasks(0).holder(), "w1");
  EXPECT_TRUE(worker->LogHas("the server answers"));
}

TEST(WorkerFarmTest, AKilledWorkersTaskIsDoneByAnother) {
  Farm farm;
  const auto first = farm.StartWorker("w1");
  const std::string job_id = farm.Submit(farm.DigitsJob("int8"));
  const pid_t task = first->AwaitTaskProcess();
  ::kill(task, SIGSTOP);
  first->Kill9();
  // The child does not outlive its worker.
  EXPECT_TRUE(Await([&] { return !IsAlive(task); }));
  const auto second = farm.StartWorker("w2");
  const v1::Job job = farm.AwaitEnd(job_id);
  ExpectOneGoodResult(&farm, job);
  EXPECT_EQ(job.tasks(0).attempt(), 2);
  EXPECT_EQ(job.tasks(0).holder(), "w2");
}

TEST(WorkerFarmTest, ATaskThatCrashesIsTriedAgain) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  const std::string job_id = farm.Submit(farm.DigitsJob("int8"));
  ::kill(worker->AwaitTaskProcess(), SIGSEGV);
  std::string failure;
  EXPECT_TRUE(Await([&] {
    failure = farm.Get(job_id).tasks(0).failure().message();
    return !failure.empty();
  }));
  EXPECT_THAT(failure, HasSubstr("signal 11"));
  const v1::Job job = farm.AwaitEnd(job_id);
  ExpectOneGoodResult(&farm, job);
  EXPECT_EQ(job.tasks(0).failed_attempts(), 1);
}

// Submits a job that a limit of the worker ends. `hold`: its process is stopped
// as soon as it is there, so that it cannot end by itself.
void ExpectLimit(const std::string& flag,
                 const std::function<v1::JobSpec(Farm*)>& make_job,
                 bool hold = false) {
  Farm farm;
  const auto worker = farm.StartWorker("w1", {flag});
  const std::string job_id = farm.Submit(make_job(&farm));
  if (hold) ::kill(worker->AwaitTaskProcess(), SIGSTOP);
  const v1::Job job = farm.AwaitEnd(job_id);
  EXPECT_EQ(job.state(), v1::FAILED);
  EXPECT_EQ(job.failure().kind(), v1::Failure::USER);
  EXPECT_THAT(job.failure().message(), HasSubstr(flag));
  // Not tried again, and the log is kept.
  EXPECT_EQ(job.tasks(0).attempt(), 1);
  EXPECT_THAT(farm.Artifact(job, "task.log"), HasSubstr(flag));
  EXPECT_EQ(worker->Terminate().exit_code, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// max(x + column + row): a small file that needs 600 MB to run.
v1::JobSpec HungryJob(Farm* farm) {
  const auto constant = [](const char* name, const char* shape) {
    return absl::StrCat("node { name: '", name, "' op: 'Const'",
                        " attr { key: 'dtype' value { type: DT_FLOAT } }",
                        " attr { key: 'value' value { tensor {",
                        " dtype: DT_FLOAT float_val: 1 tensor_shape { ", shape,
                        " } } } } }\n");
  };
  const auto node = [](const char* name, const char* op, const char* inputs,
                       const char* attrs) {
    return absl::StrCat("node { name: '", name, "' op: '", op, "' ", inputs,
                        " attr { key: 'T' value { type: DT_FLOAT } } ", attrs,
                        " }\n");
  };
  const std::string graph = absl::StrCat(
      "node { name: 'x' op: 'Placeholder'",
      " attr { key: 'dtype' value { type: DT_FLOAT } }",
      " attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 1 }",
      " } } } }\n", constant("column", "dim { size: 12000 } dim { size: 1 }"),
      constant("row", "dim { size: 1 } dim { size: 12000 }"),
      node("tall", "Add", "input: 'x' input: 'column'", ""),
      node("square", "Add", "input: 'tall' input: 'row'", ""),
      "node { name: 'axes' op: 'Const'",
      " attr { key: 'dtype' value { type: DT_INT32 } }",
      " attr { key: 'value' value { tensor { dtype: DT_INT32 int_val: 0",
      " int_val: 1 tensor_shape { dim { size: 2 } } } } } }\n",
      node("largest", "Max", "input: 'square' input: 'axes'",
           "attr { key: 'Tidx' value { type: DT_INT32 } }"
           " attr { key: 'keep_dims' value { b: true } }"));
  const std::string path = JoinPath(farm->folder(), "hungry.pbtxt");
  EXPECT_TRUE(WriteFileAtomically(path, graph).ok());
  // One sample: 1.0.
  std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }";
  header.resize(117, ' ');
  const std::string array =
      absl::StrCat(absl::string_view("\x93NUMPY\x01\0\x76\0", 10), header, "\n",
                   absl::string_view("\0\0\x80\x3f", 4));
  const std::string array_path = JoinPath(farm->folder(), "x.npy");
  EXPECT_TRUE(WriteFileAtomically(array_path, array).ok());
  v1::JobSpec spec;
  *spec.mutable_model() = farm->Upload(path);
  spec.set_recipe_name("fp32");
  v1::DataSource& source = *spec.mutable_calibration()->add_sources();
  source.set_role(v1::DataSource::INPUT);
  source.set_input("x");
  v1::DataFile& file = *source.add_files();
  file.set_path("x.npy");
  *file.mutable_digest() = farm->Upload(array_path).digest();
  spec.set_no_cache(true);
  return spec;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(WorkerFarmTest, ATaskThatNeedsTooMuchMemoryFailsAlone) {
  ExpectLimit("--max_memory_mb=400", &HungryJob);
}
#endif
#endif

TEST(WorkerFarmTest, ATaskThatTakesTooLongFailsAlone) {
  ExpectLimit(
      "--max_task_seconds=1",
      [](Farm* farm) { return farm->DigitsJob("int8"); },
      /*hold=*/true);
}

TEST(WorkerFarmTest, CancellingAJobKillsItsProcess) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  const v1::JobSpec spec = farm.DigitsJob("int8");
  const std::string job_id = farm.Submit(spec);
  const pid_t task = worker->AwaitTaskProcess();
  ::kill(task, SIGSTOP);
  farm.Cancel(job_id);
  EXPECT_TRUE(Await([&] { return !IsAlive(task); }));
  EXPECT_EQ(farm.AwaitEnd(job_id).state(), v1::CANCELLED);
  // The worker is free for the next.
  ExpectOneGoodResult(&farm, farm.AwaitEnd(farm.Submit(spec)));
}

TEST(WorkerFarmTest, AWorkerThatIsToldToStopGivesItsTaskBack) {
  Farm farm;
  const auto first = farm.StartWorker("w1");
  const std::string job_id = farm.Submit(farm.DigitsJob("int8"));
  const pid_t task = first->AwaitTaskProcess();
  ::kill(task, SIGSTOP);
  EXPECT_EQ(first->Terminate().exit_code, 0);
  EXPECT_FALSE(IsAlive(task));
  EXPECT_THAT(farm.Get(job_id).tasks(0).state(),
              AnyOf(v1::READY, v1::TASK_DONE));
  const auto second = farm.StartWorker("w2");
  const v1::Job job = farm.AwaitEnd(job_id);
  ExpectOneGoodResult(&farm, job);
  EXPECT_EQ(job.tasks(0).failed_attempts(), 0);
}

TEST(WorkerFarmTest, AWorkerEndsWhenThereIsNothingToDo) {
  Farm farm;
  // The server knows the recipes of whoever was there.
  farm.StartWorker("w1")->Terminate();
  const std::string job_id = farm.Submit(farm.DigitsJob("fp32"));
  const auto worker = farm.StartWorker("w1", {"--exit_when_idle=3s"});
  const auto exit = worker->AwaitExit();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->exit_code, 0);
  EXPECT_TRUE(worker->LogHas("there was no task for 3s: stopping"));
  EXPECT_TRUE(worker->LogHas("stopped"));
  // What it had begun it finished first.
  const v1::Job job = farm.Get(job_id);
  ExpectOneGoodResult(&farm, job);
  EXPECT_EQ(job.tasks(0).attempt(), 1);
}

TEST(WorkerFarmTest, ABadModelCostsItsOwnJobOnly) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  v1::JobSpec good = farm.DigitsJob("fp32");
  v1::JobSpec bad = good;
  const std::string path = JoinPath(farm.folder(), "truncated.pb");
  const std::string bytes =
      ReadFile(testing::SourcePath("examples/digits/digits.pb")).value();
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, bytes.substr(0, 100000)));
  *bad.mutable_model() = farm.Upload(path);
  const v1::Job failed = farm.AwaitEnd(farm.Submit(bad));
  EXPECT_EQ(failed.state(), v1::FAILED);
  EXPECT_EQ(failed.failure().kind(), v1::Failure::USER);
  EXPECT_EQ(failed.tasks(0).attempt(), 1);
  EXPECT_THAT(failed.failure().message(), HasSubstr("truncated.pb"));
  ExpectOneGoodResult(&farm, farm.AwaitEnd(farm.Submit(good)));
}

TEST(WorkerFarmTest, TwoWorkersDoNotShareAWorkFolder) {
  Farm farm;
  const auto first = farm.StartWorker("w1");
  SubprocessOptions options;
  options.argv = {testing::ProgramPath("optfarm-worker"),
                  absl::StrCat("--work_dir=", farm.folder(), "/w1")};
  options.output_file = JoinPath(farm.folder(), "second.log");
  auto second = Subprocess::Start(options);
  OPTFARM_ASSERT_OK(second);
  const auto exit = second->Wait(kPatience);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->exit_code, 1);
  EXPECT_THAT(ReadFile(options.output_file).value(),
              HasSubstr("in use by another process"));
}

}  // namespace
}  // namespace optfarm::integration
