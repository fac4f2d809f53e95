#include "client_cli/local/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace optfarm::client_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

TEST(StepTimesTest, PrintsALineForEachStepThatEnds) {
  std::vector<std::string> lines;
  StepTimes steps(
      [&lines](absl::string_view line) { lines.emplace_back(line); });
  steps.Begin("loading");
  steps.Begin("loading");
  EXPECT_TRUE(lines.empty());
  steps.Begin("comparing layers");
  steps.End();
  steps.End();
  EXPECT_THAT(
      lines,
      ElementsAre(
          MatchesRegex("loading +[0-9.]+ s +[0-9.]+ s of processors.*"),
          MatchesRegex("comparing layers +[0-9.]+ s +[0-9.]+ s of proc.*")));
}

}  // namespace
}  // namespace optfarm::client_cli
