#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReadFileTest, ReturnsWhatWasWritten) {
  const std::string path = JoinPath(FreshFolder(), "f");
  const std::string bytes("a\0b\n", 4);
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, bytes));
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string read, ReadFile(path));
  EXPECT_EQ(read, bytes);
}

TEST(ReadFileTest, RefusesAFileAboveTheLimit) {
  const std::string path = JoinPath(FreshFolder(), "f");
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, "12345"));
  EXPECT_THAT(ReadFile(path, 4), StatusIs(absl::StatusCode::kResourceExhausted,
                                          HasSubstr("5 bytes")));
}

TEST(ReadFileTest, SaysThatAFolderIsAFolder) {
  EXPECT_THAT(ReadFile(FreshFolder()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is a folder")));
}

TEST(ReadFileTest, ReadsFilesThatStateNoSize) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string text, ReadFile("/proc/self/status"));
  EXPECT_THAT(text, HasSubstr("VmHWM"));
}

TEST(WriteFileAtomicallyTest, FailedWriteLeavesTheOldFileAlone) {
  const std::string folder = FreshFolder();
  const std::string path = JoinPath(folder, "f");
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, "old"));
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(path, std::string(100, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("free some space")));
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_THAT(*ListFolder(folder), ElementsAre("f"));
}

TEST(AtomicFileTest, AppearsWholeOrNotAtAll) {
  const std::string folder = FreshFolder();
  const std::string path = JoinPath(folder, "f");
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(AtomicFile file, AtomicFile::Create(path));
    OPTFARM_ASSERT_OK(file.Append("lost"));
  }
  EXPECT_THAT(*ListFolder(folder), ::testing::IsEmpty());
  OPTFARM_ASSERT_OK_AND_ASSIGN(AtomicFile first, AtomicFile::Create(path));
  AtomicFile file = std::move(first);
  OPTFARM_ASSERT_OK(file.Append("one "));
  OPTFARM_ASSERT_OK(file.Append("two"));
  EXPECT_FALSE(Exists(path));
  OPTFARM_ASSERT_OK(file.Commit());
  EXPECT_THAT(*ListFolder(folder), ElementsAre("f"));
  EXPECT_EQ(*ReadFile(path), "one two");
}

TEST(SequentialFileTest, GivesTheFilePieceByPiece) {
  const std::string path = JoinPath(FreshFolder(), "f");
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, "12345"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(SequentialFile file, SequentialFile::Open(path));
  EXPECT_EQ(file.size(), 5u);
  char buffer[3];
  EXPECT_EQ(*file.Read(buffer, 3), 3u);
  EXPECT_EQ(std::string(buffer, 3), "123");
  EXPECT_EQ(*file.Read(buffer, 3), 2u);
  EXPECT_EQ(*file.Read(buffer, 3), 0u);
  EXPECT_THAT(SequentialFile::Open(path + "x").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("reading")));
}

TEST(PathTest, PiecesAndExtensions) {
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(BaseName("x/y.TXT"), "y.TXT");
  EXPECT_EQ(LowerExtension("x/y.TXT"), "txt");
  EXPECT_EQ(LowerExtension("x.d/.hidden"), "");
}

}  // namespace
}  // namespace optfarm
