// Graphs as ONNX models: their structure, and their answers once they are read
// back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/export/export_model.h"
#include "engine/formats/onnx/writer.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "onnx/onnx.pb.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::exporting {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace optfarm::testing;  // NOLINT: the tests' own vocabulary
using graph::Graph;

onnx::ModelProto Parsed(const absl::StatusOr<std::string>& bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (bytes.ok()) {
    EXPECT_TRUE(model.ParseFromString(*bytes));
  }
  return model;
}

int CountOf(const onnx::ModelProto& model, const std::string& op) {
  int count = 0;
  for (const auto& node : model.graph().node()) count += node.op_type() == op;
  return count;
}

std::vector<float> WaveValues(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((i * 37 + 11) % 101 - 50) / 50.0f);
  }
  return values;
}

Attrs Window(int64_t size, int64_t stride, const std::string& padding) {
  return FloatT({{"ksize", IntsAttr({1, size, size, 1})},
                 {"strides", IntsAttr({1, stride, stride, 1})},
                 {"padding", StringAttr(padding)}});
}

Attrs Strides(int64_t stride, const std::string& padding) {
  return FloatT({{"strides", IntsAttr({1, stride, stride, 1})},
                 {"padding", StringAttr(padding)}});
}

Attrs WithInt32(const std::string& name, Attrs attrs = {}) {
  attrs[name] = TypeAttr(tensorflow::DT_INT32);
  return FloatT(attrs);
}

// A trunk as nets of pictures have it: convolutions, norms, activations, pools,
// a branch that is joined again, and a matrix product behind a mean.
GraphBuilder Trunk(int64_t batch = 1) {
  GraphBuilder b;
  b.Placeholder("in", {batch, 9, 8, 3});
  b.Floats("w1", {3, 3, 3, 8}, WaveValues(216));
  b.Node("conv", "Conv2D", {"in", "w1"}, Strides(2, "SAME"));
  b.Floats("b1", {8}, WaveValues(8));
  b.Node("biased", "BiasAdd", {"conv", "b1"}, FloatT());
  b.Node("relu6", "Relu6", {"biased"}, FloatT());
  b.Floats("w2", {3, 3, 8, 1}, WaveValues(72));
  b.Node("depthwise", "DepthwiseConv2dNative", {"relu6", "w2"},
         Strides(1, "SAME"));
  b.Floats("scale", {8}, WaveValues(8));
  b.Floats("variance", {8}, {1, 2, 3, 4, 1, 2, 3, 4});
  b.Node("norm", "FusedBatchNorm",
         {"depthwise", "scale", "b1", "b1", "variance"},
         FloatT({{"is_training", BoolAttr(false)},
                 {"epsilon", FloatAttr(0.01f)}}));
  b.Node("pool", "MaxPool", {"relu6"}, Window(3, 1, "SAME"));
  b.Floats("channels", {8}, WaveValues(8));
  b.Node("scaled", "Mul", {"channels", "pool"}, FloatT());
  b.Ints("axis", {}, {3});
  b.Node("joined", "ConcatV2", {"norm", "scaled", "axis"},
         WithInt32("Tidx", {{"N", IntAttr(2)}}));
  b.Ints("pads", {4, 2}, {0, 0, 1, 2, 0, 1, 0, 0});
  b.Node("padded", "Pad", {"joined", "pads"}, WithInt32("Tpaddings"));
  b.Ints("axes", {2}, {1, 2});
  b.Node("mean", "Mean", {"padded", "axes"},
         WithInt32("Tidx", {{"keep_dims", BoolAttr(false)}}));
  b.Floats("w3", {16, 4}, WaveValues(64));
  b.Node("product", "MatMul", {"mean", "w3"}, FloatT());
  b.Floats("b3", {4}, WaveValues(4));
  b.Node("logits", "BiasAdd", {"product", "b3"}, FloatT());
  b.Node("out", "Softmax", {"logits"}, FloatT());
  return b;
}

