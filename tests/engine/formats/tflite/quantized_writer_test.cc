// Explicit quantization as operators on quantized values: scales and zero
// points bit for bit, and QUANTIZE only where scales differ.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/formats/tflite/writer.h"
#include "tests/engine/formats/tflite/written_model.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using optfarm::testing::FloatT;
using optfarm::testing::GraphBuilder;
using optfarm::testing::IntAttr;
using optfarm::testing::IntsAttr;
using optfarm::testing::StringAttr;
using optfarm::testing::TypeAttr;
using tensorflow::DataType;
using ::testing::ElementsAre;

// A graph with quantized values of one type, node by node.
class QuantizedBuilder : public GraphBuilder {
 public:
  explicit QuantizedBuilder(DataType type = tensorflow::DT_INT8)
      : type_(type) {}

  void Stored(const std::string& name, const std::vector<int64_t>& shape,
              const std::vector<int>& values, DataType type) {
    Ints(name, shape, {});
    tensorflow::NodeDef& node =
        *mutable_def()->mutable_node(mutable_def()->node_size() - 1);
    (*node.mutable_attr())["dtype"] = TypeAttr(type);
    auto* tensor = (*node.mutable_attr())["value"].mutable_tensor();
    tensor->set_dtype(type);
    for (int value : values) tensor->add_int_val(value);
  }

  // A DequantizeLinear of `input`; names of its constants follow its own.
  void Dequantize(const std::string& name, const std::string& input,
                  const std::vector<float>& scale, std::vector<int> zero_point,
                  DataType type, int axis = -1) {
    AddScales(name, scale, std::move(zero_point), type);
    Node(name, "DequantizeLinear", {input, name + "_s", name + "_z"},
         {{"Q", TypeAttr(type)}, {"axis", IntAttr(axis)}});
  }
  void Dequantize(const std::string& name, const std::string& input,
                  float scale, int zero_point) {
    Dequantize(name, input, {scale}, {zero_point}, type_);
  }
  void Quantize(const std::string& name, const std::string& input, float scale,
                int zero_point) {
    AddScales(name, {scale}, {zero_point}, type_);
    Node(name, "QuantizeLinear", {input, name + "_s", name + "_z"},
         FloatT({{"Q", TypeAttr(type_)}}));
  }
  // Both: `name` is the DequantizeLinear.
  void QuantizePair(const std::string& name, const std::string& input,
                    float scale, int zero_point) {
    Quantize(name + "_q", input, scale, zero_point);
    Dequantize(name, name + "_q", scale, zero_point);
  }

 private:
  void AddScales(const std::string& name, const std::vector<float>& scale,
                 std::vector<int> zero_point, DataType type) {
    std::vector<int64_t> shape;
    if (scale.size() > 1) shape.push_back(static_cast<int64_t>(scale.size()));
    Floats(name + "_s", shape, scale);
    Stored(name + "_z", shape, zero_point, type);
  }

  DataType type_;
};

WrittenModel Write(const GraphBuilder& b,
                   const TfliteWriteOptions& options = TfliteWriteOptions()) {
  const auto bytes = WriteTflite(b.Build(), options);
  EXPECT_THAT(bytes, optfarm::testing::IsOk());
  return WrittenModel(bytes.value_or(""));
}

// x -> quantized -> convolution with bias and Relu -> quantized -> y.
QuantizedBuilder QuantizedConvolution(DataType type, int zero_point,
                                      DataType weights_type,
                                      int weights_zero_point) {
  QuantizedBuilder b(type);
  b.Placeholder("x", {1, 2, 2, 2});
  b.QuantizePair("xq", "x", 0.5f, zero_point);
  b.Stored(
      "w", {1, 1, 2, 3},
      {1 + weights_zero_point, 2 + weights_zero_point, 3 + weights_zero_point,
       4 + weights_zero_point, 5 + weights_zero_point, 6 + weights_zero_point},
      weights_type);
  b.Dequantize("wf", "w", {0.25f, 0.1f, 0.3f},
               {weights_zero_point, weights_zero_point, weights_zero_point},
               weights_type, 3);
  b.Stored("bias", {3}, {100, -200, 300}, tensorflow::DT_INT32);
  b.Dequantize("bf", "bias", {0.5f * 0.25f, 0.5f * 0.1f, 0.5f * 0.3f},
               {0, 0, 0}, tensorflow::DT_INT32, 0);
  b.Conv2D("conv", "xq", "wf");
  b.Node("sum", "BiasAdd", {"conv", "bf"}, FloatT());
  b.Node("relu", "Relu", {"sum"}, FloatT());
  b.QuantizePair("y", "relu", 0.75f, zero_point);
  return b;
}

