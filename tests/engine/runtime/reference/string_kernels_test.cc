// Ops on text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::testing::ElementsAre;

Tensor Texts(const std::vector<std::string>& values) {
  return Tensor::FromValues<std::string>(
      Shape{static_cast<int64_t>(values.size())}, values);
}
Tensor Text(const std::string& value) {
  return Tensor::Scalar<std::string>(value);
}

TEST(StringJoinTest, ScalarsGoWithEveryElement) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor joined, Op("StringJoin")
                                                        .Int("N", 2)
                                                        .Text("separator", "-")
                                                        .In(Texts({"a", "b"}))
                                                        .In(Text("x"))
                                                        .Run());
  EXPECT_THAT(ValuesOf<std::string>(joined), ElementsAre("a-x", "b-x"));
}

TEST(StringSplitTest, MakesASparseMatrixOfPieces) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               Op("StringSplit")
                                   .In(Texts({"a b", " c,d ,", ""}))
                                   .In(Text(" ,"))
                                   .RunAll(3));
  EXPECT_THAT(ValuesOf<int64_t>(out[0]), ElementsAre(0, 0, 0, 1, 1, 0, 1, 1));
  EXPECT_THAT(ValuesOf<std::string>(out[1]), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(ValuesOf<int64_t>(out[2]), ElementsAre(3, 2));
}

TEST(StringSplitV2Test, SplitsAtTheWholeSeparatorOrAtWhiteSpace) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto whole,
      Op("StringSplitV2").In(Texts({"a<>b<><>c"})).In(Text("<>")).RunAll(3));
  EXPECT_THAT(ValuesOf<std::string>(whole[1]), ElementsAre("a", "b", "", "c"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto spaces,
                               Op("StringSplitV2")
                                   .Int("maxsplit", 1)
                                   .In(Texts({"  a b \t c "}))
                                   .In(Text(""))
                                   .RunAll(3));
  EXPECT_THAT(ValuesOf<std::string>(spaces[1]), ElementsAre("a", "b \t c"));
}

TEST(SubstrTest, CountsFromEitherEndInBytesOrCharacters) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor bytes,
      Op("Substr").In(Texts({"hello", "world"})).In(Int(-3)).In(Int(2)).Run());
  EXPECT_THAT(ValuesOf<std::string>(bytes), ElementsAre("ll", "rl"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor characters,
                               Op("Substr")
                                   .Text("unit", "UTF8_CHAR")
                                   .In(Text("h\xc3\xa4llo"))
                                   .In(Int(1))
                                   .In(Int(2))
                                   .Run());
  EXPECT_EQ(*characters.data<std::string>(), "\xc3\xa4l");
  EXPECT_FALSE(Op("Substr").In(Text("ab")).In(Int(3)).In(Int(1)).Run().ok());
}

TEST(StringLengthTest, CountsBytesOrCharacters) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor bytes,
                               Op("StringLength").In(Text("\xc3\xa4")).Run());
  EXPECT_EQ(*bytes.data<int32_t>(), 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor characters,
      Op("StringLength").Text("unit", "UTF8_CHAR").In(Text("\xc3\xa4")).Run());
  EXPECT_EQ(*characters.data<int32_t>(), 1);
}

TEST(ReduceJoinTest, JoinsAlongTheAxesInTheirOrder) {
  const Tensor table = Texts({"a", "b", "c", "d"}).Reshaped(Shape{2, 2});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor rows,
                               Op("ReduceJoin").In(table).In(Ints({1})).Run());
  EXPECT_THAT(ValuesOf<std::string>(rows), ElementsAre("ab", "cd"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor all,
      Op("ReduceJoin").Text("separator", ".").In(table).In(Ints({0, 1})).Run());
  EXPECT_THAT(ValuesOf<std::string>(all), ElementsAre("a.b.c.d"));
}

TEST(StringToNumberTest, ReadsOrRefuses) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor floats,
      Op("StringToNumber").In(Texts({"1.5", "-2e3"})).Run());
  EXPECT_THAT(ValuesOf<float>(floats), ElementsAre(1.5f, -2000.0f));
  EXPECT_FALSE(Op("StringToNumber").In(Text("one")).Run().ok());
}

TEST(AsStringTest, FormatsAsTheAttributesSay) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor plain,
                               Op("AsString").In(Floats({2}, {1.5, -2})).Run());
  EXPECT_THAT(ValuesOf<std::string>(plain),
              ElementsAre("1.500000", "-2.000000"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor padded,
      Op("AsString").Int("width", 4).Text("fill", "0").In(Ints({7, -7})).Run());
  EXPECT_THAT(ValuesOf<std::string>(padded), ElementsAre("0007", "-007"));
}

TEST(Base64Test, DecodingUndoesEncoding) {
  const std::string bytes("\xff\0\x01zz", 5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor encoded,
      Op("EncodeBase64").Bool("pad", true).In(Text(bytes)).Run());
  EXPECT_EQ(encoded.data<std::string>()->size() % 4, 0u);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor decoded,
                               Op("DecodeBase64").In(encoded).Run());
  EXPECT_EQ(*decoded.data<std::string>(), bytes);
  EXPECT_FALSE(Op("DecodeBase64").In(Text("*")).Run().ok());
}

}  // namespace
}  // namespace optfarm::runtime
