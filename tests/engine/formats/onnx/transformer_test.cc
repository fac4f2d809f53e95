// Operators of transformers and of images that are read between their pixels,
// by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using runtime::Floats;
using runtime::Tensor;
using runtime::ValuesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Constant(const std::string& name, const std::vector<int64_t>& dims,
                     const std::string& values, int type) {
  std::string text =
      absl::StrCat("initializer { name: '", name, "' data_type: ", type);
  for (const int64_t dim : dims) absl::StrAppend(&text, " dims: ", dim);
  return absl::StrCat(text, " ", values, " } ");
}

std::string FloatConstant(const std::string& name,
                          const std::vector<int64_t>& dims,
                          const std::vector<float>& values) {
  return Constant(
      name, dims,
      absl::StrCat("float_data: [", absl::StrJoin(values, ","), "]"), 1);
}

std::string Int64Constant(const std::string& name,
                          const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& values) {
  return Constant(
      name, dims,
      absl::StrCat("int64_data: [", absl::StrJoin(values, ","), "]"), 7);
}

std::string Int32Constant(const std::string& name,
                          const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& values) {
  return Constant(
      name, dims,
      absl::StrCat("int32_data: [", absl::StrJoin(values, ","), "]"), 6);
}

std::string Node(const std::string& op, const std::string& domain,
                 const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs,
                 const std::string& attributes = "") {
  std::string text =
      absl::StrCat("node { op_type: '", op, "' domain: '", domain, "' ");
  for (const std::string& name : inputs) {
    absl::StrAppend(&text, "input: '", name, "' ");
  }
  for (const std::string& name : outputs) {
    absl::StrAppend(&text, "output: '", name, "' ");
  }
  return absl::StrCat(text, attributes, "} ");
}

std::string Int(const std::string& name, int64_t value) {
  return absl::StrCat("attribute { name: '", name, "' type: INT i: ", value,
                      " } ");
}

// One input x of floats; outputs as named, of a type each.
std::string Model(const std::vector<int64_t>& x,
                  const std::vector<std::string>& outputs,
                  const std::string& rest, int opset, int type = 1) {
  std::string text = absl::StrCat("input { ", FloatValue("x", x), " } ");
  for (const std::string& name : outputs) {
    absl::StrAppend(&text, "output { name: '", name,
                    "' type { tensor_type { elem_type: ", type, " } } } ");
  }
  return OnnxBytes(absl::StrCat(text, rest), opset,
                   "opset_import { domain: 'com.microsoft' version: 1 }");
}

constexpr char kMicrosoft[] = "com.microsoft";

TEST(OnnxTransformerTest, WritesIntoCaches) {
  for (const bool is_circular : {false, true}) {
    const std::string rest = absl::StrCat(
        FloatConstant("u", {1, 1, 2, 1}, {8, 9}),
        Int64Constant("at", {1}, {is_circular ? 3 : 1}),
        Node("TensorScatter", "", {"x", "u", "at"}, {"y"},
             is_circular
                 ? "attribute { name: 'mode' type: STRING s: 'circular' } "
                 : ""));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                                 Answers(Model({1, 1, 4, 1}, {"y"}, rest, 24),
                                         {Floats({1, 1, 4, 1}, {1, 2, 3, 4})}));
    EXPECT_EQ(ValuesOf<float>(answers[0]),
              is_circular ? std::vector<float>({9, 2, 3, 8})
                          : std::vector<float>({1, 8, 9, 4}));
  }
}

