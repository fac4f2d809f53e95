// What one line of the log may hold.

#include "base/log.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace optfarm {
namespace {

std::string Logged(absl::string_view text) {
  ::testing::internal::CaptureStderr();
  LogLine(LogLevel::kWarning, text);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LogTest, LineEndsWithTheText) {
  const std::string line = Logged("job 7 of \"größe\" ended");
  EXPECT_TRUE(absl::EndsWith(line, "W job 7 of \"größe\" ended\n")) << line;
}

TEST(LogTest, TextCannotBeginALineOrCommandATerminal) {
  const std::string line =
      Logged("name a\nb\r2026-01-31 E forged\x1b[2J\x7f\u009b31m end");
  EXPECT_TRUE(absl::EndsWith(line,
                             "W name a b\\x0d2026-01-31 E forged"
                             "\\x1b[2J\\x7f\\u009b31m end\n"))
      << line;
}

TEST(LogTest, BytesThatAreNotUtf8AreWrittenOut) {
  const std::string line = Logged(
      "gr\xf6\x9b"
      "31m");
  EXPECT_TRUE(absl::EndsWith(line, "W gr\\xf6\\x9b31m\n")) << line;
}

}  // namespace
}  // namespace optfarm
