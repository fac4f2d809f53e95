// What ONNX has no operator for: blocks of pictures, Fourier transforms, and
// the rounding of TensorFlow Lite's interpreter.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/export/convert_file.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_name.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "onnx/onnx.pb.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::exporting {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace optfarm::testing;  // NOLINT: the tests' own vocabulary
using graph::Graph;

ConvertOptions ToOnnx(int opset = 17) {
  ConvertOptions options;
  options.written.format = ModelFormat::kOnnx;
  options.written.opset = opset;
  return options;
}

void ExpectSameAnswers(const Graph& graph) {
  for (const int opset : {13, 17, 21}) {
    SCOPED_TRACE(opset);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                                 ConvertGraph(graph, ToOnnx(opset)));
    ASSERT_TRUE(made.difference.has_value());
    EXPECT_GT(made.difference->magnitude, 0.5);
    EXPECT_LE(made.difference->largest, 1e-5 * made.difference->magnitude);
  }
}

Attrs Blocks() {
  Attrs attrs = FloatT();
  attrs["Tblock_shape"] = TypeAttr(tensorflow::DT_INT32);
  attrs["Tpaddings"] = TypeAttr(tensorflow::DT_INT32);
  attrs["Tcrops"] = TypeAttr(tensorflow::DT_INT32);
  return attrs;
}

TEST(OnnxSpecialTest, BlocksMoveIntoTheBatchAndBack) {
  GraphBuilder b;
  b.Placeholder("x", {2, 7, 10, 3});
  b.Ints("blocks", {2}, {3, 2});
  b.Ints("pads", {2, 2}, {1, 1, 0, 2});
  b.Ints("crops", {2, 2}, {0, 1, 1, 0});
  Attrs there = Blocks(), back = Blocks();
  there.erase("Tcrops");
  back.erase("Tpaddings");
  b.Node("apart", "SpaceToBatchND", {"x", "blocks", "pads"}, there);
  b.Node("sine", "Sin", {"apart"}, FloatT());
  b.Node("y", "BatchToSpaceND", {"sine", "blocks", "crops"}, back);
  ExpectSameAnswers(b.Build());
}

TEST(OnnxSpecialTest, TransformsOfRealSignals) {
  for (const bool is_long : {false, true}) {
    GraphBuilder b;
    b.Placeholder("x", {2, 12});
    // Cut off, or filled up.
    b.Ints("length", {1}, {is_long ? 15 : 8});
    b.Node("bins", "RFFT", {"x", "length"});
    b.Node("real", "Real", {"bins"});
    b.Node("imaginary", "Imag", {"bins"});
    b.Node("y", "Sub", {"real", "imaginary"}, FloatT());
    ExpectSameAnswers(b.Build());
  }
}

TEST(OnnxSpecialTest, TransformsOfRowsToo) {
  GraphBuilder b;
  b.Placeholder("x", {3, 4, 6});
  b.Ints("length", {2}, {5, 6});
  b.Node("bins", "RFFT2D", {"x", "length"});
  b.Node("y", "ComplexAbs", {"bins"});
  ExpectSameAnswers(b.Build());
}

