// Benchmark tasks through real processes: a device is measured, its numbers
// arrive once, whoever dies in between.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <string>
#include <utility>

#include "tests/integration/farm.h"

namespace optfarm::integration {
namespace {

using ::testing::HasSubstr;

// The example, measured on `device` as shortly as is allowed.
v1::JobSpec MeasuredJob(Farm* farm, const std::string& device) {
  v1::JobSpec spec = farm->DigitsJob("int8");
  v1::BenchmarkSpec& benchmark = *spec.mutable_benchmark();
  benchmark.add_devices(device);
  benchmark.add_threads(1);
  benchmark.set_min_runs(50);
  benchmark.mutable_max_time()->set_seconds(5);
  return spec;
}

const v1::Task& BenchmarkTask(const v1::Job& job) {
  EXPECT_EQ(job.tasks_size(), 2);
  return job.tasks(1);
}

void ExpectOneMeasurementEach(const v1::Job& job, const std::string& device) {
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.failure().DebugString();
  std::map<std::pair<std::string, int>, int> counts;
  for (const v1::Measurement& m : job.measurements()) {
    ++counts[{m.variant(), m.threads()}];
    EXPECT_EQ(m.device(), device);
    EXPECT_GT(m.median_us(), 0);
    EXPECT_LE(m.min_us(), m.median_us());
    EXPECT_LE(m.median_us(), m.p99_us());
    EXPECT_GE(m.runs(), 50);
    EXPECT_GT(m.file_size_bytes(), 0);
    EXPECT_GT(m.peak_memory_bytes(), 0);
    EXPECT_FALSE(m.before().kernel().empty());
    EXPECT_FALSE(m.after().kernel().empty());
  }
  EXPECT_EQ(counts, (std::map<std::pair<std::string, int>, int>{
                        {{"float", 1}, 1}, {{"int8", 1}, 1}}));
}

// Blocks until the benchmark runs; returns its process.
pid_t AwaitBenchmark(const Program& agent) { return agent.AwaitTaskProcess(); }

TEST(AgentFarmTest, AJobIsMeasuredWhereItWasAskedFor) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  const auto agent = farm.StartAgent("dev1");
  const v1::Job job = farm.AwaitEnd(farm.Submit(MeasuredJob(&farm, "dev1")));
  ExpectOneMeasurementEach(job, "dev1");
  EXPECT_EQ(BenchmarkTask(job).device(), "dev1");
  EXPECT_EQ(agent->Terminate().exit_code, 0);
}

TEST(AgentFarmTest, AKilledAgentsBenchmarkIsDoneAgain) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  auto agent = farm.StartAgent("dev1");
  const std::string job_id = farm.Submit(MeasuredJob(&farm, "dev1"));
  const pid_t task = AwaitBenchmark(*agent);
  ::kill(task, SIGSTOP);
  agent->Kill9();
  EXPECT_TRUE(Await([&] { return !IsAlive(task); }));
  agent = farm.StartAgent("dev1");
  const v1::Job job = farm.AwaitEnd(job_id);
  ExpectOneMeasurementEach(job, "dev1");
  EXPECT_EQ(BenchmarkTask(job).attempt(), 2);
}

TEST(AgentFarmTest, ABenchmarkThatCrashesCostsOneAttempt) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  const auto agent = farm.StartAgent("dev1");
  const std::string job_id = farm.Submit(MeasuredJob(&farm, "dev1"));
  ::kill(AwaitBenchmark(*agent), SIGABRT);
  const v1::Job job = farm.AwaitEnd(job_id);
  ExpectOneMeasurementEach(job, "dev1");
  EXPECT_EQ(BenchmarkTask(job).failed_attempts(), 1);
}

TEST(AgentFarmTest, ALauncherStartsTheBenchmark) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  const auto agent = farm.StartAgent("dev1", {"--launcher=/usr/bin/env"});
  ExpectOneMeasurementEach(
      farm.AwaitEnd(farm.Submit(MeasuredJob(&farm, "dev1"))), "dev1");
}

TEST(AgentFarmTest, AnAgentThatIsToldToStopGivesItsBenchmarkBack) {
  Farm farm;
  const auto worker = farm.StartWorker("w1");
  auto agent = farm.StartAgent("dev1");
  const std::string job_id = farm.Submit(MeasuredJob(&farm, "dev1"));
  const pid_t task = AwaitBenchmark(*agent);
  ::kill(task, SIGSTOP);
  EXPECT_EQ(agent->Terminate().exit_code, 0);
  EXPECT_FALSE(IsAlive(task));
  agent = farm.StartAgent("dev1");
  const v1::Job job = farm.AwaitEnd(job_id);
  ExpectOneMeasurementEach(job, "dev1");
  EXPECT_EQ(BenchmarkTask(job).failed_attempts(), 0);
}

}  // namespace
}  // namespace optfarm::integration