// A query of 0 sees all keys alike: the mean of the past value and the new one.
TEST(OnnxTransformerTest, GroupedQueriesSeeThePast) {
  const std::string rest = absl::StrCat(
      FloatConstant("k", {1, 1, 1}, {5}), FloatConstant("v", {1, 1, 1}, {4}),
      FloatConstant("pk", {1, 1, 1, 1}, {7}),
      FloatConstant("pv", {1, 1, 1, 1}, {2}), Int32Constant("last", {1}, {1}),
      Int32Constant("total", {}, {2}),
      Node("GroupQueryAttention", kMicrosoft,
           {"x", "k", "v", "pk", "pv", "last", "total"}, {"y", "ak", "av"},
           Int("num_heads", 2) + Int("kv_num_heads", 1)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers, Answers(Model({1, 1, 2}, {"y", "ak", "av"}, rest, 17),
                                  {Floats({1, 1, 2}, {0, 0})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(3, 3));
  EXPECT_THAT(ValuesOf<float>(answers[1]), ElementsAre(7, 5));
  EXPECT_THAT(ValuesOf<float>(answers[2]), ElementsAre(2, 4));
}

TEST(OnnxTransformerTest, HeadsSeeThePast) {
  const std::string rest = absl::StrCat(
      FloatConstant("k", {1, 1, 1}, {5}), FloatConstant("v", {1, 1, 1}, {4}),
      FloatConstant("pk", {1, 1, 1, 1}, {7}),
      FloatConstant("pv", {1, 1, 1, 1}, {2}),
      Node("MultiHeadAttention", kMicrosoft,
           {"x", "k", "v", "", "", "", "pk", "pv"}, {"y", "ak", "av"},
           Int("num_heads", 1)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers, Answers(Model({1, 1, 1}, {"y", "ak", "av"}, rest, 17),
                                  {Floats({1, 1, 1}, {0})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(3));
  EXPECT_THAT(ValuesOf<float>(answers[1]), ElementsAre(7, 5));
  EXPECT_THAT(ValuesOf<float>(answers[2]), ElementsAre(2, 4));
}

TEST(OnnxTransformerTest, RefusesLocalWindows) {
  const std::string rest = absl::StrCat(
      FloatConstant("k", {1, 1, 1}, {5}), FloatConstant("v", {1, 1, 1}, {4}),
      Int32Constant("last", {1}, {0}), Int32Constant("total", {}, {1}),
      Node("GroupQueryAttention", kMicrosoft,
           {"x", "k", "v", "", "", "last", "total"}, {"y"},
           Int("num_heads", 1) + Int("kv_num_heads", 1) +
               Int("local_window_size", 4)));
  EXPECT_THAT(
      ReadOnnxGraph(Model({1, 1, 1}, {"y"}, rest, 17)),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("local windows")));
}

// Row 1 of the tables turns by a quarter.
TEST(OnnxTransformerTest, TurnsFromAPlaceOn) {
  const std::string rest = absl::StrCat(
      Int64Constant("at", {1}, {1}), FloatConstant("cos", {2, 1}, {1, 0}),
      FloatConstant("sin", {2, 1}, {0, 1}),
      Node("RotaryEmbedding", kMicrosoft, {"x", "at", "cos", "sin"}, {"y"}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers,
      Answers(Model({1, 1, 2}, {"y"}, rest, 17), {Floats({1, 1, 2}, {1, 2})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(-2, 1));
}

TEST(OnnxTransformerTest, QuantizesInBlocks) {
  const std::string rest = absl::StrCat(
      FloatConstant("s", {1, 2}, {1, 10}),
      Node("QuantizeLinear", "", {"x", "s"}, {"y"},
           Int("axis", 1) + Int("block_size", 2) + Int("output_dtype", 3)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(Model({1, 4}, {"y"}, rest, 21, 3),
                                       {Floats({1, 4}, {1, 2.5f, -26, 2000})}));
  EXPECT_THAT(ValuesOf<int8_t>(answers[0]), ElementsAre(1, 2, -3, 127));
}

TEST(OnnxSamplingTest, MakesGridsOfPlaces) {
  const std::string rest = absl::StrCat(
      Int64Constant("size", {4}, {1, 1, 2, 2}),
      Node("AffineGrid", "", {"x", "size"}, {"y"}, Int("align_corners", 1)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers, Answers(Model({1, 2, 3}, {"y"}, rest, 20),
                                  {Floats({1, 2, 3}, {1, 0, 0, 0, 1, 0.5f})}));
  EXPECT_EQ(answers[0].shape(), runtime::Shape({1, 2, 2, 2}));
  EXPECT_THAT(ValuesOf<float>(answers[0]),
              ElementsAre(-1, -0.5f, 1, -0.5f, -1, 1.5f, 1, 1.5f));
}

// Each tap one to the right: those of the last column read nothing.
TEST(OnnxSamplingTest, ConvolvesOverMovedPlaces) {
  for (const float move : {0.0f, 1.0f}) {
    const std::string rest =
        absl::StrCat(FloatConstant("w", {1, 1, 2, 2}, {1, 1, 1, 1}),
                     FloatConstant("moves", {1, 8, 1, 1},
                                   {0, move, 0, move, 0, move, 0, move}),
                     Node("DeformConv", "", {"x", "w", "moves"}, {"y"}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                                 Answers(Model({1, 1, 2, 2}, {"y"}, rest, 19),
                                         {Floats({1, 1, 2, 2}, {1, 2, 3, 4})}));
    EXPECT_THAT(ValuesOf<float>(answers[0]),
                ElementsAre(::testing::FloatNear(move == 0 ? 10 : 6, 1e-5)));
  }
}

}  // namespace
}  // namespace optfarm::formats
