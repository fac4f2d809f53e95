// The agent's own flags; the shared ones are tested with the worker's.

#include "device_agent/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace optfarm::device_agent {
namespace {

std::optional<Flags> Parse(std::vector<std::string> words, int* exit_code) {
  words.insert(words.begin(), "optfarm-agent");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return ParseFlags(static_cast<int>(argv.size()), argv.data(), exit_code);
}

TEST(AgentFlagsTest, TakesThreadsAsAList) {
  int exit_code = 0;
  const auto flags = Parse(
      {"--name=pi4", "--threads=1,4", "--max_celsius", "65.5"}, &exit_code);
  ASSERT_TRUE(flags.has_value());
  EXPECT_THAT(flags->threads, ::testing::ElementsAre(1, 4));
  EXPECT_EQ(flags->quiet.max_celsius, 65.5);
  EXPECT_EQ(flags->shared.name, "pi4");
}

TEST(AgentFlagsTest, RefusesWhatMakesNoSense) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--threads=0"}, {"--threads=1,x"}, {"--name=-pi"}, {"--slots=2"}};
  for (const auto& words : wrong) {
    int exit_code = 0;
    EXPECT_FALSE(Parse(words, &exit_code).has_value()) << words[0];
    EXPECT_EQ(exit_code, 2) << words[0];
  }
}

}  // namespace
}  // namespace optfarm::device_agent