TEST(OnnxSpecialTest, RefusesOtherArithmeticOnComplexNumbers) {
  GraphBuilder b;
  b.Placeholder("x", {2, 8});
  b.Ints("length", {1}, {8});
  b.Node("bins", "RFFT", {"x", "length"});
  b.Node("twice", "AddV2", {"bins", "bins"},
         {{"T", TypeAttr(tensorflow::DT_COMPLEX64)}});
  b.Node("y", "ComplexAbs", {"twice"});
  EXPECT_THAT(ConvertGraph(b.Build(), ToOnnx()).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'twice' (AddV2): it reads complex numbers")));
}

// Values of one scale as values of another, by way of `op`.
Graph Requantized(const std::string& op, const Attrs& rounding,
                  float step = 1.0f / 128) {
  GraphBuilder b;
  b.Placeholder("x", {1, 4, 4, 3});
  b.Floats("from", {}, {1.0f / 256});
  b.Floats("to", {}, {step});
  for (const auto& [name, value] : {std::pair("low", -128), {"three", 3}}) {
    *b.mutable_def()->add_node() = transforms::MakeConst(
        name, runtime::Tensor::FromValues<int8_t>(
                  runtime::Shape({}), {static_cast<int8_t>(value)}));
  }
  Attrs types = FloatT();
  types["Q"] = TypeAttr(tensorflow::DT_INT8);
  b.Node("first", "QuantizeLinear", {"x", "from", "low"}, types);
  b.Node("real", "DequantizeLinear", {"first", "from", "low"},
         {{"Q", TypeAttr(tensorflow::DT_INT8)}});
  b.Node("between", op, {"real"}, FloatT());
  types.insert(rounding.begin(), rounding.end());
  const char* zero = op == "Identity" ? "three" : "low";
  b.Node("second", "QuantizeLinear", {"between", "to", zero}, types);
  b.Node("y", "DequantizeLinear", {"second", "to", zero},
         {{"Q", TypeAttr(tensorflow::DT_INT8)}});
  return b.Build();
}

// Half of the sums of the values lie between two steps.
TEST(OnnxSpecialTest, KeepsTheInterpretersRounding) {
  const Attrs roundings[] = {{{"rounding", StringAttr("half_up")}},
                             {{"rounding", StringAttr("half_away")}},
                             {{"input_scale", FloatAttr(1.0f / 256)}}};
  for (const Attrs& rounding : roundings) {
    SCOPED_TRACE(rounding.begin()->second.DebugString());
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const ConvertedModel made,
        ConvertGraph(Requantized("Identity", rounding), ToOnnx()));
    ASSERT_TRUE(made.difference.has_value());
    EXPECT_EQ(made.difference->unequal, 0);
    // Our reader finds it again.
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        auto read, formats::LoadModelFromMemory(made.bytes, std::nullopt, "m"));
    const std::string& name = rounding.begin()->first;
    EXPECT_TRUE(std::any_of(
        read.def.node().begin(), read.def.node().end(), [&](const auto& node) {
          const auto found = node.attr().find(name);
          return node.op() == "QuantizeLinear" && found != node.attr().end() &&
                 found->second.SerializeAsString() ==
                     rounding.begin()->second.SerializeAsString();
        }));
  }
}

// The sum of two tensors of 8 bits whose scales are shares of the result's.
Graph QuantizedSum(float share_a, float share_b) {
  constexpr float kStep = 1.0f / 64;
  GraphBuilder b;
  b.Floats("step", {}, {kStep});
  *b.mutable_def()->add_node() = transforms::MakeConst(
      "zero",
      runtime::Tensor::FromValues<int8_t>(runtime::Shape({}), {int8_t{3}}));
  const Attrs bytes = {{"Q", TypeAttr(tensorflow::DT_INT8)}};
  Attrs types = FloatT();
  types.insert(bytes.begin(), bytes.end());
  for (const auto& [name, share] :
       {std::pair<std::string, float>("a", share_a), {"b", share_b}}) {
    b.Placeholder(name, {64, 64});
    b.Floats(name + "_step", {}, {kStep * share});
    b.Node(name + "_values", "QuantizeLinear", {name, name + "_step", "zero"},
           types);
    b.Node(name + "_numbers", "DequantizeLinear",
           {name + "_values", name + "_step", "zero"}, bytes);
  }
  b.Node("sum", "AddV2", {"a_numbers", "b_numbers"}, FloatT());
  types["rounding"] = StringAttr("half_up");
  b.Node("values", "QuantizeLinear", {"sum", "step", "zero"}, types);
  b.Node("y", "DequantizeLinear", {"values", "step", "zero"}, bytes);
  return b.Build();
}

// A sum that is not moved is one that ONNX Runtime computes on integers.
TEST(OnnxSpecialTest, MovesSumsOffHalvesOnlyWhereTheyAreHalves) {
  const auto sums = [](float share_a, float share_b) {
    const auto made = ConvertGraph(QuantizedSum(share_a, share_b), ToOnnx());
    EXPECT_TRUE(made.ok()) << made.status();
    // Our reader rounds as before, moved or not.
    EXPECT_EQ(made->difference->unequal, 0);
    const auto read =
        formats::LoadModelFromMemory(made->bytes, std::nullopt, "m");
    EXPECT_TRUE(read.ok()) << read.status();
    int rounded_up = 0;
    for (const auto& node : read->def.node()) {
      const auto found = node.attr().find("rounding");
      rounded_up +=
          found != node.attr().end() && found->second.s() == "half_up";
    }
    EXPECT_EQ(rounded_up, 1);
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(made->bytes));
    return std::count_if(
        model.graph().node().begin(), model.graph().node().end(),
        [](const auto& node) { return node.op_type() == "Add"; });
  };
  // Every second sum of odd values is a half.
  EXPECT_EQ(sums(0.5f, 1.0f), 2);
  EXPECT_EQ(sums(1.0f, 2.0f), 1);
}

