// The structure of written models: fused operators, layouts, versions, names.

#include "engine/formats/tflite/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/formats/tflite/written_model.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using optfarm::testing::FloatT;
using optfarm::testing::GraphBuilder;
using optfarm::testing::IntAttr;
using optfarm::testing::IntsAttr;
using optfarm::testing::StatusIs;
using optfarm::testing::StringAttr;
using optfarm::testing::TypeAttr;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<float> Counted(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

WrittenModel Write(const GraphBuilder& b,
                   const TfliteWriteOptions& options = TfliteWriteOptions()) {
  const auto bytes = WriteTflite(b.Build(), options);
  EXPECT_THAT(bytes, optfarm::testing::IsOk());
  return WrittenModel(bytes.value_or(""));
}

TEST(TfliteWriterTest, FusesBiasAndActivationIntoAConvolution) {
  GraphBuilder b;
  b.Placeholder("image", {1, 4, 4, 2});
  b.Floats("w", {1, 2, 2, 3}, Counted(12));
  b.Floats("bias", {3}, {1, 2, 3});
  b.Conv2D("conv", "image", "w");
  b.Node("sum", "BiasAdd", {"conv", "bias"}, FloatT());
  b.Node("out", "Relu6", {"sum"}, FloatT());
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "CONV_2D");
  const auto* options = model.op(0).builtin_options.AsConv2DOptions();
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->fused_activation_function,
            tflite::ActivationFunctionType::RELU6);
  EXPECT_EQ(options->padding, tflite::Padding::SAME);
  EXPECT_EQ(model.code(0).version, 1);
  // HWIO became OHWI.
  EXPECT_THAT(model.input(0, 1).shape, ElementsAre(3, 1, 2, 2));
  EXPECT_THAT(model.Data<float>(model.input(0, 1)),
              ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11));
  EXPECT_THAT(model.Data<float>(model.input(0, 2)), ElementsAre(1, 2, 3));
  EXPECT_EQ(model.model_input(0).name, "image");
  EXPECT_EQ(model.model_output(0).name, "out");
  EXPECT_THAT(model.model_output(0).shape, ElementsAre(1, 4, 4, 3));
}

TEST(TfliteWriterTest, KeepsAnActivationThatIsAlsoRead) {
  GraphBuilder b;
  b.Placeholder("image", {1, 4, 4, 2});
  b.Floats("w", {1, 1, 2, 2}, Counted(4));
  b.Conv2D("conv", "image", "w");
  b.Node("relu", "Relu", {"conv"}, FloatT());
  b.Node("out", "Mul", {"conv", "relu"}, FloatT());
  EXPECT_EQ(Write(b).Operators(), "CONV_2D RELU MUL");
}

TEST(TfliteWriterTest, WritesGroupsOfOneChannelAsDepthwise) {
  GraphBuilder b;
  b.Placeholder("image", {1, 4, 4, 2});
  b.Floats("w", {1, 1, 1, 4}, {1, 2, 3, 4});
  b.Conv2D("out", "image", "w");
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "DEPTHWISE_CONV_2D");
  EXPECT_EQ(
      model.op(0).builtin_options.AsDepthwiseConv2DOptions()->depth_multiplier,
      2);
  EXPECT_THAT(model.input(0, 1).shape, ElementsAre(1, 1, 1, 4));
  EXPECT_THAT(model.Data<float>(model.input(0, 2)), ElementsAre(0, 0, 0, 0));
}

// Paddings of a 3x3 window with stride 2 over 4x4: SAME adds one row and
// column behind, nothing in front.
GraphBuilder PaddedConvolution(const std::vector<int>& pads) {
  GraphBuilder b;
  b.Placeholder("image", {1, 4, 4, 1});
  b.Ints("pads", {4, 2}, {0, 0, pads[0], pads[1], pads[0], pads[1], 0, 0});
  b.Node("padded", "Pad", {"image", "pads"},
         FloatT({{"Tpaddings", TypeAttr(tensorflow::DT_INT32)}}));
  b.Floats("w", {3, 3, 1, 1}, Counted(9));
  b.Node("out", "Conv2D", {"padded", "w"},
         FloatT({{"strides", IntsAttr({1, 2, 2, 1})},
                 {"padding", StringAttr("VALID")}}));
  return b;
}

