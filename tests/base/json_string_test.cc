#include "base/json_string.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace optfarm {
namespace {

TEST(JsonStringTest, EscapesWhatJsonWantsEscaped) {
  EXPECT_EQ(JsonString("a/b:0"), "\"a/b:0\"");
  EXPECT_EQ(JsonString("say \"x\\y\""), "\"say \\\"x\\\\y\\\"\"");
  EXPECT_EQ(JsonString("1\n2\t3\r"), "\"1\\n2\\t3\\r\"");
  EXPECT_EQ(JsonString(std::string("\x01\x7F\0", 3)),
            "\"\\u0001\\u007f\\u0000\"");
}

TEST(JsonStringTest, KeepsUtf8AndReplacesWhatIsNot) {
  const std::string good = "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80";
  EXPECT_EQ(JsonString(good), "\"" + good + "\"");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(JsonString("\xFF"), "\"" + bad + "\"");
  // Cut short; longer than needed; a surrogate; beyond the last code point.
  EXPECT_EQ(JsonString("\xE2\x82"), "\"" + bad + bad + "\"");
  EXPECT_EQ(JsonString("\xC0\x80"), "\"" + bad + bad + "\"");
  EXPECT_EQ(JsonString("\xED\xA0\x80"), "\"" + bad + bad + bad + "\"");
  EXPECT_EQ(JsonString("\xF4\x90\x80\x80"),
            "\"" + bad + bad + bad + bad + "\"");
}

TEST(JsonStringTest, NumbersThatJsonCannotSayAreNull) {
  EXPECT_EQ(JsonNumber(1.5), "1.5");
  EXPECT_EQ(JsonNumber(3e9), "3000000000");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::infinity()), "null");
}

}  // namespace
}  // namespace optfarm
