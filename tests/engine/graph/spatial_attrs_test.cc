// data_format and padding, read from nodes as models bring them.

#include "engine/graph/spatial_attrs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

MATCHER_P(Holds, value, "holds the value") { return arg.ok() && *arg == value; }

tensorflow::NodeDef NodeWith(const char* attribute, const char* text) {
  tensorflow::NodeDef node;
  node.set_name("conv");
  node.set_op("Conv2D");
  SetString(&node, attribute, text);
  return node;
}

// A number where a text belongs.
tensorflow::NodeDef NodeWithNumber(const char* attribute) {
  tensorflow::NodeDef node;
  node.set_name("conv");
  node.set_op("Conv2D");
  SetInt(&node, attribute, 1);
  return node;
}

TEST(DataFormatTest, TextsOfAllFormats) {
  EXPECT_THAT(ParseDataFormat("NHWC"), Holds(DataFormat::kNhwc));
  EXPECT_THAT(ParseDataFormat("NCHW"), Holds(DataFormat::kNchw));
  EXPECT_THAT(ParseDataFormat("NDHWC"), Holds(DataFormat::kNdhwc));
  EXPECT_THAT(ParseDataFormat("NCDHW"), Holds(DataFormat::kNcdhw));
  EXPECT_THAT(ParseDataFormat("NCHW_VECT_C"), Holds(DataFormat::kNchwVectC));
}

TEST(DataFormatTest, AnUnknownTextIsNamed) {
  for (const char* text : {"", "nhwc", "CHWN", "NHWC "}) {
    EXPECT_THAT(ParseDataFormat(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("data_format '", text, "'"))));
  }
}

TEST(DataFormatTest, AnAbsentAttributeMeansNhwc) {
  const tensorflow::NodeDef node;
  EXPECT_THAT(GetDataFormat(node), Holds(DataFormat::kNhwc));
  EXPECT_TRUE(IsNhwc(node));
  EXPECT_THAT(IsNchw(node), Holds(false));
  EXPECT_THAT(IsNcdhw(node), Holds(false));
  EXPECT_EQ(DataFormatText(node), "NHWC");
}

TEST(DataFormatTest, ImagesAndVolumesAreNotMixedUp) {
  const auto image = NodeWith("data_format", "NCHW");
  EXPECT_THAT(IsNchw(image), Holds(true));
  EXPECT_THAT(IsNcdhw(image),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("'NCHW' is neither NDHWC nor NCDHW")));
  const auto volume = NodeWith("data_format", "NDHWC");
  EXPECT_THAT(IsNcdhw(volume), Holds(false));
  EXPECT_THAT(IsNchw(volume),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("'NDHWC' is neither NHWC nor NCHW")));
  EXPECT_FALSE(IsNhwc(volume));
}

TEST(DataFormatTest, ANumberIsNoFormat) {
  const auto node = NodeWithNumber("data_format");
  EXPECT_THAT(GetDataFormat(node),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conv")));
  EXPECT_THAT(IsNchw(node),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conv")));
  EXPECT_FALSE(IsNhwc(node));
}

TEST(DataFormatTest, WhereTheChannelsAre) {
  EXPECT_FALSE(HasChannelsFirst(DataFormat::kNhwc));
  EXPECT_FALSE(HasChannelsFirst(DataFormat::kNdhwc));
  EXPECT_TRUE(HasChannelsFirst(DataFormat::kNchw));
  EXPECT_TRUE(HasChannelsFirst(DataFormat::kNcdhw));
}

TEST(PaddingTest, TextsOfAllPaddings) {
  EXPECT_THAT(GetPadding(NodeWith("padding", "SAME")), Holds(Padding::kSame));
  EXPECT_THAT(GetPadding(NodeWith("padding", "VALID")), Holds(Padding::kValid));
  EXPECT_THAT(GetPadding(NodeWith("padding", "EXPLICIT")),
              Holds(Padding::kExplicit));
}

TEST(PaddingTest, AbsentUnknownAndOfAnotherKind) {
  EXPECT_THAT(GetPadding(tensorflow::NodeDef()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lacks the attribute 'padding'")));
  EXPECT_THAT(GetPadding(NodeWith("padding", "FULL")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("padding 'FULL'")));
  EXPECT_THAT(GetPadding(NodeWithNumber("padding")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conv")));
}

TEST(PaddingTest, OfAWindowThatKnowsNoExplicitOne) {
  EXPECT_THAT(IsSame(NodeWith("padding", "SAME")), Holds(true));
  EXPECT_THAT(IsSame(NodeWith("padding", "VALID")), Holds(false));
  EXPECT_THAT(IsSame(NodeWith("padding", "EXPLICIT")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'EXPLICIT' is neither SAME nor VALID")));
  EXPECT_TRUE(IsSameOrValid(NodeWith("padding", "VALID")));
  EXPECT_FALSE(IsSameOrValid(NodeWith("padding", "EXPLICIT")));
  EXPECT_FALSE(IsSameOrValid(tensorflow::NodeDef()));
}

}  // namespace
}  // namespace optfarm::graph