TEST(TfliteWriterTest, TakesAPadIntoAConvolutionWhereItIsSame) {
  const WrittenModel same = Write(PaddedConvolution({0, 1}));
  ASSERT_EQ(same.Operators(), "CONV_2D");
  EXPECT_EQ(same.op(0).builtin_options.AsConv2DOptions()->padding,
            tflite::Padding::SAME);
  const WrittenModel other = Write(PaddedConvolution({1, 1}));
  ASSERT_EQ(other.Operators(), "PAD CONV_2D");
  EXPECT_EQ(other.op(1).builtin_options.AsConv2DOptions()->padding,
            tflite::Padding::VALID);
}

TEST(TfliteWriterTest, WritesMatricesWithTheirOutputsFirst) {
  GraphBuilder b;
  b.Placeholder("x", {1, 2});
  b.Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  b.Floats("bias", {3}, {7, 8, 9});
  b.Node("product", "MatMul", {"x", "w"}, FloatT());
  b.Node("sum", "Add", {"product", "bias"}, FloatT());
  b.Node("out", "Softmax", {"sum"}, FloatT());
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "FULLY_CONNECTED SOFTMAX");
  EXPECT_THAT(model.input(0, 1).shape, ElementsAre(3, 2));
  EXPECT_THAT(model.Data<float>(model.input(0, 1)),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(model.Data<float>(model.input(0, 2)), ElementsAre(7, 8, 9));
  EXPECT_EQ(model.op(1).builtin_options.AsSoftmaxOptions()->beta, 1.0f);
}

TEST(TfliteWriterTest, ListsEveryNodeThatItCannotWrite) {
  GraphBuilder b;
  b.Placeholder("x", {2, 2});
  b.Node("first", "MatrixInverse", {"x"}, FloatT());
  b.Node("middle", "Relu", {"first"}, FloatT());
  b.Node("second", "Digamma", {"middle"}, FloatT());
  b.Node("unused", "Lgamma", {"x"}, FloatT());
  TfliteWriteOptions options;
  options.io.outputs = {"second"};
  EXPECT_THAT(WriteTflite(b.Build(), options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("2 nodes are in the way"),
                             HasSubstr("\n  node 'first' (MatrixInverse): "),
                             HasSubstr("\n  node 'second' (Digamma): "),
                             ::testing::Not(HasSubstr("unused")))));
}

TEST(TfliteWriterTest, NamesTheModelsEndsInASignature) {
  GraphBuilder b;
  b.Placeholder("x", {1, 3});
  b.Node("out", "Relu", {"x"}, FloatT());
  const WrittenModel model = Write(b);
  ASSERT_THAT(model.model().signature_defs, SizeIs(1));
  const auto& signature = *model.model().signature_defs[0];
  EXPECT_EQ(signature.signature_key, "serving_default");
  ASSERT_THAT(signature.inputs, SizeIs(1));
  EXPECT_EQ(signature.inputs[0]->name, "x");
  EXPECT_EQ(signature.inputs[0]->tensor_index,
            static_cast<uint32_t>(model.graph().inputs[0]));
  ASSERT_THAT(signature.outputs, SizeIs(1));
  EXPECT_EQ(signature.outputs[0]->name, "out");
  ASSERT_THAT(model.model().metadata, SizeIs(1));
  EXPECT_EQ(model.model().metadata[0]->name, "min_runtime_version");
  const auto& version =
      model.model().buffers[model.model().metadata[0]->buffer]->data;
  EXPECT_EQ(std::string(version.begin(), version.begin() + 5), "1.5.0");
  EXPECT_EQ(model.model().version, 3u);
}

TEST(TfliteWriterTest, AnOutputThatIsAnInputGetsATensorOfItsOwn) {
  GraphBuilder b;
  b.Placeholder("x", {1, 3});
  b.Node("out", "Identity", {"x"}, FloatT());
  const WrittenModel model = Write(b);
  EXPECT_EQ(model.Operators(), "RESHAPE");
  EXPECT_NE(model.graph().inputs[0], model.graph().outputs[0]);
  EXPECT_EQ(model.model_output(0).name, "out");
}

TEST(TfliteWriterTest, KeepsAnOpenBatchOnRequest) {
  GraphBuilder b;
  b.Placeholder("x", {-1, 3});
  b.Node("out", "Relu", {"x"}, FloatT());
  TfliteWriteOptions options;
  const WrittenModel closed = Write(b, options);
  EXPECT_THAT(closed.model_input(0).shape, ElementsAre(1, 3));
  EXPECT_THAT(closed.model_input(0).shape_signature, ElementsAre());
  options.dynamic_batch = true;
  const WrittenModel open = Write(b, options);
  EXPECT_THAT(open.model_input(0).shape, ElementsAre(1, 3));
  EXPECT_THAT(open.model_input(0).shape_signature, ElementsAre(-1, 3));
  EXPECT_THAT(open.model_output(0).shape_signature, ElementsAre(-1, 3));
}