// Writes, reads back and compares. Floats may differ by their rounding.
void ExpectRoundTrip(const Graph& graph, int opset, double tolerance = 2e-5) {
  const auto io = graph::InferIo(graph);
  ASSERT_TRUE(io.ok()) << io.status();
  const auto bytes =
      ExportModel(graph, *io, {.format = ModelFormat::kOnnx, .opset = opset});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto difference = CompareExported(graph, *io, *bytes);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_LE(difference->largest,
            tolerance * std::max(difference->magnitude, 1e-3))
      << difference->output;
}

TEST(OnnxExportTest, HasNoTransposeInsideOfATrunk) {
  const onnx::ModelProto model = Parsed(formats::WriteOnnx(Trunk().Build()));
  EXPECT_EQ(CountOf(model, "Transpose"), 1);
  EXPECT_EQ(model.graph().node(0).op_type(), "Transpose");
  EXPECT_EQ(CountOf(model, "Conv"), 2);
  // Both biases are in their layers.
  EXPECT_EQ(CountOf(model, "Add"), 0);
  EXPECT_EQ(CountOf(model, "Gemm"), 1);
}

TEST(OnnxExportTest, GivesTheSameAnswersInEveryOpset) {
  for (int opset : {13, 14, 17, 18, 21}) {
    SCOPED_TRACE(opset);
    ExpectRoundTrip(Trunk().Build(), opset);
  }
}

TEST(OnnxExportTest, KeepsNamesAndLayoutOfInputsAndOutputs) {
  GraphBuilder b = Trunk();
  b.Node("pictures", "Relu", {"padded"}, FloatT());
  formats::OnnxWriteOptions options;
  options.outputs = {{"out", 0}, {"pictures", 0}};
  const onnx::ModelProto model = Parsed(formats::WriteOnnx(b.Build(), options));
  ASSERT_EQ(model.graph().input_size(), 1);
  EXPECT_EQ(model.graph().input(0).name(), "in");
  ASSERT_EQ(model.graph().output_size(), 2);
  EXPECT_EQ(model.graph().output(0).name(), "out");
  EXPECT_EQ(model.graph().output(1).name(), "pictures");
  std::vector<int64_t> dims;
  for (const auto& dim :
       model.graph().output(1).type().tensor_type().shape().dim()) {
    dims.push_back(dim.dim_value());
  }
  EXPECT_THAT(dims, ElementsAre(1, 8, 5, 16));
  EXPECT_EQ(CountOf(model, "Transpose"), 2);
}

TEST(OnnxExportTest, KeepsTheBatchOpen) {
  const onnx::ModelProto model = Parsed(formats::WriteOnnx(Trunk(-1).Build()));
  const auto& shape = model.graph().input(0).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_param(), "batch");
  EXPECT_EQ(shape.dim(1).dim_value(), 9);
  EXPECT_FALSE(model.graph()
                   .output(0)
                   .type()
                   .tensor_type()
                   .shape()
                   .dim(0)
                   .has_dim_value());
}

TEST(OnnxExportTest, SaysOpsetAndVersionOfTheFile) {
  const std::map<int, int64_t> versions = {{13, 7}, {17, 8}, {21, 10}};
  for (const auto& [opset, version] : versions) {
    const onnx::ModelProto model =
        Parsed(formats::WriteOnnx(Trunk().Build(), {.opset = opset}));
    EXPECT_EQ(model.ir_version(), version);
    ASSERT_EQ(model.opset_import_size(), 1);
    EXPECT_EQ(model.opset_import(0).version(), opset);
  }
  EXPECT_THAT(
      formats::WriteOnnx(Trunk().Build(), {.opset = 12}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("13 to 21")));
}

TEST(OnnxExportTest, RefusesWithAllReasons) {
  GraphBuilder b;
  b.Placeholder("in", {2, 2});
  b.Node("gamma", "Lgamma", {"in"}, FloatT());
  b.Node("digamma", "Digamma", {"in"}, FloatT());
  b.Node("sum", "Add", {"gamma", "digamma"}, FloatT());
  b.Node("out", "Relu", {"sum"}, FloatT());
  EXPECT_THAT(
      formats::WriteOnnx(b.Build()).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("2 reasons"), HasSubstr("'gamma' (Lgamma)"),
                     HasSubstr("'digamma' (Digamma)"))));
}

