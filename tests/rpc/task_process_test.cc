// Real child processes: each way a task can end, and whose trouble it is. The
// child is this test program again, running the one test that is the child.

#include "rpc/task_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/sandbox.h"
#include "base/subprocess.h"
#include "rpc/task_child.h"
#include "tests/support/break_out.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFolderVariable[] = "OPTFARM_TEST_TASK_FOLDER";

void UseMemory() {
  std::vector<std::string> kept;
  while (true) kept.emplace_back(16 << 20, 'x');
}

// What the child does is the lease's task id.
absl::StatusOr<v1::Completion> ChildWorkFor(const v1::LeasedTask& lease,
                                            const TaskFolder& folder,
                                            const ChildProgress& progress) {
  const std::string& what = lease.task_id();
  v1::Completion completion;
  completion.mutable_report()->set_tool_version("child");
  if (what == "succeed") {
    std::fputs("hello from the child\n", stderr);
    progress(0.5, "half-way");
  }
  if (what == "user_error") {
    return absl::UnimplementedError("op Foo of node 'x' is not supported");
  }
  if (what == "our_error") return absl::InternalError("a defect");
  if (what == "full_disk") return absl::ResourceExhaustedError("disk full");
  if (what == "abort") std::abort();
  if (what == "segfault") {
    // A sanitizer's handler would make an exit code of it.
    std::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  }
  if (what == "memory") UseMemory();
  if (what == "memory_in_thread") std::thread(UseMemory).join();
  if (what == "memory_noexcept") []() noexcept { UseMemory(); }();
  if (what == "exit") ::_exit(5);
  if (what == "exit_zero") ::_exit(0);
  if (what == "throw") throw std::runtime_error("odd");
  if (what == "spin") {
    for (volatile bool on = true; on;) {
    }
  }
  if (what == "sleep") absl::SleepFor(absl::Hours(1));
  if (what == "big_file") {
    const std::string mebibyte(1 << 20, 'x');
    const auto ignored = WriteFileAtomically(JoinPath(folder.out(), "big"),
                                             std::string(4 << 20, 'x'));
  }
  if (what == "many_files") {
    for (int i = 0; i < 40; ++i) {
      const auto ignored =
          WriteFileAtomically(JoinPath(folder.out(), absl::StrCat("file", i)),
                              std::string(64 << 10, 'x'));
    }
  }
  if (what == "chatter") {
    while (true) std::fputs("chatter chatter chatter\n", stderr);
  }
  return completion;
}

TEST(TaskChild, DISABLED_IsTheChild) {
  ::_exit(RunTaskChild(std::getenv(kFolderVariable), &ChildWorkFor));
}

TEST(TaskChild, DISABLED_IsTheEnclosedChild) {
  const auto work =
      [](const v1::LeasedTask& lease, const TaskFolder& folder,
         const ChildProgress& progress) -> absl::StatusOr<v1::Completion> {
    if (lease.task_id() == "memory") UseMemory();
    v1::Completion completion;
    for (std::string& what :
         testing::BreakOut(folder.in(), folder.out(), lease.job_id())) {
      completion.mutable_report()->add_gates()->set_name(std::move(what));
    }
    // What a task does all day goes on.
    progress(0.5, "half-way");
    std::thread([&] {
      const auto model = ReadFile(JoinPath(folder.in(), "model.pb"));
      if (!model.ok()) return;
      const absl::Status written =
          WriteFileAtomically(JoinPath(folder.out(), "model.pb"), *model);
      completion.mutable_report()->set_passed(written.ok());
    }).join();
    return completion;
  };
  ::_exit(
      RunTaskChild(std::getenv(kFolderVariable), work, ChildSandbox::kFull));
}

class TaskProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK(folder_.Make());
    ::setenv(kFolderVariable, folder_.path().c_str(), 1);
    options_.argv = {OwnProgramPath(),
                     "--gtest_filter=TaskChild.DISABLED_IsTheChild",
                     "--gtest_also_run_disabled_tests"};
    options_.poll = absl::Milliseconds(20);
    options_.clock = &clock_;
  }

  // From now on `minutes` pass between two looks at the child.
  void PassMinutes(int minutes) {
    options_.should_stop = [this, minutes] {
      ++looks_;
      clock_.Advance(absl::Minutes(minutes));
      return false;
    };
  }

  v1::Completion Run(const std::string& what) {
    v1::LeasedTask lease;
    lease.set_task_id(what);
    EXPECT_TRUE(folder_.WriteLease(lease).ok());
    return RunTaskProcess(options_, folder_);
  }

  v1::Failure Fail(const std::string& what) {
    const v1::Completion completion = Run(what);
    EXPECT_TRUE(completion.has_failure()) << completion.DebugString();
    // The log is kept, and says it too.
    EXPECT_THAT(Log(), HasSubstr(completion.failure().message()));
    return completion.failure();
  }

  std::string Log() { return ReadFile(folder_.log()).value_or(""); }

  const TaskFolder folder_{testing::FreshFolder()};
  FakeClock clock_{absl::UnixEpoch()};
  int looks_ = 0;
  TaskProcessOptions options_;
};