TEST(QuantizedWriterTest, RaisesAConvolutionWithItsScales) {
  const WrittenModel model = Write(
      QuantizedConvolution(tensorflow::DT_INT8, -3, tensorflow::DT_INT8, 0));
  ASSERT_EQ(model.Operators(), "QUANTIZE CONV_2D DEQUANTIZE");
  EXPECT_EQ(model.code(1).version, 3);
  const tflite::TensorT& image = model.input(1, 0);
  EXPECT_EQ(image.type, tflite::TensorType::INT8);
  EXPECT_THAT(image.quantization->scale, ElementsAre(0.5f));
  EXPECT_THAT(image.quantization->zero_point, ElementsAre(-3));
  const tflite::TensorT& weights = model.input(1, 1);
  EXPECT_THAT(weights.shape, ElementsAre(3, 1, 1, 2));
  EXPECT_THAT(model.Data<int8_t>(weights), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(weights.quantization->scale, ElementsAre(0.25f, 0.1f, 0.3f));
  EXPECT_THAT(weights.quantization->zero_point, ElementsAre(0, 0, 0));
  EXPECT_EQ(weights.quantization->quantized_dimension, 0);
  const tflite::TensorT& bias = model.input(1, 2);
  EXPECT_EQ(bias.type, tflite::TensorType::INT32);
  EXPECT_THAT(model.Data<int32_t>(bias), ElementsAre(100, -200, 300));
  EXPECT_THAT(bias.quantization->scale,
              ElementsAre(0.5f * 0.25f, 0.5f * 0.1f, 0.5f * 0.3f));
  const tflite::TensorT& result = model.output(1);
  EXPECT_THAT(result.quantization->scale, ElementsAre(0.75f));
  EXPECT_THAT(result.quantization->zero_point, ElementsAre(-3));
  EXPECT_EQ(
      model.op(1).builtin_options.AsConv2DOptions()->fused_activation_function,
      tflite::ActivationFunctionType::RELU);
}

TEST(QuantizedWriterTest, UnsignedValuesBecomeSigned) {
  const WrittenModel model = Write(QuantizedConvolution(
      tensorflow::DT_UINT8, 125, tensorflow::DT_UINT8, 128));
  ASSERT_EQ(model.Operators(), "QUANTIZE CONV_2D DEQUANTIZE");
  EXPECT_EQ(model.input(1, 0).type, tflite::TensorType::INT8);
  EXPECT_THAT(model.input(1, 0).quantization->zero_point, ElementsAre(-3));
  EXPECT_THAT(model.input(1, 0).quantization->scale, ElementsAre(0.5f));
  EXPECT_THAT(model.Data<int8_t>(model.input(1, 1)),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(model.input(1, 1).quantization->zero_point, ElementsAre(0, 0, 0));
}

TEST(QuantizedWriterTest, EndsCanBeIntegers) {
  const QuantizedBuilder b =
      QuantizedConvolution(tensorflow::DT_INT8, -3, tensorflow::DT_INT8, 0);
  TfliteWriteOptions options;
  options.ends = TfliteEnds::kInt8;
  const WrittenModel model = Write(b, options);
  ASSERT_EQ(model.Operators(), "CONV_2D");
  EXPECT_EQ(model.model_input(0).name, "x");
  EXPECT_EQ(model.model_input(0).type, tflite::TensorType::INT8);
  EXPECT_EQ(model.model_output(0).name, "y");
  EXPECT_EQ(model.model_output(0).type, tflite::TensorType::INT8);

  options.ends = TfliteEnds::kUint8;
  const WrittenModel unsigned_ends = Write(b, options);
  ASSERT_EQ(unsigned_ends.Operators(), "QUANTIZE CONV_2D QUANTIZE");
  EXPECT_EQ(unsigned_ends.model_input(0).type, tflite::TensorType::UINT8);
  EXPECT_THAT(unsigned_ends.model_input(0).quantization->zero_point,
              ElementsAre(125));
  EXPECT_THAT(unsigned_ends.model_input(0).quantization->scale,
              ElementsAre(0.5f));
}

// Softmax between quantized tensors; the second has this scale.
QuantizedBuilder QuantizedSoftmax(float scale, int zero_point) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 4});
  b.QuantizePair("xq", "x", 0.5f, 0);
  b.Node("softmax", "Softmax", {"xq"}, FloatT());
  b.QuantizePair("y", "softmax", scale, zero_point);
  return b;
}

