// Signed 8-bit values as unsigned ones in a written file.

#include "engine/export/unsigned_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/export/convert_file.h"
#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::exporting {
namespace {

using ::testing::HasSubstr;
constexpr int kUint8 = 2, kInt8 = 3;

std::string Node(const std::string& op, const std::string& inputs,
                 const std::string& output) {
  return absl::StrCat("node { op_type: '", op, "' ", inputs, " output: '",
                      output, "' } ");
}

// x is quantized, turned, dequantized and multiplied with 8-bit weights; where
// `gives_values`, the turned values are an output, too.
std::string QuantizedProduct(bool gives_values) {
  const std::string scales = "input: 's' input: 'z' ";
  return formats::OnnxBytes(absl::StrCat(
      Node("QuantizeLinear", "input: 'x' " + scales, "q"),
      Node("Transpose", "input: 'q'", "turned"),
      Node("DequantizeLinear", "input: 'turned' " + scales, "real"),
      Node("DequantizeLinear", "input: 'w' input: 's' input: 'wz'", "weights"),
      Node("MatMul", "input: 'real' input: 'weights'", "y"),
      "initializer { name: 's' data_type: 1 float_data: 0.5 } "
      "initializer { name: 'z' data_type: 3 int32_data: -3 } "
      "initializer { name: 'wz' data_type: 3 int32_data: 0 } "
      "initializer { name: 'w' data_type: 3 dims: 2 dims: 1 int32_data: -128 "
      "int32_data: 127 } input { ",
      formats::FloatValue("x", {2, 2}), " } output { ",
      formats::FloatValue("y", {2, 1}), " } ",
      gives_values ? "output { name: 'turned' type { tensor_type { elem_type: "
                     "3 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } "
                     "} }"
                   : ""));
}

onnx::ModelProto Unsigned(const std::string& bytes) {
  const auto graph = formats::ReadOnnxGraph(bytes);
  EXPECT_TRUE(graph.ok()) << graph.status();
  ConvertOptions options;
  options.written.format = ModelFormat::kOnnx;
  options.written.unsigned_values = true;
  const auto made = ConvertGraph(*graph, options);
  EXPECT_TRUE(made.ok()) << made.status();
  onnx::ModelProto model;
  if (!made.ok()) return model;
  EXPECT_THAT(made->line, HasSubstr("are equal"));
  EXPECT_TRUE(model.ParseFromString(made->bytes));
  return model;
}

std::map<int, int> TypesOf(const onnx::ModelProto& model) {
  std::map<int, int> counts;
  for (const auto& constant : model.graph().initializer()) {
    ++counts[constant.data_type()];
  }
  return counts;
}

TEST(UnsignedValuesTest, ValuesAndWeightsGrowWithTheirZeroPoints) {
  const onnx::ModelProto model = Unsigned(QuantizedProduct(false));
  EXPECT_EQ(TypesOf(model)[kInt8], 0);
  for (const auto& constant : model.graph().initializer()) {
    if (constant.dims_size() != 2) continue;
    EXPECT_EQ(constant.data_type(), kUint8);
    EXPECT_EQ(constant.raw_data(), std::string("\x00\xff", 2));
  }
}

// A table of 8-bit values that are looked up: its type has another name.
TEST(UnsignedValuesTest, TablesGrowWithWhatIsTakenFromThem) {
  const onnx::ModelProto model = Unsigned(formats::OnnxBytes(absl::StrCat(
      Node("Gather", "input: 'w' input: 'i'", "rows"),
      Node("Reshape", "input: 'rows' input: 'shape'", "flat"),
      Node("DequantizeLinear", "input: 'flat' input: 's' input: 'z'", "real"),
      Node("Add", "input: 'real' input: 'x'", "y"),
      "initializer { name: 's' data_type: 1 float_data: 0.5 } "
      "initializer { name: 'z' data_type: 3 int32_data: -3 } "
      "initializer { name: 'i' data_type: 7 dims: 2 int64_data: 1 "
      "int64_data: 0 } "
      "initializer { name: 'shape' data_type: 7 dims: 1 int64_data: 2 } "
      "initializer { name: 'w' data_type: 3 dims: 2 dims: 1 int32_data: -128 "
      "int32_data: 127 } input { ",
      formats::FloatValue("x", {2}), " } output { ",
      formats::FloatValue("y", {2}), " }")));
  EXPECT_EQ(TypesOf(model)[kInt8], 0);
}

TEST(UnsignedValuesTest, WhatTheModelGivesStaysSigned) {
  const onnx::ModelProto model = Unsigned(QuantizedProduct(true));
  std::map<int, int> types = TypesOf(model);
  // The zero point of the values, and weights with theirs.
  EXPECT_EQ(types[kInt8], 1);
  EXPECT_EQ(types[kUint8], 2);
}

TEST(UnsignedValuesTest, ActivationsOfInt8AreFoundAndNothingElse) {
  const auto quantizes = [](const std::string& input,
                            tensorflow::DataType type) {
    testing::GraphBuilder b;
    b.Placeholder("x", {2});
    b.Floats("w", {2}, {1, 2});
    // One without inputs, as a file may have it.
    b.Node("q", "QuantizeLinear",
           input.empty() ? std::vector<std::string>()
                         : std::vector<std::string>{input},
           {{"Q", testing::TypeAttr(type)}});
    return QuantizesToInt8(b.Build());
  };
  EXPECT_TRUE(quantizes("x", tensorflow::DT_INT8));
  EXPECT_FALSE(quantizes("x", tensorflow::DT_UINT8));
  EXPECT_FALSE(quantizes("w", tensorflow::DT_INT8));
  EXPECT_FALSE(quantizes("", tensorflow::DT_INT8));
}

}  // namespace
}  // namespace optfarm::exporting