GraphBuilder LargeMatrix() {
  GraphBuilder b;
  b.Placeholder("x", {1, 64});
  b.Floats("w", {64, 32}, Counted(64 * 32));
  b.Node("out", "MatMul", {"x", "w"}, FloatT());
  return b;
}

TEST(TfliteWriterTest, StoresWeightsInHalfPrecision) {
  TfliteWriteOptions options;
  options.weights = TfliteWeights::kHalf;
  const WrittenModel model = Write(LargeMatrix(), options);
  ASSERT_EQ(model.Operators(), "DEQUANTIZE FULLY_CONNECTED");
  EXPECT_EQ(model.code(0).version, 3);
  EXPECT_EQ(model.input(0, 0).type, tflite::TensorType::FLOAT16);
  const std::vector<uint16_t> halves = model.Data<uint16_t>(model.input(0, 0));
  ASSERT_THAT(halves, SizeIs(64 * 32));
  // Element [0][1] is 32, [1][0] is 1.
  EXPECT_EQ(halves[1], 0x5000);
  EXPECT_EQ(halves[64], 0x3c00);
}

TEST(TfliteWriterTest, StoresWeightsAloneAsInt8) {
  TfliteWriteOptions options;
  options.weights = TfliteWeights::kInt8;
  const WrittenModel model = Write(LargeMatrix(), options);
  ASSERT_EQ(model.Operators(), "FULLY_CONNECTED");
  EXPECT_EQ(model.code(0).version, 9);
  const tflite::TensorT& weights = model.input(0, 1);
  EXPECT_EQ(weights.type, tflite::TensorType::INT8);
  ASSERT_THAT(weights.quantization->scale, SizeIs(1));
  EXPECT_FLOAT_EQ(weights.quantization->scale[0], 2047.0f / 127);
  const std::vector<int8_t> stored = model.Data<int8_t>(weights);
  EXPECT_EQ(stored.back(), 127);
  EXPECT_EQ(stored[1], 2);  // 32 / 16.118
}

TEST(TfliteWriterTest, SlicesWithoutNewAxesAndEllipses) {
  GraphBuilder b;
  b.Placeholder("x", {2, 3, 4});
  b.Ints("begin", {3}, {0, 0, 1});
  b.Ints("end", {3}, {0, 0, 3});
  b.Ints("strides", {3}, {1, 1, 1});
  b.Node("out", "StridedSlice", {"x", "begin", "end", "strides"},
         FloatT({{"Index", TypeAttr(tensorflow::DT_INT32)},
                 {"new_axis_mask", IntAttr(1)},
                 {"ellipsis_mask", IntAttr(2)}}));
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "STRIDED_SLICE RESHAPE");
  EXPECT_THAT(model.Data<int32_t>(model.input(0, 1)), ElementsAre(0, 0, 1));
  EXPECT_THAT(model.Data<int32_t>(model.input(0, 2)), ElementsAre(0, 0, 3));
  const auto* options = model.op(0).builtin_options.AsStridedSliceOptions();
  EXPECT_EQ(options->begin_mask, 3);
  EXPECT_EQ(options->end_mask, 3);
  EXPECT_THAT(model.model_output(0).shape, ElementsAre(1, 2, 3, 2));
}

TEST(TfliteWriterTest, ShapesThatAreKnownNeedNoOperators) {
  GraphBuilder b;
  b.Placeholder("x", {1, 4, 2});
  b.Node("shape", "Shape", {"x"}, FloatT());
  b.Ints("zero", {1}, {0});
  b.Ints("one", {1}, {1});
  b.Node("batch", "StridedSlice", {"shape", "zero", "one", "one"},
         {{"T", TypeAttr(tensorflow::DT_INT32)},
          {"Index", TypeAttr(tensorflow::DT_INT32)},
          {"shrink_axis_mask", IntAttr(1)}});
  b.Ints("eight", {}, {8});
  b.Node("dims", "Pack", {"batch", "eight"},
         {{"T", TypeAttr(tensorflow::DT_INT32)}, {"N", IntAttr(2)}});
  b.Node("out", "Reshape", {"x", "dims"}, FloatT());
  EXPECT_EQ(Write(b).Operators(), "RESHAPE");
}

}  // namespace
}  // namespace optfarm::formats