TEST(OnnxSpecialTest, LeavesOutAReluThatQuantizingIs) {
  const auto count = [](const Graph& graph) {
    const auto made = ConvertGraph(graph, ToOnnx());
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->difference->unequal, 0);
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(made->bytes));
    return std::count_if(model.graph().node().begin(),
                         model.graph().node().end(), [](const auto& node) {
                           return node.op_type() == "Relu" ||
                                  node.op_type() == "Clip";
                         });
  };
  EXPECT_EQ(count(Requantized("Relu", {})), 0);
  // The most that fits is 2, below 6.
  EXPECT_EQ(count(Requantized("Relu6", {})), 0);
  // 16 fits.
  EXPECT_EQ(count(Requantized("Relu6", {}, 1.0f / 16)), 1);
}

// In blocks along an axis, which ONNX has since opset 21.
TEST(OnnxSpecialTest, KeepsWeightsOfFourBits) {
  GraphBuilder b;
  b.Placeholder("x", {2, 256});
  constexpr int kWeights = 256 * 64;
  std::vector<float> weights;
  for (int i = 0; i < kWeights; ++i) {
    weights.push_back(std::sin(0.37f * static_cast<float>(i)));
  }
  b.Floats("w", {256, 64}, weights);
  b.Node("y", "MatMul", {"x", "w"}, FloatT());
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto steps,
      transforms::ParseTransforms("quantize_product_weights(minimum_size=2)"));
  ASSERT_THAT(transforms::RunTransforms(&graph, steps,
                                        graph::ParseTensorNames("x").value(),
                                        graph::ParseTensorNames("y").value()),
              IsOk());
  std::map<int, size_t> bytes;
  for (const int opset : {17, 21}) {
    SCOPED_TRACE(opset);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                                 ConvertGraph(graph, ToOnnx(opset)));
    ASSERT_TRUE(made.difference.has_value());
    EXPECT_LE(made.difference->largest, 1e-6 * made.difference->magnitude);
    bytes[opset] = made.bytes.size();
    // Our reader keeps them so too.
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto read,
        formats::LoadModelFromMemory(made.bytes, std::nullopt, "m"));
    EXPECT_EQ(std::count_if(read.def.node().begin(), read.def.node().end(),
                            [](const auto& node) {
                              return node.op() == "DequantizeBlocks";
                            }),
              opset == 21 ? 1 : 0);
  }
  // 4 bits a weight, and 20 for a block of 32.
  EXPECT_LT(bytes[21], kWeights * 5 / 8 + 1000);
  EXPECT_GT(bytes[17], kWeights * 4);
}

// A runtime takes a layer for one on integers when it reads DequantizeLinear.
TEST(OnnxSpecialTest, TurnsQuantizedValuesRatherThanNumbers) {
  GraphBuilder b;
  b.Placeholder("x", {1, 4, 4, 3});
  b.Floats("scale", {}, {1.0f / 128});
  *b.mutable_def()->add_node() = transforms::MakeConst(
      "zero",
      runtime::Tensor::FromValues<int8_t>(runtime::Shape({}), {int8_t{3}}));
  Attrs types = FloatT();
  types["Q"] = TypeAttr(tensorflow::DT_INT8);
  b.Node("values", "QuantizeLinear", {"x", "scale", "zero"}, types);
  b.Node("numbers", "DequantizeLinear", {"values", "scale", "zero"},
         {{"Q", TypeAttr(tensorflow::DT_INT8)}});
  b.Floats("filter", {1, 1, 3, 2}, {1, 0.5f, -1, 0.25f, 2, -0.5f});
  b.Node("y", "Conv2D", {"numbers", "filter"},
         FloatT({{"strides", IntsAttr({1, 1, 1, 1})},
                 {"padding", StringAttr("SAME")}}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                               ConvertGraph(b.Build(), ToOnnx()));
  ASSERT_TRUE(made.difference.has_value());
  EXPECT_LE(made.difference->largest, 1e-6 * made.difference->magnitude);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(made.bytes));
  std::vector<std::string> ops;
  for (const auto& node : model.graph().node()) ops.push_back(node.op_type());
  EXPECT_THAT(ops, ElementsAre("QuantizeLinear", "Transpose",
                               "DequantizeLinear", "Conv", "Transpose"));
}

}  // namespace
}  // namespace optfarm::exporting
