#include "client_cli/flags/tensor_spec_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each spec as "name" or "name[1,2]", or the error.
std::vector<std::string> Parse(const std::vector<std::string>& values) {
  const auto specs = ParseTensorSpecs(values);
  if (!specs.ok()) return {specs.status().ToString()};
  std::vector<std::string> texts;
  for (const v1::TensorSpec& spec : *specs) {
    texts.push_back(spec.shape_known()
                        ? absl::StrCat(spec.name(), "[",
                                       absl::StrJoin(spec.shape(), ","), "]")
                        : spec.name());
  }
  return texts;
}

TEST(TensorSpecFlagTest, NamesAloneAreNames) {
  EXPECT_THAT(Parse({"a,b/c"}), ElementsAre("a", "b/c"));
  EXPECT_THAT(Parse({"a", "b"}), ElementsAre("a", "b"));
  EXPECT_THAT(Parse({}), IsEmpty());
  EXPECT_THAT(Parse({""}), IsEmpty());
}

TEST(TensorSpecFlagTest, NumberAfterAColonIsAPort) {
  EXPECT_THAT(Parse({"split:1"}), ElementsAre("split:1"));
  EXPECT_THAT(Parse({"a:0,b"}), ElementsAre("a:0", "b"));
}

TEST(TensorSpecFlagTest, NumbersAfterANameAreItsShape) {
  EXPECT_THAT(Parse({"x:1,224,224,3"}), ElementsAre("x[1,224,224,3]"));
  EXPECT_THAT(Parse({"x:-1,784,label"}), ElementsAre("x[-1,784]", "label"));
  EXPECT_THAT(Parse({"x:?,784"}), ElementsAre("x[-1,784]"));
  EXPECT_THAT(Parse({"split:1:20,30"}), ElementsAre("split:1[20,30]"));
  EXPECT_THAT(Parse({"x:0:784"}), ElementsAre("x:0[784]"));
}

TEST(TensorSpecFlagTest, BracketsAndCrossesAreShapesToo) {
  EXPECT_THAT(Parse({"x:[1,224],y"}), ElementsAre("x[1,224]", "y"));
  EXPECT_THAT(Parse({"x:[]"}), ElementsAre("x[]"));
  EXPECT_THAT(Parse({"x:[784]"}), ElementsAre("x[784]"));
  EXPECT_THAT(Parse({"x:0:1x10,y:2"}), ElementsAre("x:0[1,10]", "y:2"));
}

TEST(TensorSpecFlagTest, MistakesNameTheWord) {
  EXPECT_THAT(
      ParseTensorSpecs({"x:[1,many]"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("'many' is no dimension in the shape of 'x'")));
  EXPECT_THAT(ParseTensorSpecs({"x:-5"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-5")));
  EXPECT_THAT(
      ParseTensorSpecs({"^x"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("control edge")));
  EXPECT_THAT(ParseTensorSpecs({"a,b,a"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'a' is named twice")));
  EXPECT_THAT(ParseTensorSpecs({"a,,b"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
}

}  // namespace
}  // namespace optfarm::client_cli
