// Names, paths and text from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/conventions/log_text.h"
#include "server/conventions/names.h"
#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

TEST(NamesTest, TakesNamesThatAreSafeEverywhere) {
  for (const char* good : {"a", "pi4", "lab-3.phone_7", "0abc"}) {
    EXPECT_THAT(CheckName("device", good), IsOk()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string(".."), std::string("-rf"),
        std::string("a/b"), std::string("a b"), std::string("a\0b", 3),
        std::string("\xc3\xa4"), std::string(65, 'a')}) {
    EXPECT_THAT(CheckName("device", bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dev")));
  }
}

TEST(NamesTest, PathsStayBelowTheirFolder) {
  for (const char* good :
       {"a", "a/b.png", "..a/b..", ".hidden", "\xc3\xa4.png"}) {
    EXPECT_THAT(CheckRelativePath("file", good), IsOk()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string("a/"),
        std::string("a//b"), std::string("../a"), std::string("a/../b"),
        std::string("./a"), std::string("a\\b"), std::string("a\nb"),
        std::string("a\0b", 3), std::string(1025, 'a')}) {
    EXPECT_THAT(CheckRelativePath("file", bad),
                StatusIs(absl::StatusCode::kInvalidArgument, _))
        << bad;
  }
}

TEST(NamesTest, QuotingKeepsMessagesOnOneShortLine) {
  EXPECT_EQ(Quoted("a\nb"), "'a\\nb'");
  EXPECT_LT(Quoted(std::string(100000, 'x')).size(), 200u);
}

TEST(LogTextTest, KeepsTextAndReplacesWhatIsNot) {
  const std::string text = "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\n";
  EXPECT_EQ(ToUtf8(text), text);
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(ToUtf8("a\xff"
                   "b"),
            "a" + mark + "b");
  // Cut off, overlong, a surrogate, beyond the last code point.
  EXPECT_EQ(ToUtf8("\xe2\x82"), mark + mark);
  EXPECT_EQ(ToUtf8("\xc0\xaf"), mark + mark);
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), mark + mark + mark);
  EXPECT_EQ(ToUtf8("\xf4\x90\x80\x80"), mark + mark + mark + mark);
}

TEST(LogTextTest, CutsBetweenCharacters) {
  EXPECT_EQ(CutText("abc", 5), "abc");
  EXPECT_EQ(CutText("abc", 2), "ab");
  EXPECT_EQ(CutText("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(CutText("\xe2\x82\xac", 1), "");
}

}  // namespace
}  // namespace optfarm::server
