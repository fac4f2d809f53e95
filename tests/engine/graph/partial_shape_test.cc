// Partly known shapes and how knowledge of them is combined.

#include "engine/graph/partial_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

PartialShape Shape(const char* text) { return *PartialShape::Parse(text); }

TEST(PartialShape, TextAndBack) {
  for (const char* text : {"[]", "[1]", "[?,224,224,3]", "<unknown>"}) {
    EXPECT_EQ(Shape(text).ToString(), text);
    EXPECT_EQ(*PartialShape::FromProto(Shape(text).ToProto()), Shape(text));
  }
  EXPECT_EQ(Shape("1, -1,3").ToString(), "[1,?,3]");
  EXPECT_EQ(Shape("").ToString(), "[]");
  EXPECT_THAT(PartialShape::Parse("[1,2"), StatusIs(kInvalid, HasSubstr("]")));
  EXPECT_THAT(PartialShape::Parse("1,a"), StatusIs(kInvalid, HasSubstr("'a'")));
  EXPECT_THAT(PartialShape::Parse("-2"), StatusIs(kInvalid, HasSubstr("-2")));
}

TEST(PartialShape, DamagedProtosAreErrors) {
  tensorflow::TensorShapeProto proto;
  proto.add_dim()->set_size(-2);
  EXPECT_THAT(PartialShape::FromProto(proto),
              StatusIs(kInvalid, HasSubstr("-2")));
  proto.Clear();
  for (int i = 0; i < 300; ++i) proto.add_dim()->set_size(1);
  EXPECT_THAT(PartialShape::FromProto(proto),
              StatusIs(kInvalid, HasSubstr("300")));
}

TEST(PartialShape, CountsElements) {
  EXPECT_EQ(Shape("2,3").elements(), 6);
  EXPECT_EQ(Shape("").elements(), 1);
  EXPECT_EQ(Shape("2,?").elements(), std::nullopt);
  EXPECT_EQ(Shape("<unknown>").elements(), std::nullopt);
  EXPECT_EQ(Shape("4294967296,4294967296").elements(), std::nullopt);
}

TEST(PartialShape, MergeKeepsWhatEitherKnows) {
  EXPECT_EQ(*MergeShapes(Shape("?,3"), Shape("2,?")), Shape("2,3"));
  EXPECT_EQ(*MergeShapes(Shape("<unknown>"), Shape("2,?")), Shape("2,?"));
  EXPECT_THAT(MergeShapes(Shape("2,3"), Shape("2,4")),
              StatusIs(kInvalid, HasSubstr("dimension 1")));
  EXPECT_THAT(MergeShapes(Shape("2"), Shape("2,4")),
              StatusIs(kInvalid, HasSubstr("ranks")));
}

TEST(PartialShape, CommonKeepsWhatBothKnow) {
  EXPECT_EQ(CommonShape(Shape("2,3"), Shape("2,4")), Shape("2,?"));
  EXPECT_EQ(CommonShape(Shape("2"), Shape("2,4")), Shape("<unknown>"));
}

TEST(PartialShape, BroadcastsAsNumpyDoes) {
  const struct {
    const char* a;
    const char* b;
    const char* out;
  } cases[] = {
      {"2,3", "3", "[2,3]"}, {"2,1", "1,3", "[2,3]"},
      {"", "4", "[4]"},      {"?,3", "3", "[?,3]"},
      {"?", "5", "[5]"},     {"?", "1", "[?]"},
      {"?", "?", "[?]"},     {"<unknown>", "3", "<unknown>"},
      {"0", "1", "[0]"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(BroadcastShapes(Shape(c.a), Shape(c.b))->ToString(), c.out);
    EXPECT_EQ(BroadcastShapes(Shape(c.b), Shape(c.a))->ToString(), c.out);
  }
  EXPECT_THAT(BroadcastShapes(Shape("2"), Shape("3")),
              StatusIs(kInvalid, HasSubstr("[2]")));
}

TEST(PartialShape, SliceClampsAndCountsFromTheEnd) {
  EXPECT_EQ(Shape("1,2,3").Slice(1), Shape("2,3"));
  EXPECT_EQ(Shape("1,2,3").Slice(0, -1), Shape("1,2"));
  EXPECT_EQ(Shape("1,2,3").Slice(5), Shape(""));
  EXPECT_EQ(Shape("<unknown>").Slice(1), Shape("<unknown>"));
}

TEST(PartialShape, DimensionArithmeticDoesNotOverflow) {
  constexpr int64_t kBig = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(*AddDims(2, 3), 5);
  EXPECT_EQ(*AddDims(2, kUnknownDim), kUnknownDim);
  EXPECT_EQ(*MultiplyDims(0, kUnknownDim), 0);
  EXPECT_EQ(*DivideDimsEvenly(6, 3), 2);
  EXPECT_FALSE(AddDims(kBig, 1).ok());
  EXPECT_FALSE(MultiplyDims(kBig, 2).ok());
  EXPECT_FALSE(SubtractDims(2, 3).ok());
  EXPECT_FALSE(DivideDimsEvenly(7, 3).ok());
}

}  // namespace
}  // namespace optfarm::graph
