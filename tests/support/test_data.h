// Where tests find what does not ship with the project.

#ifndef OPTFARM_TESTS_SUPPORT_TEST_DATA_H_
#define OPTFARM_TESTS_SUPPORT_TEST_DATA_H_

#include <string>

#include "absl/strings/string_view.h"

namespace optfarm::testing {

// The folder with models, golden results and images: environment variable
// OPTFARM_TEST_DATA, else what CMake was told; "" when there is none.
std::string TestDataFolder();

// A path below TestDataFolder(); "" when the folder is not there.
std::string TestDataPath(absl::string_view relative);

// A path below the source tree.
std::string SourcePath(absl::string_view relative);

// A program of this build, for instance ProgramPath("optctl").
std::string ProgramPath(absl::string_view name);

// A folder of this test's own, removed when the process ends.
std::string FreshFolder();

}  // namespace optfarm::testing

// Skips the running test when the shared test data is not there.
#define OPTFARM_REQUIRE_TEST_DATA()                             \
  do {                                                          \
    if (::optfarm::testing::TestDataFolder().empty()) {         \
      GTEST_SKIP() << "set OPTFARM_TEST_DATA to run this test"; \
    }                                                           \
  } while (false)

#endif  // OPTFARM_TESTS_SUPPORT_TEST_DATA_H_