TEST(QuantizedWriterTest, SoftmaxHasThePrescribedScale) {
  EXPECT_EQ(Write(QuantizedSoftmax(1.0f / 256, -128)).Operators(),
            "QUANTIZE SOFTMAX DEQUANTIZE");
  const WrittenModel model = Write(QuantizedSoftmax(0.004f, -128));
  ASSERT_EQ(model.Operators(), "QUANTIZE SOFTMAX QUANTIZE DEQUANTIZE");
  EXPECT_THAT(model.output(1).quantization->scale, ElementsAre(1.0f / 256));
  EXPECT_THAT(model.output(1).quantization->zero_point, ElementsAre(-128));
  EXPECT_THAT(model.output(2).quantization->scale, ElementsAre(0.004f));
}

TEST(QuantizedWriterTest, JoinedTensorsGetTheScaleOfTheResult) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 4});
  b.Placeholder("y", {1, 4});
  b.QuantizePair("xq", "x", 0.5f, 3);
  b.QuantizePair("yq", "y", 0.25f, 0);
  b.Ints("axis", {}, {1});
  b.Node("join", "ConcatV2", {"xq", "yq", "axis"}, FloatT({{"N", IntAttr(2)}}));
  b.QuantizePair("z", "join", 0.5f, 3);
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(),
            "QUANTIZE QUANTIZE QUANTIZE CONCATENATION DEQUANTIZE");
  EXPECT_THAT(model.input(2, 0).quantization->scale, ElementsAre(0.25f));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(model.input(3, i).quantization->scale, ElementsAre(0.5f));
    EXPECT_THAT(model.input(3, i).quantization->zero_point, ElementsAre(3));
  }
}

TEST(QuantizedWriterTest, MovesQuantizedValuesAsTheyAre) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 4, 4, 2});
  b.QuantizePair("xq", "x", 0.5f, 3);
  b.Node("pool", "MaxPool", {"xq"},
         FloatT({{"ksize", IntsAttr({1, 2, 2, 1})},
                 {"strides", IntsAttr({1, 2, 2, 1})},
                 {"padding", StringAttr("VALID")}}));
  b.QuantizePair("yq", "pool", 0.5f, 3);
  b.Ints("dims", {2}, {1, 8});
  b.Node("flat", "Reshape", {"yq", "dims"}, FloatT());
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "QUANTIZE MAX_POOL_2D RESHAPE DEQUANTIZE");
  EXPECT_THAT(model.output(2).quantization->scale, ElementsAre(0.5f));
  EXPECT_THAT(model.output(2).quantization->zero_point, ElementsAre(3));
}

// ONNX gives the constant of an elementwise op its axes behind
// DequantizeLinear, and turns results in front of QuantizeLinear.
TEST(QuantizedWriterTest, MovesStoredConstantsAsTheyAre) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 2, 3});
  b.QuantizePair("xq", "x", 0.5f, 3);
  b.Stored("c", {3, 2}, {1, 2, 3, 4, 5, 6}, tensorflow::DT_INT8);
  b.Dequantize("cf", "c", 0.25f, 7);
  b.Ints("order", {2}, {1, 0});
  b.Node("turned", "Transpose", {"cf", "order"},
         FloatT({{"Tperm", TypeAttr(tensorflow::DT_INT32)}}));
  b.Node("product", "Mul", {"xq", "turned"}, FloatT());
  b.Ints("flat", {2}, {2, 3});
  b.Node("reshaped", "Reshape", {"product", "flat"},
         FloatT({{"Tshape", TypeAttr(tensorflow::DT_INT32)}}));
  b.QuantizePair("y", "reshaped", 0.75f, -1);
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "QUANTIZE MUL RESHAPE DEQUANTIZE");
  const tflite::TensorT& constant = model.input(1, 1);
  EXPECT_EQ(constant.type, tflite::TensorType::INT8);
  EXPECT_THAT(model.Data<int8_t>(constant), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(constant.quantization->scale, ElementsAre(0.25f));
  EXPECT_THAT(constant.quantization->zero_point, ElementsAre(7));
  EXPECT_THAT(model.output(1).quantization->scale, ElementsAre(0.75f));
}

