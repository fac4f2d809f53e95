#include "tests/support/test_data.h"

#include <cstdlib>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/files.h"

namespace optfarm::testing {

std::string TestDataFolder() {
  const char* set = std::getenv("OPTFARM_TEST_DATA");
  const std::string folder = set != nullptr ? set : OPTFARM_TEST_DATA_DIR;
  return !folder.empty() && IsFolder(folder) ? folder : "";
}

std::string TestDataPath(absl::string_view relative) {
  const std::string folder = TestDataFolder();
  return folder.empty() ? "" : JoinPath(folder, relative);
}

std::string SourcePath(absl::string_view relative) {
  return JoinPath(OPTFARM_SOURCE_DIR, relative);
}

std::string ProgramPath(absl::string_view name) {
  return JoinPath(OPTFARM_BIN_DIR, name);
}

std::string FreshFolder() {
  static auto folders = std::vector<std::unique_ptr<ScopedFolder>>();
  auto made = MakeTemporaryFolder("optfarm_test_");
  OPTFARM_CHECK(made.ok());
  folders.push_back(std::make_unique<ScopedFolder>(*made));
  return *made;
}

}  // namespace optfarm::testing
