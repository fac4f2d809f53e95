#include "engine/transforms/machinery/transform_string.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::transforms {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Steps = std::vector<TransformStep>;

Steps Parse(absl::string_view text) {
  const absl::StatusOr<Steps> steps = ParseTransforms(text);
  EXPECT_TRUE(steps.ok()) << steps.status();
  return steps.value_or(Steps());
}

TEST(TransformStringTest, ReadsNamesBetweenSpaces) {
  EXPECT_EQ(Parse("foo"), (Steps{{"foo", {}}}));
  EXPECT_EQ(Parse(" foo\tbar\n\vbaz\r\f"),
            (Steps{{"foo", {}}, {"bar", {}}, {"baz", {}}}));
  EXPECT_EQ(Parse("foo() bar()"), (Steps{{"foo", {}}, {"bar", {}}}));
  EXPECT_THAT(Parse(""), IsEmpty());
  EXPECT_THAT(Parse(" \n "), IsEmpty());
}

TEST(TransformStringTest, KeepsTheOrderOfRepeatedKeys) {
  EXPECT_EQ(Parse(R"(foo(bob=1) bar(a="1", b="1,2,3", a=3))"),
            (Steps{{"foo", {{"bob", "1"}}},
                   {"bar", {{"a", "1"}, {"b", "1,2,3"}, {"a", "3"}}}}));
}

TEST(TransformStringTest, TakesCommasOrSpacesBetweenParameters) {
  const Steps wanted = {{"f", {{"a", "1"}, {"b", "2"}}}};
  EXPECT_EQ(Parse("f(a=1,b=2)"), wanted);
  EXPECT_EQ(Parse("f(a=1 b=2)"), wanted);
  EXPECT_EQ(Parse("f(a=1, \n b=2)"), wanted);
  EXPECT_EQ(Parse("f(a=\"1\"b=2)"), wanted);
  EXPECT_EQ(Parse("f(,a=1,b=2)"), wanted);
}

TEST(TransformStringTest, KeepsWhatStandsInQuotes) {
  EXPECT_EQ(
      Parse(R"(f(a="", b="__requant_min_max:", c="x\"y"))"),
      (Steps{
          {"f", {{"a", ""}, {"b", "__requant_min_max:"}, {"c", R"(x\"y)"}}}}));
  EXPECT_EQ(Parse("f(a=path/to-file.txt)"),
            (Steps{{"f", {{"a", "path/to-file.txt"}}}}));
}

TEST(TransformStringTest, ShowsThePlaceOfAnError) {
  EXPECT_THAT(
      ParseTransforms("foo, bar"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("Looking for transform name, but found ','"),
                     HasSubstr("column 4"), EndsWith("  foo, bar\n     ^"))));
  EXPECT_THAT(
      ParseTransforms("foo \\\n bar"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Looking for transform name, but found '\\'")));
  EXPECT_THAT(ParseTransforms("foo(a=1,)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Looking for parameter name, but found ')'")));
  EXPECT_THAT(ParseTransforms("foo(a=1 )"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Looking for parameter name")));
  EXPECT_THAT(ParseTransforms("foo(a 1)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Looking for =, but found ' '")));
  EXPECT_THAT(
      ParseTransforms("foo(a=*)"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Looking for parameter value, but found '*'")));
}

TEST(TransformStringTest, RefusesWhatIsNotClosed) {
  EXPECT_THAT(ParseTransforms("foo(a=b"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("after 'foo' is not closed"),
                             HasSubstr("column 4"))));
  EXPECT_THAT(ParseTransforms("foo(a=\"b)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("quoted value is not closed at column 7")));
}

TEST(TransformStringTest, PrintsWhatItParses) {
  for (absl::string_view text : {"foo", "foo bar(a=1, b=\"1,2,3\", a=x/y.z-w)",
                                 "f(a=\"\")", R"(f(a="x\"y", b="a b"))"}) {
    EXPECT_EQ(PrintTransforms(Parse(text)), text);
  }
  EXPECT_EQ(PrintTransforms({}), "");
}

TEST(TransformStringTest, PrintsAnyValueSoThatItParses) {
  for (const char* value : {"a\"b", "\\", "a\\", "\\\"", "'", "(", ""}) {
    const std::string text = PrintTransforms({{"f", {{"k", value}}}});
    const Steps back = Parse(text);
    ASSERT_EQ(back.size(), 1u) << text;
    EXPECT_EQ(PrintTransforms(back), text);
  }
}

}  // namespace
}  // namespace optfarm::transforms