TEST(QuantizedWriterTest, OneConstantMayHaveSeveralScales) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 2});
  b.QuantizePair("xq", "x", 0.5f, 3);
  b.Stored("c", {}, {5}, tensorflow::DT_INT8);
  b.Dequantize("first", "c", 0.25f, 0);
  b.Dequantize("second", "c", 0.125f, 1);
  b.Node("product", "Mul", {"xq", "first"}, FloatT());
  b.QuantizePair("pq", "product", 0.5f, 0);
  b.Node("sum", "AddV2", {"pq", "second"}, FloatT());
  b.QuantizePair("y", "sum", 0.75f, -1);
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "QUANTIZE MUL ADD DEQUANTIZE");
  EXPECT_THAT(model.input(1, 1).quantization->scale, ElementsAre(0.25f));
  EXPECT_THAT(model.input(2, 1).quantization->scale, ElementsAre(0.125f));
  EXPECT_THAT(model.input(2, 1).quantization->zero_point, ElementsAre(1));
}

TEST(QuantizedWriterTest, ComputesInFloatWhatIsNotQuantizedAgain) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 4});
  b.QuantizePair("xq", "x", 0.5f, 3);
  b.Node("out", "Exp", {"xq"}, FloatT());
  EXPECT_EQ(Write(b).Operators(), "QUANTIZE DEQUANTIZE EXP");
}

TEST(QuantizedWriterTest, BiasesInFloatBecomeIntegers) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 2});
  b.QuantizePair("xq", "x", 0.5f, 3);
  b.Stored("w", {2, 2}, {1, 2, 3, 4}, tensorflow::DT_INT8);
  b.Dequantize("wf", "w", {0.25f}, {0}, tensorflow::DT_INT8);
  b.Floats("bias", {2}, {1.0f, -0.3f});
  b.Node("product", "MatMul", {"xq", "wf"}, FloatT());
  b.Node("sum", "AddV2", {"product", "bias"}, FloatT());
  b.QuantizePair("y", "sum", 0.75f, 0);
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(), "QUANTIZE FULLY_CONNECTED DEQUANTIZE");
  EXPECT_THAT(model.Data<int8_t>(model.input(1, 1)), ElementsAre(1, 3, 2, 4));
  // In steps of 0.125.
  EXPECT_THAT(model.Data<int32_t>(model.input(1, 2)), ElementsAre(8, -2));
  EXPECT_THAT(model.input(1, 2).quantization->scale, ElementsAre(0.125f));
}

TEST(QuantizedWriterTest, WeightsWithAZeroPointAreComputedInFloat) {
  QuantizedBuilder b;
  b.Placeholder("x", {1, 2});
  b.QuantizePair("xq", "x", 0.5f, 3);
  b.Stored("w", {2, 2}, {1, 2, 3, 4}, tensorflow::DT_INT8);
  b.Dequantize("wf", "w", {0.25f}, {1}, tensorflow::DT_INT8);
  b.Node("product", "MatMul", {"xq", "wf"}, FloatT());
  b.QuantizePair("y", "product", 0.75f, 0);
  const WrittenModel model = Write(b);
  ASSERT_EQ(model.Operators(),
            "QUANTIZE DEQUANTIZE FULLY_CONNECTED QUANTIZE DEQUANTIZE");
  EXPECT_THAT(model.Data<float>(model.input(2, 1)),
              ElementsAre(0, 0.5f, 0.25f, 0.75f));
}

}  // namespace
}  // namespace optfarm::formats
