// The command line: both spellings, defaults, and what is refused.

#include "worker/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"

namespace optfarm::worker {
namespace {

std::optional<Flags> Parse(std::vector<std::string> words, int* exit_code) {
  words.insert(words.begin(), "optfarm-worker");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return ParseFlags(static_cast<int>(argv.size()), argv.data(), exit_code);
}

TEST(WorkerFlagsTest, TakesBothSpellings) {
  int exit_code = 0;
  const auto flags =
      Parse({"--server=farm:7070", "--name", "w1", "--slots", "2",
             "--max_memory_mb=512", "--max_task_seconds", "10"},
            &exit_code);
  ASSERT_TRUE(flags.has_value());
  EXPECT_EQ(flags->shared.server, "farm:7070");
  EXPECT_EQ(flags->shared.name, "w1");
  EXPECT_EQ(flags->slots, 2);
  EXPECT_EQ(flags->exit_when_idle, absl::InfiniteDuration());
  EXPECT_EQ(Parse({"--exit_when_idle=90s"}, &exit_code)->exit_when_idle,
            absl::Seconds(90));
  const rpc::TaskLimits limits = rpc::LimitsFrom(flags->shared, flags->slots);
  EXPECT_EQ(limits.max_memory_bytes, uint64_t{512} << 20);
  EXPECT_EQ(limits.max_wall_time, absl::Seconds(10));
  EXPECT_EQ(limits.max_cpu_time, absl::Seconds(10) * rpc::UsableCores());
}

// A task's process has another working directory.
TEST(WorkerFlagsTest, AFolderOfTheWorkingDirectoryIsKnownByItsWholePath) {
  int exit_code = 0;
  const auto flags = Parse({"--work_dir=w"}, &exit_code);
  ASSERT_TRUE(flags.has_value());
  EXPECT_EQ(flags->shared.work_dir,
            JoinPath(std::filesystem::current_path().string(), "w"));
  EXPECT_EQ(Parse({"--work_dir=/tmp/w"}, &exit_code)->shared.work_dir,
            "/tmp/w");
  EXPECT_EQ(Parse({}, &exit_code)->shared.work_dir, "");
}

TEST(WorkerFlagsTest, DefaultsFitTheMachine) {
  int exit_code = 0;
  const auto flags = Parse({}, &exit_code);
  ASSERT_TRUE(flags.has_value());
  EXPECT_EQ(flags->shared.server, "127.0.0.1:7070");
  EXPECT_FALSE(flags->shared.name.empty());
  EXPECT_GE(flags->threads, 1);
  EXPECT_GE(rpc::LimitsFrom(flags->shared, 1).max_memory_bytes,
            uint64_t{1} << 30);
  EXPECT_EQ(Parse({"--max_memory_mb=-1"}, &exit_code)->shared.memory_mb, -1);
}

TEST(WorkerFlagsTest, WhatIsMissingFromARequiredSandboxIsNamed) {
  int exit_code = 0;
  SandboxForce force;
  force.landlock = 7;
  force.seccomp = true;
  force.namespaces = true;
  EXPECT_EQ(force.Missing(), "");
  for (const char* sandbox : {"--sandbox=auto", "--sandbox=require"}) {
    const auto flags = Parse({sandbox}, &exit_code);
    ASSERT_TRUE(flags.has_value());
    EXPECT_TRUE(rpc::CheckSandbox(flags->shared, force).ok());
  }
  force.landlock = 0;
  force.namespaces = false;
  EXPECT_TRUE(rpc::CheckSandbox(Parse({}, &exit_code)->shared, force).ok());
  const absl::Status refused = rpc::CheckSandbox(
      Parse({"--sandbox=require"}, &exit_code)->shared, force);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              ::testing::HasSubstr("Landlock, namespaces for users"));
  EXPECT_FALSE(Parse({"--sandbox=maybe"}, &exit_code).has_value());
}

TEST(WorkerFlagsTest, RefusesWhatItDoesNotKnow) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--nonsense"},
      {"--slots=0"},
      {"--slots=x"},
      {"--server=farm"},
      {"--name=a b"},
      {"--max_task_seconds=-1"},
      {"stray"},
      {"--max_memory_mb=99999999999"},
      {"--exit_when_idle=soon"},
      {"--exit_when_idle=0"},
      {"--exit_when_idle=-5m"},
      {"--exit_when_idle=10"}};
  for (const auto& words : wrong) {
    int exit_code = 0;
    EXPECT_FALSE(Parse(words, &exit_code).has_value()) << words[0];
    EXPECT_EQ(exit_code, 2) << words[0];
  }
}

TEST(WorkerFlagsTest, HelpIsNoError) {
  int exit_code = 7;
  EXPECT_FALSE(Parse({"--help"}, &exit_code).has_value());
  EXPECT_EQ(exit_code, 0);
}

}  // namespace
}  // namespace optfarm::worker
