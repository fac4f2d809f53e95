// optctl against a real server: contexts, short names of jobs, what it says
// while it waits, and completion with names that only the server knows.

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
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The id of a job that waits for a worker. It brings its recipe along, because
// a server knows none before a worker has called.
std::string SubmitWaitingJob(Farm& farm) {
  v1::JobSpec spec = farm.DigitsJob("");
  spec.mutable_recipe()->set_name("own");
  spec.mutable_recipe()->set_transform_string("fold_constants");
  return farm.Submit(spec);
}

class CommandLineFarmTest : public ::testing::Test {
 protected:
  CommandLineFarmTest() : folder_(FreshFolder()) {
    environment_ = {{"XDG_CONFIG_HOME", folder_}, {"OPTFARM_SERVER", ""}};
  }

  SubprocessOptions Command(std::vector<std::string> words) {
    SubprocessOptions options;
    options.argv = std::move(words);
    options.output_file = JoinPath(folder_, absl::StrCat("log", ++runs_));
    options.environment = environment_;
    return options;
  }

  // Returns the exit code; output_ is what was printed.
  int RunCommand(std::vector<std::string> words) {
    const SubprocessOptions options = Command(std::move(words));
    auto child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok()) return -1;
    const auto exit = child->Wait(kPatience);
    output_ = ReadFile(options.output_file).value_or("");
    return exit ? exit->exit_code : -1;
  }

  int Optctl(std::vector<std::string> words) {
    words.insert(words.begin(), ProgramPath("optctl"));
    return RunCommand(std::move(words));
  }

  const std::string folder_;
  std::vector<std::pair<std::string, std::string>> environment_;
  int runs_ = 0;
  std::string output_;
};

