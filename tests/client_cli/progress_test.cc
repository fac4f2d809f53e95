// Progress lines, what they say of a job, and colours.

#include <gtest/gtest.h>

#include <sstream>

#include "base/clock.h"
#include "client_cli/command/command.h"
#include "client_cli/jobs/job_outcome.h"
#include "client_cli/jobs/job_progress.h"
#include "client_cli/jobs/progress_line.h"
#include "client_cli/tables/noise_text.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::client_cli {
namespace {

class ProgressLineTest : public ::testing::Test {
 protected:
  ProgressLineTest() {
    context_.err = &err_;
    context_.clock = &clock_;
    context_.err_is_terminal = true;
  }

  std::ostringstream err_;
  FakeClock clock_{absl::FromUnixSeconds(1000)};
  CommandContext context_;
};

TEST_F(ProgressLineTest, DrawsOverItselfAndWipesAtTheEnd) {
  {
    ProgressLine line(context_);
    line.Show("half way");
    clock_.Advance(absl::Seconds(1));
    line.Show("done");
  }
  EXPECT_EQ(err_.str(), "\rhalf way\rdone    \r    \r");
}

TEST_F(ProgressLineTest, IsNotRedrawnTooOften) {
  ProgressLine line(context_);
  line.Show("a");
  line.Show("b");
  EXPECT_EQ(err_.str(), "\ra");
}

TEST_F(ProgressLineTest, DrawsNothingWhereNobodyWatches) {
  context_.err_is_terminal = false;
  ProgressLine line(context_);
  line.Show("half way");
  line.Remark("A remark.");
  EXPECT_EQ(err_.str(), "A remark.\n");
}

TEST_F(ProgressLineTest, ControlCharactersDoNotReachTheTerminal) {
  ProgressLine line(context_);
  line.Show("a\x1b[2Jb\nc");
  EXPECT_EQ(err_.str(), "\ra?[2Jb c");
}

v1::JobEvent TaskEvent(const std::string& id, v1::TaskState state) {
  v1::JobEvent event;
  event.set_task_id(id);
  event.mutable_task_state()->set_state(state);
  return event;
}

TEST(JobProgressTest, SaysWhatEachTaskDoes) {
  v1::Job job;
  job.set_state(v1::QUEUED);
  v1::Task& optimize = *job.add_tasks();
  optimize.set_task_id("j1/a");
  optimize.set_kind(v1::OPTIMIZE);
  optimize.set_state(v1::READY);
  v1::Task& benchmark = *job.add_tasks();
  benchmark.set_task_id("j1/b");
  benchmark.set_kind(v1::BENCHMARK);
  benchmark.set_device("pi4");
  benchmark.set_state(v1::BLOCKED);
  const absl::Time start = absl::FromUnixSeconds(1000);
  JobProgress progress(job, start);
  EXPECT_EQ(progress.Line(start), "QUEUED 0 s: optimize waits");

  v1::JobEvent running;
  running.mutable_job_state()->set_state(v1::RUNNING);
  progress.Add(running);
  progress.Add(TaskEvent("j1/a", v1::LEASED));
  v1::JobEvent step;
  step.set_task_id("j1/a");
  step.mutable_progress()->set_fraction(0.4);
  step.mutable_progress()->set_message("calibrating");
  progress.Add(step);
  EXPECT_EQ(progress.Line(start + absl::Seconds(12)),
            "RUNNING 12 s: optimize 40% calibrating");

  progress.Add(TaskEvent("j1/a", v1::TASK_DONE));
  progress.Add(TaskEvent("j1/b", v1::LEASED));
  EXPECT_EQ(progress.Line(start + absl::Seconds(75)),
            "RUNNING 75 s: benchmark on pi4 0%");
}

TEST(JobOutcomeTest, ColoursTheStateOnlyWhenAsked) {
  JobOutcome outcome;
  outcome.job.set_job_id("j1");
  outcome.job.set_state(v1::FAILED);
  EXPECT_EQ(OutcomeText(outcome, OutputFormat::kTable, false),
            "Job j1: FAILED\n");
  EXPECT_EQ(OutcomeText(outcome, OutputFormat::kTable, true),
            "Job j1: \x1b[31mFAILED\x1b[0m\n");
}

TEST(NoiseTextTest, NamesTheMeasurementAndAllReasons) {
  v1::Measurement quiet, noisy;
  quiet.set_variant("float");
  noisy.set_variant("int8");
  noisy.set_device("pi4");
  noisy.set_threads(1);
  noisy.set_noisy(true);
  noisy.add_noise_reasons("It was hot.");
  noisy.add_noise_reasons("It was busy.");
  EXPECT_EQ(NoiseText({&quiet}), "");
  EXPECT_EQ(NoiseText({&quiet, &noisy}),
            "\nNoisy:\n  int8 on pi4, 1 thread: It was hot. It was busy.\n");
}

}  // namespace
}  // namespace optfarm::client_cli