TEST_F(TaskProcessTest, ReturnsTheOutcomeLogAndProgress) {
  std::vector<std::string> messages;
  double last = 0;
  options_.on_progress = [&](double fraction, absl::string_view message) {
    last = fraction;
    messages.emplace_back(message);
  };
  const v1::Completion completion = Run("succeed");
  EXPECT_EQ(completion.report().tool_version(), "child");
  EXPECT_THAT(Log(), HasSubstr("hello from the child"));
  EXPECT_EQ(last, 0.5);
  EXPECT_THAT(messages, ::testing::Contains("half-way"));
}

TEST_F(TaskProcessTest, NothingBreaksOutOfTheSandbox) {
  const SandboxForce force = ProbeSandbox();
  if (!force.complete()) {
    GTEST_SKIP() << "this kernel has " << force.ToString();
  }
  const std::string elsewhere = testing::FreshFolder();
  const std::string secret = JoinPath(elsewhere, "token");
  OPTFARM_ASSERT_OK(MakeFolders(elsewhere));
  OPTFARM_ASSERT_OK(WriteFileAtomically(secret, "oft_secret"));
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(folder_.in(), "model.pb"), "model"));
  options_.argv[1] = "--gtest_filter=TaskChild.DISABLED_IsTheEnclosedChild";
  ::setenv(testing::kForeignVariable, "swordfish", 1);
  ::setenv(testing::kStarterVariable, absl::StrCat(::getpid()).c_str(), 1);
  // As something that forgot O_CLOEXEC leaves it.
  const int open_secret = ::open(secret.c_str(), O_RDONLY);
  ASSERT_GE(open_secret, 0);
  v1::LeasedTask lease;
  lease.set_job_id(secret);
  OPTFARM_ASSERT_OK(folder_.WriteLease(lease));
  const v1::Completion completion = RunTaskProcess(options_, folder_);
  ASSERT_TRUE(completion.has_report()) << completion.DebugString() << Log();
  std::vector<std::string> worked;
  for (const v1::GateResult& gate : completion.report().gates()) {
    worked.push_back(gate.name());
  }
  EXPECT_THAT(worked, ::testing::IsEmpty());
  EXPECT_EQ(ReadFile(secret).value_or(""), "oft_secret");
  EXPECT_FALSE(Exists("/tmp/optfarm-broke-out"));
  EXPECT_TRUE(completion.report().passed());
  EXPECT_EQ(ReadFile(JoinPath(folder_.out(), "model.pb")).value_or(""),
            "model");
  ::close(open_secret);
  struct stat input = {};
  ASSERT_EQ(::stat(JoinPath(folder_.in(), "model.pb").c_str(), &input), 0);
  EXPECT_NE(input.st_mode & 0400, 0u);
  // And memory stays bounded in there.
  options_.limits.max_memory_bytes = uint64_t{1} << 30;
  lease.set_task_id("memory");
  OPTFARM_ASSERT_OK(folder_.WriteLease(lease));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_THAT(RunTaskProcess(options_, folder_).failure().message(),
              HasSubstr("--max_memory_mb"));
#endif
}

TEST_F(TaskProcessTest, AFullFolderIsTheUsersAndNamesTheFlag) {
  options_.limits.max_folder_bytes = 1 << 20;
  // Small files, each of which could be written.
  const v1::Failure failure = Fail("many_files");
  EXPECT_EQ(failure.kind(), v1::Failure::USER);
  EXPECT_EQ(failure.code(), "RESOURCE_EXHAUSTED");
  EXPECT_THAT(failure.message(), HasSubstr("--max_folder_mb=1"));
}

// A first process of a namespace is not ended by signals like others.
TEST_F(TaskProcessTest, NamespacesChangeNothingAboutHowATaskEnds) {
  for (const bool alone : {false, true}) {
    options_.alone = alone;
    EXPECT_THAT(Fail("abort").message(), HasSubstr("signal 6")) << alone;
    EXPECT_THAT(Fail("exit").message(), HasSubstr("exit code 5")) << alone;
    options_.limits.max_file_bytes = 1 << 20;
    EXPECT_THAT(Fail("big_file").message(), HasSubstr("--max_file_mb=1"))
        << alone;
    options_.limits.max_file_bytes = 0;
  }
}

