#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

TEST(MappedFileTest, ShowsTheFilesBytes) {
  const std::string path = JoinPath(FreshFolder(), "f");
  ASSERT_THAT(WriteFileAtomically(path, "some bytes"), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto file, MappedFile::Open(path));
  // Replacing the file does not touch what is mapped.
  ASSERT_THAT(WriteFileAtomically(path, "x"), IsOk());
  EXPECT_EQ(file->bytes(), "some bytes");
}

TEST(MappedFileTest, AnEmptyFileHasNoBytes) {
  const std::string path = JoinPath(FreshFolder(), "f");
  ASSERT_THAT(WriteFileAtomically(path, ""), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto file, MappedFile::Open(path));
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFileTest, RefusesWhatIsNoFile) {
  EXPECT_THAT(MappedFile::Open(FreshFolder()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no ordinary file")));
  EXPECT_THAT(MappedFile::Open(JoinPath(FreshFolder(), "none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

}  // namespace
}  // namespace optfarm