TEST(OnnxExportTest, IsTheSameFileEveryTime) {
  const Graph graph = Trunk().Build();
  EXPECT_EQ(formats::WriteOnnx(graph).value(),
            formats::WriteOnnx(graph).value());
}

TEST(OnnxExportTest, KeepsScalesAndZeroPointsBitForBit) {
  GraphBuilder b;
  b.Placeholder("in", {1, 4});
  const float scale = 0.1f;
  b.Floats("scale", {}, {scale});
  auto& zero =
      b.Node("zero", "Const", {}, {{"dtype", TypeAttr(tensorflow::DT_INT8)}});
  auto* tensor = (*zero.mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(tensorflow::DT_INT8);
  tensor->mutable_tensor_shape();
  tensor->add_int_val(-7);
  const Attrs types = FloatT({{"Q", TypeAttr(tensorflow::DT_INT8)}});
  b.Node("q", "QuantizeLinear", {"in", "scale", "zero"}, types);
  b.Node("out", "DequantizeLinear", {"q", "scale", "zero"},
         {{"Q", TypeAttr(tensorflow::DT_INT8)}});
  const onnx::ModelProto model = Parsed(formats::WriteOnnx(b.Build()));
  std::map<std::string, std::string> constants;
  for (const auto& constant : model.graph().initializer()) {
    constants[constant.name()] = constant.raw_data();
    EXPECT_EQ(constant.dims_size(), 0);
  }
  EXPECT_EQ(constants["scale"],
            std::string(reinterpret_cast<const char*>(&scale), sizeof(scale)));
  EXPECT_EQ(constants["zero"], "\xf9");
  ExpectRoundTrip(b.Build(), 17);
}

TEST(OnnxExportTest, StoresWeightsIn16BitsOnRequest) {
  GraphBuilder b = Trunk();
  const Graph graph = b.Build();
  const auto io = graph::InferIo(graph).value();
  const auto wide =
      ExportModel(graph, io, {.format = ModelFormat::kOnnx}).value();
  const auto half = ExportModel(
      graph, io, {.format = ModelFormat::kOnnx, .half_weights = true});
  ASSERT_TRUE(half.ok()) << half.status();
  // Small constants stay as they are, so this only must not fail or grow.
  EXPECT_LE(half->size(), wide.size());
}

// --- Ops, one small graph each -----------------------------------------------

struct OpCase {
  std::string name;
  // From "in", a picture [1, 6, 8, 4] behind a convolution, to "op".
  std::function<void(GraphBuilder*)> add;
};

const std::vector<OpCase>& OpCases() {
  static const auto* const kCases = new std::vector<OpCase>{
      {"Unary",
       [](GraphBuilder* b) {
         b->Node("a", "Sigmoid", {"x"}, FloatT());
         b->Node("b", "Square", {"a"}, FloatT());
         b->Node("c", "Rsqrt", {"b"}, FloatT());
         b->Node("op", "Softplus", {"c"}, FloatT());
       }},
      {"LeakyRelu",
       [](GraphBuilder* b) {
         b->Node("op", "LeakyRelu", {"x"},
                 FloatT({{"alpha", FloatAttr(0.3f)}}));
       }},
      {"HardSwish",
       [](GraphBuilder* b) { b->Node("op", "HardSwish", {"x"}, FloatT()); }},
      {"SoftmaxOverChannels",
       [](GraphBuilder* b) { b->Node("op", "Softmax", {"x"}, FloatT()); }},
      {"BroadcastPicture",
       [](GraphBuilder* b) {
         b->Floats("row", {8, 1}, WaveValues(8));
         b->Node("op", "SquaredDifference", {"x", "row"}, FloatT());
       }},
      {"MeanOfChannels",
       [](GraphBuilder* b) {
         b->Ints("axes", {1}, {-1});
         b->Node("op", "Mean", {"x", "axes"},
                 WithInt32("Tidx", {{"keep_dims", BoolAttr(false)}}));
       }},
      {"SplitChannels",
       [](GraphBuilder* b) {
         b->Ints("axis", {}, {3});
         b->Node("parts", "Split", {"axis", "x"},
                 FloatT({{"num_split", IntAttr(2)}}));
         b->Node("op", "Sub", {"parts:1", "parts"}, FloatT());
       }},
      {"StridedSlice",
       [](GraphBuilder* b) {
         b->Ints("begin", {4}, {0, 1, -1, 0});
         b->Ints("end", {4}, {0, 6, 0, -1});
         b->Ints("step", {4}, {1, 2, -3, 1});
         b->Node("op", "StridedSlice", {"x", "begin", "end", "step"},
                 WithInt32("Index", {{"begin_mask", IntAttr(1)},
                                     {"end_mask", IntAttr(1)}}));
       }},
      {"IndexOfRows",
       [](GraphBuilder* b) {
         b->Ints("begin", {2}, {0, 2});
         b->Ints("end", {2}, {1, 3});
         b->Ints("step", {2}, {1, 1});
         b->Node("op", "StridedSlice", {"x", "begin", "end", "step"},
                 WithInt32("Index", {{"shrink_axis_mask", IntAttr(2)}}));
       }},
      {"Transposed",
       [](GraphBuilder* b) {
         b->Ints("perm", {4}, {0, 2, 3, 1});
         b->Node("turned", "Transpose", {"x", "perm"}, WithInt32("Tperm"));
         b->Floats("last", {6}, WaveValues(6));
         b->Node("op", "Add", {"turned", "last"}, FloatT());
       }},
      {"Flattened",
       [](GraphBuilder* b) {
         b->Ints("shape", {2}, {1, -1});
         b->Node("op", "Reshape", {"x", "shape"}, WithInt32("Tshape"));
       }},
      {"ExpandedAndSqueezed",
       [](GraphBuilder* b) {
         b->Ints("axis", {}, {3});
         b->Node("wide", "ExpandDims", {"x", "axis"}, WithInt32("Tdim"));
         b->Node("op", "Squeeze", {"wide"},
                 FloatT({{"squeeze_dims", IntsAttr({0, 3})}}));
       }},
      {"AveragePool",
       [](GraphBuilder* b) {
         b->Node("op", "AvgPool", {"x"}, Window(3, 2, "SAME"));
       }},
      {"LocalResponse",
       [](GraphBuilder* b) {
         b->Node("op", "LRN", {"x"},
                 FloatT({{"depth_radius", IntAttr(1)},
                         {"alpha", FloatAttr(0.5f)}}));
       }},
      {"NormOfBatch",
       [](GraphBuilder* b) {
         b->Floats("scale", {4}, WaveValues(4));
         b->Floats("none", {0}, {});
         b->Node("op", "FusedBatchNorm",
                 {"x", "scale", "scale", "none", "none"},
                 FloatT({{"is_training", BoolAttr(true)}}));
       }},
      {"DilatedConvolution",
       [](GraphBuilder* b) {
         b->Floats("w2", {3, 3, 4, 2}, WaveValues(72));
         Attrs attrs = Strides(1, "SAME");
         attrs["dilations"] = IntsAttr({1, 2, 2, 1});
         b->Node("op", "Conv2D", {"x", "w2"}, attrs);
       }},
      {"DepthwiseWithTwoOutputsEach",
       [](GraphBuilder* b) {
         b->Floats("w2", {3, 3, 4, 2}, WaveValues(72));
         b->Node("op", "DepthwiseConv2dNative", {"x", "w2"},
                 Strides(1, "VALID"));
       }},
      {"TransposedConvolution",
       [](GraphBuilder* b) {
         b->Ints("sizes", {4}, {1, 12, 16, 3});
         b->Floats("w2", {3, 3, 3, 4}, WaveValues(108));
         b->Node("op", "Conv2DBackpropInput", {"sizes", "w2", "x"},
                 Strides(2, "SAME"));
       }},
      {"ResizedLinearly",
       [](GraphBuilder* b) {
         b->Ints("size", {2}, {11, 13});
         b->Node("op", "ResizeBilinear", {"x", "size"}, FloatT());
       }},
      {"ResizedByNearest",
       [](GraphBuilder* b) {
         b->Ints("size", {2}, {12, 5});
         b->Node("op", "ResizeNearestNeighbor", {"x", "size"}, FloatT());
       }},
      {"DepthToSpace",
       [](GraphBuilder* b) {
         b->Node("op", "DepthToSpace", {"x"},
                 FloatT({{"block_size", IntAttr(2)}}));
       }},
      {"MirroredPad",
       [](GraphBuilder* b) {
         b->Ints("pads", {4, 2}, {0, 0, 2, 1, 0, 3, 0, 0});
         b->Node("op", "MirrorPad", {"x", "pads"},
                 WithInt32("Tpaddings", {{"mode", StringAttr("REFLECT")}}));
       }},
      {"Reversed",
       [](GraphBuilder* b) {
         b->Ints("axes", {2}, {1, -1});
         b->Node("op", "ReverseV2", {"x", "axes"}, WithInt32("Tidx"));
       }},
      {"Tiled",
       [](GraphBuilder* b) {
         b->Ints("multiples", {4}, {1, 2, 1, 3});
         b->Node("op", "Tile", {"x", "multiples"}, WithInt32("Tmultiples"));
       }},
      {"FakeQuantized",
       [](GraphBuilder* b) {
         b->Floats("min", {}, {-1});
         b->Floats("max", {}, {2});
         b->Node("op", "FakeQuantWithMinMaxVars", {"x", "min", "max"});
       }},
      {"BestOfChannels",
       [](GraphBuilder* b) {
         b->Ints("axis", {}, {3});
         b->Node("best", "ArgMax", {"x", "axis"},
                 WithInt32("Tidx",
                           {{"output_type", TypeAttr(tensorflow::DT_INT32)}}));
         b->Node("op", "Cast", {"best"},
                 {{"SrcT", TypeAttr(tensorflow::DT_INT32)},
                  {"DstT", TypeAttr(tensorflow::DT_FLOAT)}});
       }},
  };
  return *kCases;
}

class OnnxOpTest : public ::testing::TestWithParam<OpCase> {};

TEST_P(OnnxOpTest, GivesTheSameAnswerWhenReadBack) {
  GraphBuilder b;
  b.Placeholder("in", {1, 6, 8, 2});
  b.Floats("w", {1, 1, 2, 4}, WaveValues(8));
  b.Conv2D("x", "in", "w");
  GetParam().add(&b);
  b.Node("out", "Neg", {"op"}, FloatT());
  for (int opset : {13, 17, 21}) {
    SCOPED_TRACE(opset);
    ExpectRoundTrip(b.Build(), opset);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OnnxOpTest, ::testing::ValuesIn(OpCases()),
                         [](const auto& of_case) {
                           return of_case.param.name;
                         });

// --- Whole nets --------------------------------------------------------------

TEST(OnnxExportTest, WritesMobilenetWithoutTransposesInside) {
  OPTFARM_REQUIRE_TEST_DATA();
  const auto def = formats::LoadGraphDef(
      TestDataPath("models/mobilenet_v1_0.25_128/frozen_graph.pb"));
  ASSERT_TRUE(def.ok()) << def.status();
  const Graph graph = Graph::FromDef(*def).value();
  const auto io = graph::InferIo(graph);
  ASSERT_TRUE(io.ok()) << io.status();
  const auto bytes = ExportModel(graph, *io, {.format = ModelFormat::kOnnx});
  const onnx::ModelProto model = Parsed(bytes);
  EXPECT_EQ(CountOf(model, "Transpose"), 1);
  EXPECT_EQ(CountOf(model, "Conv"), 28);
  ExpectRoundTrip(graph, 17, 1e-4);
}

TEST(FormatOfPathTest, IsTheEndOfTheName) {
  EXPECT_EQ(FormatOfPath("a/b.onnx").value(), ModelFormat::kOnnx);
  EXPECT_EQ(FormatOfPath("a.PB").value(), ModelFormat::kGraph);
  EXPECT_EQ(FormatOfPath("a.pbtxt").value(), ModelFormat::kGraphText);
  EXPECT_EQ(FormatOfPath("a.tflite").value(), ModelFormat::kTflite);
  EXPECT_THAT(FormatOfPath("a.bin").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(".onnx")));
}

}  // namespace
}  // namespace optfarm::exporting
