#include "base/utf8.h"

#include <gtest/gtest.h>

namespace optfarm {
namespace {

TEST(Utf8Test, KnowsSequencesByTheirLength) {
  EXPECT_EQ(Utf8SequenceLength("a"), 1u);
  EXPECT_EQ(Utf8SequenceLength("\xC3\xA4"), 2u);
  EXPECT_EQ(Utf8SequenceLength("\xE2\x82\xAC!"), 3u);
  EXPECT_EQ(Utf8SequenceLength("\xF4\x8F\xBF\xBF"), 4u);
}

TEST(Utf8Test, RefusesWhatIsNone) {
  // A lone continuation, one cut short, one longer than needed (2, 3 and 4
  // bytes), half a surrogate pair, beyond U+10FFFF.
  for (const char* text :
       {"\x80", "\xC3", "\xC0\x80", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",
        "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_EQ(Utf8SequenceLength(text), 0u) << text;
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\xC3\xA4z"));
  EXPECT_FALSE(IsUtf8("a\xC3\xA4\xC3z"));
}

TEST(Utf8Test, ReplacesWhatIsNone) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xC3\xA4z"), "a\xC3\xA4z");
  EXPECT_EQ(ReplaceInvalidUtf8(absl::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(ReplaceInvalidUtf8("\xC3\xC3\xA4"), "\xEF\xBF\xBD\xC3\xA4");
}

}  // namespace
}  // namespace optfarm
