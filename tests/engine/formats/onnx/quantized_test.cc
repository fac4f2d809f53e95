// Quantized operators of ONNX models, by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/formats/models/load_model.h"
#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using runtime::Floats;
using runtime::ValuesOf;
using ::testing::ElementsAre;
using ::testing::Pointwise;

std::string Scale(const std::string& name, float value) {
  return absl::StrCat("initializer { name: '", name,
                      "' data_type: 1 float_data: ", value, " } ");
}
std::string ZeroPoint(const std::string& name, int value) {
  return absl::StrCat("initializer { name: '", name,
                      "' data_type: 2 int32_data: ", value, " } ");
}

// x, quantized with step 0.5 and zero point 10 -> the nodes -> y in floats.
std::string QuantizedModel(const std::string& nodes, int64_t inputs,
                           int64_t outputs, const std::string& more = "") {
  return OnnxBytes(
      absl::StrCat("input { ", FloatValue("x", {1, inputs}), " } output { ",
                   FloatValue("y", {1, outputs}), " } ", Scale("s", 0.5f),
                   ZeroPoint("z", 10), more,
                   "node { op_type: 'QuantizeLinear' input: 'x' input: 's' "
                   "input: 'z' output: 'q' } ",
                   nodes,
                   "node { op_type: 'DequantizeLinear' input: 'r' input: 's' "
                   "input: 'z' output: 'y' }"),
      17, "opset_import { domain: 'com.microsoft' version: 1 }");
}

TEST(OnnxQuantizedTest, AddsQuantizedValuesAsFloats) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers,
      Answers(QuantizedModel("node { op_type: 'QLinearAdd' domain: "
                             "'com.microsoft' input: 'q' input: 's' input: 'z' "
                             "input: 'q' input: 's' input: 'z' input: 's' "
                             "input: 'z' output: 'r' } ",
                             3, 3),
              {Floats({1, 3}, {1.2f, -3, 100})}));
  // 1.2 is nearest to 1; values below -5 and above 122.5 have no code.
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(2, -5, 122.5f));
}

TEST(OnnxQuantizedTest, MultipliesQuantizedMatrices) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers,
      Answers(QuantizedModel(
                  "node { op_type: 'QLinearMatMul' input: 'q' input: 's' "
                  "input: 'z' input: 'w' input: 's' input: 'z' input: 's' "
                  "input: 'z' output: 'r' } ",
                  2, 1,
                  "initializer { name: 'w' dims: 2 dims: 1 data_type: 2 "
                  "int32_data: 12 int32_data: 14 } "),
              {Floats({1, 2}, {3, 4})}));
  // Weights 1 and 2.
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(11));
}

TEST(OnnxQuantizedTest, CountsIntegerProductsExactly) {
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { name: 'x' type { tensor_type { elem_type: 2 shape { dim { "
      "dim_value: 1 } dim { dim_value: 2 } } } } } output { name: 'y' type { "
      "tensor_type { elem_type: 6 } } } ",
      ZeroPoint("z", 10),
      "initializer { name: 'w' dims: 2 dims: 1 data_type: 3 int32_data: -3 "
      "int32_data: 5 } node { op_type: 'MatMulInteger' input: 'x' input: 'w' "
      "input: 'z' output: 'y' }"));
  const auto x =
      runtime::Tensor::FromValues<uint8_t>(runtime::Shape({1, 2}), {0, 255});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers, Answers(bytes, {x}));
  EXPECT_THAT(ValuesOf<int32_t>(answers[0]), ElementsAre(30 + 245 * 5));
}

// Two outputs that are sums over `count` values: all weights of the first are
// 255, all of the second 3.
std::string IntegerProduct(const std::string& op, int64_t count,
                           const std::string& shape_x,
                           const std::string& shape_w, bool by_output) {
  std::string bytes;
  for (int64_t i = 0; i < 2 * count; ++i) {
    const bool is_first = by_output ? i < count : i % 2 == 0;
    absl::StrAppend(&bytes, is_first ? "\\377" : "\\003");
  }
  return OnnxBytes(absl::StrCat(
      "input { name: 'x' type { tensor_type { elem_type: 2 shape { ", shape_x,
      " } } } } output { name: 'y' type { tensor_type { elem_type: 6 } } } ",
      "initializer { name: 'w' ", shape_w, " data_type: 2 raw_data: '", bytes,
      "' } node { op_type: '", op, "' input: 'x' input: 'w' output: 'y' }"));
}

TEST(OnnxQuantizedTest, WeightsOfIntegerProductsStayBytes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const graph::Graph graph,
      ReadOnnxGraph(IntegerProduct("MatMulInteger", 40,
                                   "dim { dim_value: 1 } dim { dim_value: 40 }",
                                   "dims: 40 dims: 2", false)));
  EXPECT_TRUE(absl::c_any_of(graph.Ids(), [&](graph::NodeId id) {
    return graph.node(id).op() == "DequantizeLinear";
  }));
}

TEST(OnnxQuantizedTest, SumsOfManyIntegerProductsAreExact) {
  // In floats, in halves of a byte, in doubles.
  for (const int64_t count : {200, 300, 4500}) {
    std::vector<uint8_t> values(static_cast<size_t>(count), 255);
    values[1] = 254;
    const int64_t sum = 255 * count - 1;
    const auto dims = [](const std::vector<int64_t>& list) {
      std::string text;
      for (const int64_t dim : list) {
        absl::StrAppend(&text, "dim { dim_value: ", dim, " } ");
      }
      return text;
    };
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto convolved,
        Answers(IntegerProduct(
                    "ConvInteger", count, dims({1, count, 1, 1}),
                    absl::StrCat("dims: 2 dims: ", count, " dims: 1 dims: 1"),
                    true),
                {runtime::Tensor::FromValues<uint8_t>(
                    runtime::Shape({1, count, 1, 1}), values)}));
    EXPECT_THAT(ValuesOf<int32_t>(convolved[0]),
                ElementsAre(255 * sum, 3 * sum));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto multiplied,
        Answers(
            IntegerProduct("MatMulInteger", count, dims({1, count}),
                           absl::StrCat("dims: ", count, " dims: 2"), false),
            {runtime::Tensor::FromValues<uint8_t>(runtime::Shape({1, count}),
                                                  values)}));
    EXPECT_THAT(ValuesOf<int32_t>(multiplied[0]),
                ElementsAre(255 * sum, 3 * sum));
  }
}

