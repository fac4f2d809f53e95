// A real PostgreSQL for a farm's tests, with programs that are run beside it.

#ifndef OPTFARM_TESTS_INTEGRATION_POSTGRES_PLACE_H_
#define OPTFARM_TESTS_INTEGRATION_POSTGRES_PLACE_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "tests/integration/farm.h"

namespace optfarm::integration {

// Skips where PostgreSQL is not installed.
class PostgresPlace : public ::testing::Test {
 protected:
  void SetUp() override {
    const int status =
        Cluster(absl::StrCat("start ", folder_, " --watch ", getpid()));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3) GTEST_SKIP() << said_;
    ASSERT_EQ(status, 0) << said_;
    database_ = "--database=" + said_;
  }

  void TearDown() override { Cluster("stop " + folder_); }

  // Returns how the script ended; said_ is what it printed.
  int Cluster(const std::string& words) {
    const std::string command =
        absl::StrCat(testing::SourcePath("tests/support/postgres_cluster"), " ",
                     words, " 2>&1");
    FILE* const pipe = popen(command.c_str(), "r");
    said_.clear();
    char buffer[4096];
    for (size_t got = 0; pipe != nullptr &&
                         (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
      said_.append(buffer, got);
    }
    said_ = std::string(absl::StripAsciiWhitespace(said_));
    return pipe == nullptr ? -1 : pclose(pipe);
  }

  // Returns the exit code; said_ is what was printed.
  int Run(std::vector<std::string> words) {
    SubprocessOptions options;
    options.argv = std::move(words);
    options.output_file = absl::StrCat(logs_, "/said", ++runs_);
    options.environment = {{"XDG_CONFIG_HOME", logs_}, {"OPTFARM_SERVER", ""}};
    auto child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok()) return -1;
    const auto exit = child->Wait(kPatience);
    said_ = ReadFile(options.output_file).value_or("");
    return exit ? exit->exit_code : -1;
  }

  const std::string logs_ = testing::FreshFolder();
  // Not below a folder that others may not enter: PostgreSQL is another user.
  const std::string folder_ =
      absl::StrCat("/tmp/optfarm_pg_", getpid(), "_", ++folders_);
  static inline int folders_ = 0;
  int runs_ = 0;
  std::string said_;
  std::string database_;
};

}  // namespace optfarm::integration

#endif  // OPTFARM_TESTS_INTEGRATION_POSTGRES_PLACE_H_
