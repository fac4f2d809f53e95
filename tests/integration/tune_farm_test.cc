// optctl tune on a farm of real processes: killed in the middle it goes on, and
// ends with what it would have ended with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/farm.h"

namespace optfarm::integration {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::ProgramPath;
using ::optfarm::testing::SourcePath;
using ::testing::HasSubstr;

// Six recipes and a few mixed ones, each measured for some seconds.
constexpr absl::Duration kTuneTime = absl::Minutes(4);

class TuneFarmTest : public ::testing::Test {
 protected:
  SubprocessOptions Tune(const std::string& out_dir) {
    SubprocessOptions options;
    options.argv = {ProgramPath("optctl"),
                    "tune",
                    SourcePath("examples/digits/digits.pb"),
                    "--calibration=" + SourcePath("examples/digits/images"),
                    "--input_mean=127.5",
                    "--input_std=127.5",
                    "--device=here",
                    "--max_measured=8",
                    "--min_top1=-1",
                    "--verbose",
                    "--server=" + farm_.address(),
                    "--out_dir=" + out_dir};
    options.output_file = JoinPath(folder_, absl::StrCat("log", ++runs_));
    return options;
  }

  // Returns the exit code; output_ is what was printed.
  int Run(const SubprocessOptions& options) {
    auto child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok()) return -1;
    const auto exit = child->Wait(kTuneTime);
    output_ = ReadFile(options.output_file).value_or("");
    return exit ? exit->exit_code : -1;
  }

  static nlohmann::json ReportIn(const std::string& folder) {
    return nlohmann::json::parse(
        ReadFile(JoinPath(folder, "tune.json")).value_or("{}"));
  }

  Farm farm_;
  const std::string folder_ = FreshFolder();
  int runs_ = 0;
  std::string output_;
};

TEST_F(TuneFarmTest, GoesOnAfterKillsAndEndsWithTheSame) {
  const auto worker = farm_.StartWorker("worker");
  const auto agent = farm_.StartAgent("here");
  const std::string out = FreshFolder(), again = FreshFolder();
  {
    const SubprocessOptions options = Tune(out);
    auto child = Subprocess::Start(options);
    ASSERT_TRUE(child.ok()) << child.status();
    ASSERT_NE(worker->AwaitTaskProcess(), 0);
    child->Signal(SIGKILL);
    child->Wait(kPatience);
  }
  farm_.server().Kill9();
  farm_.StartServer();
  ASSERT_EQ(Run(Tune(out)), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("On here: ship "));
  EXPECT_THAT(output_, HasSubstr("HELD OUT"));
  const nlohmann::json report = ReportIn(out);
  const std::string chosen = report["devices"][0]["recommended"];
  EXPECT_GE(report["measured"], 6);
  EXPECT_LE(report["measured"], 8);
  EXPECT_TRUE(FileSize(JoinPath(out, chosen + ".pb")).ok()) << chosen;
  EXPECT_THAT(ReadFile(JoinPath(out, "pareto_1.svg")).value_or(""),
              HasSubstr(chosen));

  // Everything is there already: nothing is measured again.
  ASSERT_EQ(Run(Tune(again)), 0) << output_;
  // Job ids and measurements among the rest.
  EXPECT_EQ(report, ReportIn(again));

  // The recipe that it leaves makes the same graph.
  SubprocessOptions made;
  made.argv = {ProgramPath("optctl"),
               "run",
               SourcePath("examples/digits/digits.pb"),
               "--recipe=" + JoinPath(out, chosen + ".yaml"),
               "--calibration=" + SourcePath("examples/digits/images"),
               "--input_mean=127.5",
               "--input_std=127.5",
               "--threads=1",
               "--out_dir=" + again};
  made.output_file = JoinPath(folder_, "made");
  ASSERT_EQ(Run(made), 0) << output_;
  EXPECT_EQ(ReadFile(JoinPath(out, chosen + ".pb")).value_or("a"),
            ReadFile(JoinPath(again, "optimized.pb")).value_or("b"));
}

TEST_F(TuneFarmTest, SaysWhatIsMissing) {
  SubprocessOptions options = Tune(folder_);
  std::erase_if(options.argv, [](const std::string& word) {
    return absl::StartsWith(word, "--calibration");
  });
  EXPECT_EQ(Run(options), 2);
  EXPECT_THAT(output_, HasSubstr("give --calibration=DIR"));
  options = Tune(folder_);
  options.argv.push_back("--device=any:phone");
  EXPECT_EQ(Run(options), 2);
  EXPECT_THAT(output_, HasSubstr("variants are compared on one device"));
  options = Tune(folder_);
  options.argv.push_back("--min_snr=20");
  EXPECT_EQ(Run(options), 2);
  EXPECT_THAT(output_, HasSubstr("give one of --min_top1"));
}

}  // namespace
}  // namespace optfarm::integration