TEST_F(TaskProcessTest, EngineErrorsAreSortedByWhoseTheyAre) {
  v1::Failure failure = Fail("user_error");
  EXPECT_EQ(failure.kind(), v1::Failure::USER);
  EXPECT_EQ(failure.code(), "UNIMPLEMENTED");
  EXPECT_EQ(failure.message(), "op Foo of node 'x' is not supported");
  EXPECT_EQ(Fail("our_error").kind(), v1::Failure::INTERNAL);
  EXPECT_EQ(Fail("full_disk").kind(), v1::Failure::INTERNAL);
  failure = Fail("throw");
  EXPECT_EQ(failure.kind(), v1::Failure::INTERNAL);
  EXPECT_THAT(failure.message(), HasSubstr("odd"));
}

TEST_F(TaskProcessTest, ACrashIsInternalAndSaysHow) {
  v1::Failure failure = Fail("abort");
  EXPECT_EQ(failure.kind(), v1::Failure::INTERNAL);
  EXPECT_THAT(failure.message(), HasSubstr("signal 6"));
  failure = Fail("segfault");
  EXPECT_EQ(failure.kind(), v1::Failure::INTERNAL);
  EXPECT_THAT(failure.message(), HasSubstr("signal 11"));
  EXPECT_THAT(Fail("exit").message(), HasSubstr("exit code 5"));
  EXPECT_THAT(Fail("exit_zero").message(), HasSubstr("left no outcome"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(TaskProcessTest, TooMuchMemoryIsTheUsersAndNamesTheFlag) {
  options_.limits.max_memory_bytes = 600 << 20;
  for (const char* what : {"memory", "memory_in_thread", "memory_noexcept"}) {
    const v1::Failure failure = Fail(what);
    EXPECT_EQ(failure.kind(), v1::Failure::USER) << what;
    EXPECT_EQ(failure.code(), "RESOURCE_EXHAUSTED") << what;
    EXPECT_THAT(failure.message(), HasSubstr("--max_memory_mb=600")) << what;
  }
}
#endif

TEST_F(TaskProcessTest, TooMuchTimeIsTheUsersAndNamesTheFlag) {
  options_.limits.max_wall_time = absl::Minutes(10);
  PassMinutes(4);
  v1::Failure failure = Fail("sleep");
  EXPECT_EQ(failure.kind(), v1::Failure::USER);
  EXPECT_EQ(failure.code(), "DEADLINE_EXCEEDED");
  EXPECT_THAT(failure.message(), HasSubstr("--max_task_seconds=600"));
  EXPECT_EQ(looks_, 4);  // after 0, 4, 8 and 12 minutes
}

TEST_F(TaskProcessTest, TooMuchCpuTimeIsTheUsersAndNamesTheFlag) {
  options_.limits.max_cpu_time = absl::Seconds(1);
  const v1::Failure failure = Fail("spin");
  EXPECT_EQ(failure.kind(), v1::Failure::USER);
  EXPECT_THAT(failure.message(), HasSubstr("--max_cpu_seconds=1"));
}

TEST_F(TaskProcessTest, TheLeasesRunLimitIsRetried) {
  options_.run_limit = absl::Minutes(10);
  PassMinutes(4);
  const v1::Failure failure = Fail("sleep");
  EXPECT_EQ(failure.kind(), v1::Failure::INTERNAL);
  EXPECT_EQ(failure.code(), "DEADLINE_EXCEEDED");
  EXPECT_EQ(looks_, 4);  // after 0, 4, 8 and 12 minutes
}

TEST_F(TaskProcessTest, ALargeFileNamesTheFlag) {
  options_.limits.max_file_bytes = 1 << 20;
  EXPECT_THAT(Fail("big_file").message(), HasSubstr("--max_file_mb=1"));
}

TEST_F(TaskProcessTest, AFloodOfOutputIsCut) {
  options_.limits.max_log_bytes = 100 << 10;
  EXPECT_EQ(Fail("chatter").kind(), v1::Failure::USER);
  EXPECT_LT(Log().size(), 110u << 10);
  EXPECT_THAT(Log(), HasSubstr("the log was cut here"));
}

TEST_F(TaskProcessTest, AStopKillsTheChildAndGivesTheTaskBack) {
  int asked = 0;
  options_.should_stop = [&] { return ++asked > 3; };
  EXPECT_TRUE(Run("sleep").has_released());
  EXPECT_EQ(asked, 4);
  EXPECT_THAT(Log(), HasSubstr("killed by signal"));
}

TEST_F(TaskProcessTest, AProgramThatIsNotThereIsInternal) {
  options_.argv = {"/nowhere/optfarm-worker"};
  EXPECT_EQ(Fail("succeed").kind(), v1::Failure::INTERNAL);
}

}  // namespace
}  // namespace optfarm::rpc