TEST_F(CommandLineFarmTest, ContextsAndShortNamesFindServersAndJobs) {
  Farm farm;
  const std::string first = SubmitWaitingJob(farm);
  const std::string second = SubmitWaitingJob(farm);
  ASSERT_EQ(
      Optctl({"config", "set-context", "lab", "--server=" + farm.address()}), 0)
      << output_;
  ASSERT_EQ(Optctl({"config", "set-context", "away", "--server=127.0.0.1:9"}),
            0);
  EXPECT_EQ(Optctl({"config", "get-contexts", "-o", "json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(output_)[1]["current"], true) << output_;

  EXPECT_EQ(Optctl({"get", "latest"}), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr(second), Not(HasSubstr(first))));
  // All but the last character, which may be another job's too.
  size_t common = 0;
  while (first[common] == second[common]) ++common;
  EXPECT_EQ(Optctl({"get", first.substr(0, common + 1)}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr(first));
  if (common > 0) {
    EXPECT_EQ(Optctl({"get", first.substr(0, common)}), 2);
    EXPECT_THAT(output_, AllOf(HasSubstr("several jobs begin with"),
                               HasSubstr(first), HasSubstr(second)));
  }
  EXPECT_EQ(Optctl({"get", "nonsense", "-o", "json"}), 4);
  const auto error = nlohmann::json::parse(output_)["error"];
  EXPECT_EQ(error["code"], "NOT_FOUND");
  EXPECT_EQ(error["exit_code"], 4);

  EXPECT_EQ(Optctl({"list", "--state=queued", "--no-headers", "--context=lab"}),
            0);
  EXPECT_THAT(output_, StartsWith(second));
  EXPECT_EQ(Optctl({"list", "-o", "yaml"}), 0);
  EXPECT_THAT(output_, StartsWith("- job_id: "));
  EXPECT_EQ(Optctl({"list", "--context=away"}), 5);
  EXPECT_EQ(Optctl({"config", "use-context", "away"}), 0);
  EXPECT_EQ(Optctl({"list"}), 5);
  environment_.push_back({"OPTFARM_CONTEXT", "lab"});
  EXPECT_EQ(Optctl({"list"}), 0) << output_;
}

TEST_F(CommandLineFarmTest, SaysThatNoWorkerIsThereAndThatTheJobGoesOn) {
  Farm farm;
  const std::string job = SubmitWaitingJob(farm);
  const SubprocessOptions options = Command(
      {ProgramPath("optctl"), "watch", "latest", "--server=" + farm.address()});
  auto watch = Subprocess::Start(options);
  ASSERT_TRUE(watch.ok()) << watch.status();
  const auto text = [&] { return ReadFile(options.output_file).value_or(""); };
  ASSERT_TRUE(Await([&] {
    return absl::StrContains(text(), "No worker is connected") &&
           absl::StrContains(text(), "QUEUED");
  })) << text();
  watch->Signal(SIGINT);
  const auto exit = watch->Wait(kPatience);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->exit_code, 130);
  EXPECT_THAT(text(), HasSubstr("goes on: optctl watch " + job));
}

TEST_F(CommandLineFarmTest, BashCompletesFlagsValuesAndTheServersJobs) {
  if (!Exists("/bin/bash")) GTEST_SKIP() << "there is no bash";
  Farm farm;
  const std::string job = SubmitWaitingJob(farm);
  environment_[1].second = farm.address();
  ASSERT_EQ(Optctl({"completion", "bash"}), 0);
  const std::string script = JoinPath(folder_, "completion");
  ASSERT_TRUE(WriteFileAtomically(script, output_).ok());
  const auto complete = [&](const std::string& line) {
    EXPECT_EQ(RunCommand({"/bin/bash", "-c",
                          absl::StrCat("source ", script, "; COMP_LINE='",
                                       ProgramPath("optctl"), " ", line,
                                       "'; COMP_POINT=${#COMP_LINE}; _optctl; "
                                       "printf '%s\\n' \"${COMPREPLY[@]}\"")}),
              0)
        << output_;
    return output_;
  };
  EXPECT_EQ(complete("sub"), "submit\n");
  EXPECT_EQ(complete("graph summ"), "summarize\n");
  EXPECT_EQ(complete("submit m.pb --rec"), "--recipe=\n");
  EXPECT_EQ(complete("list --state=fa"), "FAILED\n");
  EXPECT_THAT(complete("list --state=FA"), HasSubstr("FAILED"));
  EXPECT_THAT(complete("get "), AllOf(HasSubstr("latest"), HasSubstr(job)));
  EXPECT_EQ(complete("results --job=late"), "latest\n");
  EXPECT_THAT(complete("submit x --recipe=int8-"), HasSubstr("int8-tf14\n"));
}

TEST_F(CommandLineFarmTest, WorkersNameTheClassesThatAModelsFileNames) {
  const std::vector<std::string> names = {"zero",  "one",  "two", "three",
                                          "four",  "five", "six", "seven",
                                          "eight", "nine"};
  const std::string labels = JoinPath(folder_, "names.txt");
  ASSERT_TRUE(WriteFileAtomically(labels, absl::StrJoin(names, "\n")).ok());
  Farm farm;
  const auto worker = farm.StartWorker("worker");
  environment_[1].second = farm.address();
  for (const char* file : {"named.onnx", "named.tflite"}) {
    SCOPED_TRACE(file);
    const std::string path = JoinPath(folder_, file);
    ASSERT_EQ(Optctl({"graph", "convert", "--out_graph=" + path,
                      "--in_graph=" + SourcePath("examples/digits/digits.pb"),
                      "--labels=" + labels}),
              0)
        << output_;
    v1::JobSpec spec = farm.DigitsJob("weights8");
    *spec.mutable_model() = farm.Upload(path);
    const v1::Job job = farm.AwaitEnd(farm.Submit(spec));
    ASSERT_GT(job.report().worst_samples_size(), 0) << job.DebugString();
    for (const v1::SampleComparison& sample : job.report().worst_samples()) {
      EXPECT_EQ(sample.float_class_name(), names.at(sample.float_class()));
      EXPECT_EQ(sample.optimized_class_name(),
                names.at(sample.optimized_class()));
      EXPECT_EQ(sample.label_name(), names.at(sample.label()));
    }
    const std::string label = job.report().worst_samples(0).label_name();
    EXPECT_EQ(Optctl({"get", job.job_id()}), 0);
    EXPECT_THAT(output_, HasSubstr(" " + label + "\n"));
    const std::string report = JoinPath(folder_, "report.html");
    EXPECT_EQ(Optctl({"report", job.job_id(), "--out=" + report}), 0)
        << output_;
    EXPECT_THAT(ReadFile(report).value_or(""),
                HasSubstr("\"label_name\":\"" + label + "\""));
  }
}

}  // namespace
}  // namespace optfarm::integration
