// Runs optctl and its links as child processes, each test in a folder of its
// own.

#ifndef OPTFARM_TESTS_CLIENT_CLI_TOOL_TEST_H_
#define OPTFARM_TESTS_CLIENT_CLI_TOOL_TEST_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "tests/support/test_data.h"

namespace optfarm::client_cli {

class ToolTest : public ::testing::Test {
 protected:
  ToolTest() : folder_(testing::FreshFolder()) {}

  void SetUp() override {
    if (!Exists(testing::ProgramPath("optctl"))) {
      GTEST_SKIP() << "optctl is not built";
    }
  }

  std::string Path(const std::string& name) const {
    return JoinPath(folder_, name);
  }

  std::string Write(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteFileAtomically(Path(name), bytes).ok());
    return Path(name);
  }

  // Runs `program` in the test's folder; returns its exit code and fills
  // output_ with stdout and stderr.
  int Run(const std::string& program, const std::vector<std::string>& words) {
    const std::string log = Path(absl::StrCat("log", ++runs_));
    SubprocessOptions options;
    options.argv = {testing::ProgramPath(program)};
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    options.output_file = log;
    options.working_folder = folder_;
    options.environment = environment_;
    absl::StatusOr<Subprocess> child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok()) return -1;
    const auto exit = child->Wait(absl::Minutes(1));
    EXPECT_TRUE(exit.has_value());
    output_ = ReadFile(log).value_or("");
    return exit ? exit->exit_code : -1;
  }

  const std::string folder_;
  std::vector<std::pair<std::string, std::string>> environment_;
  int runs_ = 0;
  std::string output_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_TESTS_CLIENT_CLI_TOOL_TEST_H_