TEST(OnnxQuantizedTest, FindsTheRangeOfEachRun) {
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {3}),
      " } output { name: 'y' type { tensor_type { elem_type: 2 } } } output { ",
      FloatValue("s", {}),
      " } output { name: 'z' type { tensor_type { elem_type: 2 } } } ",
      "node { op_type: 'DynamicQuantizeLinear' input: 'x' output: 'y' "
      "output: 's' output: 'z' }"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({3}, {-1, 0, 4.1f})}));
  EXPECT_THAT(ValuesOf<float>(answers[1]),
              Pointwise(::testing::FloatNear(1e-7f), {0.02f}));
  EXPECT_THAT(ValuesOf<uint8_t>(answers[2]), ElementsAre(50));
  EXPECT_THAT(ValuesOf<uint8_t>(answers[0]), ElementsAre(0, 50, 255));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto zeros,
                               Answers(bytes, {Floats({3}, {0, 0, 0})}));
  EXPECT_THAT(ValuesOf<uint8_t>(zeros[0]), ElementsAre(0, 0, 0));
}

TEST(OnnxQuantizedTest, UnpacksWeightsInBlocks) {
  const std::string bytes = OnnxBytes(
      absl::StrCat("input { ", FloatValue("x", {1, 4}), " } output { ",
                   FloatValue("y", {1, 1}),
                   // 3, 10 and 8, 9; each pair with a scale.
                   " } initializer { name: 'b' dims: 1 dims: 2 dims: 1 "
                   "data_type: 2 raw_data: '\\xa3\\x98' } "
                   "initializer { name: 's' dims: 2 data_type: 1 "
                   "float_data: 0.5 float_data: 2 } "
                   "node { op_type: 'MatMulNBits' domain: 'com.microsoft' "
                   "input: 'x' input: 'b' input: 's' output: 'y' "
                   "attribute { name: 'K' type: INT i: 4 } "
                   "attribute { name: 'N' type: INT i: 1 } "
                   "attribute { name: 'block_size' type: INT i: 2 } }"),
      17, "opset_import { domain: 'com.microsoft' version: 1 }");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers, Answers(bytes, {Floats({1, 4}, {2, 4, 100, 10})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]),
              ElementsAre(2 * -2.5f + 4 * 1.0f + 10 * 2.0f));
}

// A MatMulNBits of 65 x 64 weights in blocks of 16, more than are made floats
// as constants. Each column's last block has places to spare, and so has the
// last byte of its five zero points.
constexpr int kDepth = 65, kColumns = 64, kBlock = 16, kBlocks = 5;

int WeightAt(int k, int c) { return (3 * k + 5 * c) % 16; }
int ZeroPointAt(int b, int c) { return (7 * b + c) % 16; }
float ScaleAt(int b, int c) { return 0.25f * static_cast<float>(1 + b + c); }

void SetHalf(std::string* bytes, int i, int value) {
  (*bytes)[static_cast<size_t>(i / 2)] |=
      static_cast<char>(i % 2 == 0 ? value : value << 4);
}

