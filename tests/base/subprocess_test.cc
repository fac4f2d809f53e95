#include "base/subprocess.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

SubprocessOptions Shell(const std::string& script) {
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  return options;
}

SubprocessExit RunToEnd(const SubprocessOptions& options) {
  absl::StatusOr<Subprocess> process = Subprocess::Start(options);
  EXPECT_TRUE(process.ok()) << process.status();
  return process->Wait(absl::Seconds(60)).value();
}

TEST(SubprocessTest, ReportsExitCodeAndOutput) {
  SubprocessOptions options = Shell("echo out; echo err >&2; exit 3");
  options.output_file = JoinPath(testing::FreshFolder(), "log");
  const SubprocessExit exit = RunToEnd(options);
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_EQ(exit.ToString(), "exit code 3");
  EXPECT_EQ(*ReadFile(options.output_file), "out\nerr\n");
}

TEST(SubprocessTest, ReportsTheSignalThatEndedIt) {
  const SubprocessExit exit = RunToEnd(Shell("kill -SEGV $$"));
  EXPECT_EQ(exit.signal, SIGSEGV);
  EXPECT_THAT(exit.ToString(), HasSubstr("signal 11"));
}

TEST(SubprocessTest, SetsTheEnvironment) {
  SubprocessOptions options = Shell("test \"$OPTFARM_TEST_WORD\" = right");
  options.environment = {{"OPTFARM_TEST_WORD", "right"}};
  EXPECT_TRUE(RunToEnd(options).ok());
}

TEST(SubprocessTest, CpuTimeLimitEndsALoop) {
  SubprocessOptions options = Shell("while :; do :; done");
  options.max_cpu_time = absl::Seconds(1);
  EXPECT_FALSE(RunToEnd(options).ok());
}

TEST(SubprocessTest, StopEndsTheWholeGroup) {
  const std::string path = JoinPath(testing::FreshFolder(), "pid");
  absl::StatusOr<Subprocess> process =
      Subprocess::Start(Shell("sleep 1000 & echo $! > " + path + ".t; mv " +
                              path + ".t " + path + "; wait"));
  OPTFARM_ASSERT_OK(process);
  while (!Exists(path)) {
    ASSERT_FALSE(process->Wait(absl::Milliseconds(5)).has_value());
  }
  const pid_t grandchild = std::stoi(*ReadFile(path));
  process->Stop(absl::Seconds(5));
  // Killed with the group: gone, or a zombie until its new parent reaps it.
  bool is_gone = false;
  for (int i = 0; i < 100000 && !is_gone; ++i) {
    const auto status =
        ReadFile("/proc/" + std::to_string(grandchild) + "/status");
    is_gone = !status.ok() || status->find("Z (zombie)") != std::string::npos;
    if (!is_gone) sched_yield();
  }
  EXPECT_TRUE(is_gone);
}

// An upgrade replaces the file of a program that goes on running.
TEST(SubprocessTest, OwnProgramStartsAfterItsFileIsGone) {
  const std::string copy = JoinPath(testing::FreshFolder(), "sh");
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile("/bin/sh"));
  OPTFARM_ASSERT_OK(WriteFileAtomically(copy, bytes));
  ASSERT_EQ(chmod(copy.c_str(), 0755), 0);
  SubprocessOptions options;
  options.argv = {copy, "-c",
                  "rm \"$0\" && " + OwnProgramPath() + " -c 'exit 7'", copy};
  EXPECT_EQ(RunToEnd(options).exit_code, 7);
}

TEST(SubprocessTest, MissingProgramIsNamed) {
  SubprocessOptions options;
  options.argv = {"/no/such/program"};
  EXPECT_THAT(
      Subprocess::Start(options),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/program")));
}

}  // namespace
}  // namespace optfarm