std::string BlockModel(const std::string& zero_points) {
  std::string packed(kColumns * kBlocks * kBlock / 2, '\0');
  std::string scales;
  for (int c = 0; c < kColumns; ++c) {
    for (int k = 0; k < kDepth; ++k) {
      SetHalf(&packed, c * kBlocks * kBlock + k, WeightAt(k, c));
    }
    for (int b = 0; b < kBlocks; ++b) {
      absl::StrAppend(&scales, " float_data: ", ScaleAt(b, c));
    }
  }
  return OnnxBytes(
      absl::StrCat(
          "input { ", FloatValue("x", {1, kDepth}), " } output { ",
          FloatValue("y", {1, kColumns}), " } initializer { name: 'b' dims: ",
          kColumns, " dims: ", kBlocks, " dims: ", kBlock / 2,
          " data_type: 2 raw_data: '", absl::CEscape(packed),
          "' } initializer { name: 's' data_type: 1 dims: ", kColumns * kBlocks,
          scales, " } ", zero_points,
          " node { op_type: 'MatMulNBits' domain: 'com.microsoft' "
          "input: 'x' input: 'b' input: 's' input: 'z' output: 'y' "
          "attribute { name: 'K' type: INT i: ",
          kDepth, " } attribute { name: 'N' type: INT i: ", kColumns,
          " } attribute { name: 'block_size' type: INT i: ", kBlock, " } }"),
      17, "opset_import { domain: 'com.microsoft' version: 1 }");
}

// Whether the model is read with weights of 4 bits; its answer to 1, 2, ... is
// compared with the definition, zero points lower by `less`.
bool KeepsFourBits(const std::string& bytes, float less) {
  const auto read = LoadModelFromMemory(bytes, std::nullopt, "m");
  EXPECT_TRUE(read.ok()) << read.status();
  std::vector<float> x;
  std::vector<double> y(kColumns, 0);
  for (int k = 0; k < kDepth; ++k) {
    x.push_back(static_cast<float>(1 + k));
    for (int c = 0; c < kColumns; ++c) {
      const int b = k / kBlock;
      y[static_cast<size_t>(c)] +=
          x.back() * ScaleAt(b, c) *
          (static_cast<float>(WeightAt(k, c) - ZeroPointAt(b, c)) + less);
    }
  }
  const auto answers = Answers(bytes, {Floats({1, kDepth}, x)});
  EXPECT_TRUE(answers.ok()) << answers.status();
  if (!read.ok() || !answers.ok()) return false;
  EXPECT_THAT(ValuesOf<float>((*answers)[0]),
              Pointwise(::testing::FloatEq(), y));
  return absl::c_any_of(read->def.node(), [](const auto& node) {
    return node.op() == "DequantizeBlocks";
  });
}

TEST(OnnxQuantizedTest, KeepsWeightsOfMatMulNBitsInFourBits) {
  std::string packed(kColumns * 3, '\0');
  for (int c = 0; c < kColumns; ++c) {
    for (int b = 0; b < kBlocks; ++b) {
      SetHalf(&packed, c * 6 + b, ZeroPointAt(b, c));
    }
  }
  EXPECT_TRUE(KeepsFourBits(
      BlockModel(absl::StrCat(
          "initializer { name: 'z' data_type: 2 dims: ", packed.size(),
          " raw_data: '", absl::CEscape(packed), "' }")),
      0));
}

TEST(OnnxQuantizedTest, MakesFloatsOfWeightsWithZeroPointsBetweenCodes) {
  std::string values;
  for (int c = 0; c < kColumns; ++c) {
    for (int b = 0; b < kBlocks; ++b) {
      absl::StrAppend(&values, " float_data: ", ZeroPointAt(b, c) - 0.5);
    }
  }
  EXPECT_FALSE(KeepsFourBits(
      BlockModel(absl::StrCat("initializer { name: 'z' data_type: 1 dims: ",
                              kColumns * kBlocks, values, " }")),
      0.5f));
}

// A note of the writer's; it speaks of one scale.
TEST(OnnxQuantizedTest, RoundsHalvesUpWhereTheNodeSaysSo) {
  const auto answer = [](const std::string& scale, const std::string& zero) {
    const auto node = [&](const std::string& op, const std::string& ends) {
      return absl::StrCat("node { op_type: '", op, "' ", ends, " input: '",
                          scale, "' input: '", zero,
                          "' attribute { name: 'axis' type: INT i: 1 } "
                          "metadata_props { key: 'optfarm.rounding' value: "
                          "'half_up' } } ");
    };
    const std::string bytes = OnnxBytes(absl::StrCat(
        "input { ", FloatValue("x", {1, 2}), " } output { ",
        FloatValue("y", {1, 2}), " } ", Scale("s", 0.5f), ZeroPoint("z", 10),
        "initializer { name: 'ss' data_type: 1 dims: 2 float_data: 0.5 "
        "float_data: 0.5 } initializer { name: 'zz' data_type: 2 dims: 2 "
        "int32_data: 10 int32_data: 10 } ",
        node("QuantizeLinear", "output: 'q' input: 'x'"),
        node("DequantizeLinear", "output: 'y' input: 'q'")));
    const auto answers = Answers(bytes, {Floats({1, 2}, {0.25f, 1.0f})});
    EXPECT_TRUE(answers.ok()) << answers.status();
    return answers.ok() ? ValuesOf<float>((*answers)[0]) : std::vector<float>();
  };
  EXPECT_THAT(answer("s", "z"), ElementsAre(0.5f, 1.0f));
  EXPECT_THAT(answer("ss", "zz"), ElementsAre(0.0f, 1.0f));
}

}  // namespace
}  // namespace optfarm::formats
