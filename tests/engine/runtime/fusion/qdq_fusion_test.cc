// What stands between DequantizeLinear and QuantizeLinear, on quantized values,
// against the reference kernels on floats: at most one step apart, and that
// rarely.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/fusion/fusions.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr DataType kSigned = tensorflow::DT_INT8;
constexpr DataType kUnsigned = tensorflow::DT_UINT8;

// Scale and zero point of 8-bit values.
struct Scaling {
  DataType dtype = kSigned;
  float scale = 1;
  int zero = 0;
};

class QdqMaker : public GraphMaker {
 public:
  // Floats `from`, quantized, under `name`.
  void Quantize(const std::string& name, const std::string& from,
                const Scaling& s,
                const std::string& rounding = "half_to_even") {
    AddScaling(name, s);
    Node(name, "QuantizeLinear", {from, name + "_scale", name + "_zero"})
        .Type("T", kFloat)
        .Type("Q", s.dtype)
        .Text("rounding", rounding);
  }
  void Dequantize(const std::string& name, const std::string& from,
                  const Scaling& s) {
    AddScaling(name, s);
    Node(name, "DequantizeLinear", {from, name + "_scale", name + "_zero"})
        .Type("Q", s.dtype);
  }
  // Constant values with a scale for each element of an axis, or one for all,
  // and zero points 0.
  void DequantizedConst(const std::string& name, const Tensor& values,
                        const std::vector<float>& scales, int axis) {
    Const(name + "_values", values);
    const auto count = static_cast<int64_t>(scales.size());
    Const(name + "_scale", Tensor::FromValues<float>({count}, scales));
    auto zeros = Tensor::Zeros(values.dtype(), {count});
    Const(name + "_zero", *zeros);
    Node(name, "DequantizeLinear",
         {name + "_values", name + "_scale", name + "_zero"})
        .Type("Q", values.dtype())
        .Int("axis", axis);
  }

 private:
  void AddScaling(const std::string& name, const Scaling& s) {
    Const(name + "_scale", Tensor::Scalar<float>(s.scale));
    Const(name + "_zero",
          s.dtype == kSigned
              ? Tensor::Scalar<int8_t>(static_cast<int8_t>(s.zero))
              : Tensor::Scalar<uint8_t>(static_cast<uint8_t>(s.zero)));
  }
};

class QdqFusionTest : public FastKernelsTest {
 protected:
  Scaling PickScaling(float least_scale, float most_scale) {
    Scaling s;
    s.dtype = Chance() ? kSigned : kUnsigned;
    s.scale =
        std::uniform_real_distribution<float>(least_scale, most_scale)(random_);
    const int offset = s.dtype == kSigned ? -128 : 0;
    s.zero = offset + static_cast<int>(Chance() ? Pick(0, 255) : 128);
    return s;
  }
  Tensor RandomBytes(const Shape& shape, DataType dtype, int least = -127) {
    std::vector<int8_t> values(shape.num_elements());
    for (int8_t& v : values) v = static_cast<int8_t>(Pick(least, 127));
    return Tensor::FromValues<int8_t>(shape, values).Reinterpreted(dtype);
  }
  // Whatever 8-bit values stand for.
  Tensor RandomInput(const Shape& shape, const Scaling& s) {
    const float low =
        s.scale * static_cast<float>((s.dtype == kSigned ? -128 : 0) - s.zero);
    return Random(shape, low, low + 255 * s.scale);
  }

  // How the answers of quantized values differ: by one step at most, and that
  // rarely. `ops` receives what ran.
  void ExpectSteps(const GraphMaker& g, const std::vector<Tensor>& inputs,
                   const std::string& feeds, const std::string& fetch,
                   std::vector<std::string>* ops) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, feeds, inputs, fetch, false));
    for (int threads : {1, 3}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result got, RunGraph(g, feeds, inputs, fetch, true, threads));
      *ops = got.ops;
      const Tensor &a = got.values[0], &b = wanted.values[0];
      ASSERT_EQ(a.dtype(), b.dtype());
      ASSERT_EQ(a.shape(), b.shape());
      int64_t different = 0;
      for (int64_t i = 0; i < a.num_elements(); ++i) {
        const int x =
            a.dtype() == kSigned ? a.data<int8_t>()[i] : a.data<uint8_t>()[i];
        const int y =
            a.dtype() == kSigned ? b.data<int8_t>()[i] : b.data<uint8_t>()[i];
        ASSERT_LE(std::abs(x - y), 1) << "at " << i << ": " << x << ", " << y;
        different += x != y ? 1 : 0;
      }
      elements_ += a.num_elements();
      different_ += different;
    }
  }
  // A share of all that ExpectSteps compared.
  double DifferentShare() const {
    return static_cast<double>(different_) / static_cast<double>(elements_);
  }

  int64_t elements_ = 0;
  int64_t different_ = 0;
};

// A random layer from `from`, whose values have the scaling `in`, to
// "NAME", quantized.
struct LayerChoice {
  std::string op;
  Shape filter;
  int64_t columns = 0;
  int64_t depth = 0;
  int axis = 0;
};

LayerChoice ConvOf(int64_t y, int64_t x, int64_t in, int64_t out) {
  return {"Conv2D", {y, x, in, out}, out, y * x * in, 3};
}

class QdqLayerTest : public QdqFusionTest {
 protected:
  void AddLayer(QdqMaker* g, const std::string& name, const std::string& from,
                const Scaling& in, const LayerChoice& layer,
                const Scaling& out);
  void AddBias(QdqMaker* g, const std::string& name, int64_t columns,
               const std::vector<float>& scales);
};

INSTANTIATE_TEST_SUITE_P(Sets, QdqLayerTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

// NAME_bias, as TensorFlow Lite has it, or in float.
void QdqLayerTest::AddBias(QdqMaker* g, const std::string& name,
                           int64_t columns, const std::vector<float>& scales) {
  if (Chance()) {
    g->Const(name + "_bias", Random({columns}, -0.5f, 0.5f));
    return;
  }
  std::vector<int32_t> values(columns);
  for (int32_t& v : values) v = static_cast<int32_t>(Pick(-900, 900));
  g->DequantizedConst(name + "_bias",
                      Tensor::FromValues<int32_t>({columns}, values), scales,
                      0);
}

void QdqLayerTest::AddLayer(QdqMaker* g, const std::string& name,
                            const std::string& from, const Scaling& in,
                            const LayerChoice& layer, const Scaling& out) {
  g->Dequantize(name + "_in", from, in);
  std::vector<float> scales(Chance() ? layer.columns : 1);
  for (float& s : scales) s = 0.5f / static_cast<float>(Pick(100, 400));
  g->DequantizedConst(name + "_w", RandomBytes(layer.filter, kSigned), scales,
                      layer.axis);
  auto node = g->Node(name + "_sums", layer.op, {name + "_in", name + "_w"});
  node.Type("T", kFloat);
  if (layer.op != "MatMul") {
    const int64_t stride = Pick(1, 2);
    node.Ints("strides", {1, stride, stride, 1})
        .Text("padding", Chance() ? "SAME" : "VALID");
  }
  std::string last = name + "_sums";
  if (Pick(0, 2) > 0) {
    std::vector<float> bias_scales = scales;
    for (float& s : bias_scales) s *= in.scale;
    AddBias(g, name, layer.columns, bias_scales);
    g->Math(name + "_biased", Chance() ? "BiasAdd" : "AddV2",
            {last, name + "_bias"});
    last = name + "_biased";
  }
  const int64_t activation = Pick(0, 3);
  if (activation > 0) {
    const std::string op = activation == 1   ? "Relu"
                           : activation == 2 ? "Relu6"
                                             : "Maximum";
    std::vector<std::string> inputs = {last};
    if (activation == 3) {
      g->Const(name + "_least", Tensor::Scalar<float>(-1.0f));
      inputs.push_back(name + "_least");
    }
    g->Math(name + "_clipped", op, inputs);
    last = name + "_clipped";
  }
  g->Quantize(name, last, out);
}

TEST_P(QdqLayerTest, RandomLayersAgreeWithinAStep) {
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const Scaling in = PickScaling(0.01f, 0.03f);
    LayerChoice layer;
    Shape shape;
    const int64_t channels = Pick(1, 40);
    switch (Pick(0, 3)) {
      case 0:
        layer = ConvOf(1, 1, channels, Pick(1, 70));
        break;
      case 1:
        layer = ConvOf(Pick(1, 4), Pick(1, 4), channels, Pick(1, 40));
        break;
      case 2:
        layer = {"DepthwiseConv2dNative", {3, 3, channels, 1}, channels, 9, 2};
        break;
      default: {
        const int64_t columns = Pick(1, 50);
        layer = {"MatMul", {channels, columns}, columns, channels, 1};
      }
    }
    shape = layer.op == "MatMul"
                ? Shape({Pick(1, 9), channels})
                : Shape({Pick(1, 2), Pick(4, 12), Pick(4, 12), channels});
    const float most = 2.0f * std::sqrt(static_cast<float>(layer.depth));
    const Scaling out = PickScaling(most / 400, most / 100);
    QdqMaker g;
    g.Placeholder("x", in.dtype);
    AddLayer(&g, "y", "x", in, layer, out);
    std::vector<std::string> ops;
    const Tensor bytes = RandomBytes(shape, in.dtype, -128);
    ExpectSteps(g, {bytes}, "x", "y", &ops);
    if (HasFatalFailure()) return;
    ASSERT_EQ(ops.size(), 1u) << ::testing::PrintToString(ops);
    EXPECT_THAT(ops[0], HasSubstr("QuantizeLinear"));
  }
  EXPECT_LT(DifferentShare(), 0.002);
}

// Between kernels that know of it, signed values are held as unsigned ones.
TEST_P(QdqLayerTest, ChainsOfLayersAgree) {
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    QdqMaker g;
    g.Placeholder("x", kFloat);
    Scaling in = PickScaling(0.01f, 0.03f);
    g.Quantize("q", "x", in);
    std::string last = "q";
    int64_t channels = 3;
    for (int i = 0; i < 4; ++i) {
      const bool is_depthwise = i == 1;
      const int64_t made = is_depthwise ? channels : Pick(1, 24);
      const LayerChoice layer = is_depthwise
                                    ? LayerChoice{"DepthwiseConv2dNative",
                                                  {3, 3, channels, 1},
                                                  channels,
                                                  9,
                                                  2}
                                    : ConvOf(1, 1, channels, made);
      const Scaling out = PickScaling(0.02f, 0.04f);
      const std::string name = absl::StrCat("layer", i);
      AddLayer(&g, name, last, in, layer, out);
      if (i == 2) {
        g.Node("moved", "Transpose", {name, "order"})
            .Type("T", out.dtype)
            .Type("Tperm", tensorflow::DT_INT32);
        g.Const("order", Tensor::FromValues<int32_t>({4}, {0, 2, 1, 3}));
      }
      last = i == 2 ? "moved" : name;
      in = out;
      channels = made;
    }
    const Tensor x = RandomInput({1, 9, 8, 3}, in);
    std::vector<std::string> ops;
    // One step in the middle may become several behind it.
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, last, false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", {x}, last, true));
    ASSERT_EQ(got.values[0].shape(), wanted.values[0].shape());
    double difference = 0;
    for (int64_t i = 0; i < got.values[0].num_elements(); ++i) {
      const auto* a = static_cast<const uint8_t*>(got.values[0].raw());
      const auto* b = static_cast<const uint8_t*>(wanted.values[0].raw());
      difference += std::abs(static_cast<int8_t>(a[i] - b[i]));
    }
    EXPECT_LE(difference,
              0.05 * static_cast<double>(got.values[0].num_elements()));
    EXPECT_THAT(got.ops, Not(Contains("DequantizeLinear")));
    // What is asked for in between keeps its signs.
    ExpectSteps(g, {x}, "x", "layer0", &ops);
  }
}

TEST_P(QdqLayerTest, OneTensorForSeveralLayersIsNotDequantized) {
  const Scaling in = {kSigned, 0.02f, 5};
  const Scaling out = {kSigned, 0.03f, -20};
  QdqMaker g;
  g.Placeholder("x", kSigned);
  g.Dequantize("shared", "x", in);
  for (const std::string name : {"a", "b"}) {
    g.DequantizedConst(name + "_w", RandomBytes({1, 1, 8, 8}, kSigned), {0.01f},
                       3);
    g.Node(name + "_sums", "Conv2D", {"shared", name + "_w"})
        .Type("T", kFloat)
        .Ints("strides", {1, 1, 1, 1})
        .Text("padding", "SAME");
    g.Quantize(name, name + "_sums", out);
    g.Dequantize(name + "_back", name, out);
  }
  g.Math("sum", "AddV2", {"a_back", "b_back"});
  g.Quantize("y", "sum", out);
  std::vector<std::string> ops;
  ExpectSteps(g, {RandomBytes({1, 5, 7, 8}, kSigned)}, "x", "y", &ops);
  EXPECT_THAT(ops, ElementsAre("Conv2D+QuantizeLinear", "Conv2D+QuantizeLinear",
                               "AddV2+QuantizeLinear"));
}

TEST_P(QdqLayerTest, UnsignedWeightsWithAZeroPoint) {
  for (const Shape& filter : {Shape{3, 3, 5, 20}, Shape{1, 1, 16, 33}}) {
    const Scaling in = {kUnsigned, 0.02f, 128};
    const Scaling weights = {kUnsigned, 0.01f, 131};
    const Scaling out = {kUnsigned, 0.1f, 90};
    QdqMaker g;
    g.Placeholder("x", kUnsigned);
    g.Dequantize("in", "x", in);
    g.Const("w", RandomBytes(filter, kUnsigned, -128));
    g.Dequantize("floats", "w", weights);
    g.Node("sums", "Conv2D", {"in", "floats"})
        .Type("T", kFloat)
        .Ints("strides", {1, 1, 1, 1})
        .Text("padding", "SAME");
    g.Quantize("y", "sums", out);
    std::vector<std::string> ops;
    ExpectSteps(g, {RandomBytes({1, 6, 9, filter.dim(2)}, kUnsigned)}, "x", "y",
                &ops);
    EXPECT_THAT(ops, ElementsAre("Conv2D+QuantizeLinear"));
  }
}

TEST_P(QdqLayerTest, PaddingOfQuantizedValuesIsTheLayersOwn) {
  const Scaling in = {kSigned, 0.02f, -7};
  QdqMaker g;
  g.Placeholder("x", kSigned);
  g.Const("pads",
          Tensor::FromValues<int32_t>({4, 2}, {0, 0, 1, 0, 2, 1, 0, 0}));
  g.Const("zero", Tensor::Scalar<int8_t>(-7));
  g.Node("padded", "PadV2", {"x", "pads", "zero"})
      .Type("T", kSigned)
      .Type("Tpaddings", tensorflow::DT_INT32);
  g.Dequantize("in", "padded", in);
  g.DequantizedConst("w", RandomBytes({3, 3, 8, 9}, kSigned), {0.01f}, 3);
  g.Node("sums", "Conv2D", {"in", "w"})
      .Type("T", kFloat)
      .Ints("strides", {1, 2, 2, 1})
      .Text("padding", "VALID");
  g.Quantize("y", "sums", {kSigned, 0.05f, 3});
  std::vector<std::string> ops;
  ExpectSteps(g, {RandomBytes({2, 6, 7, 8}, kSigned)}, "x", "y", &ops);
  EXPECT_THAT(ops, ElementsAre("PadV2+DequantizeLinear+Conv2D+QuantizeLinear"));
}

TEST_P(QdqLayerTest, RowsOfAnImageAreMultiplied) {
  const Scaling in = {kSigned, 0.02f, 3};
  QdqMaker g;
  g.Placeholder("x", kSigned);
  g.Dequantize("in", "x", in);
  g.Const("rows", Tensor::FromValues<int32_t>({2}, {-1, 12}));
  g.Node("flat", "Reshape", {"in", "rows"})
      .Type("T", kFloat)
      .Type("Tshape", tensorflow::DT_INT32);
  g.DequantizedConst("w", RandomBytes({12, 10}, kSigned), {0.01f}, 1);
  g.Math("sums", "MatMul", {"flat", "w"});
  g.Quantize("y", "sums", {kSigned, 0.05f, 3});
  std::vector<std::string> ops;
  ExpectSteps(g, {RandomBytes({2, 2, 2, 3}, kSigned)}, "x", "y", &ops);
  EXPECT_THAT(ops, ElementsAre("Reshape+MatMul+QuantizeLinear"));
}

// Filters for groups of channels have no fast code: the steps compute, also
// where signed values are held as unsigned ones.
TEST_P(QdqLayerTest, WhatIsNotServedRunsStepByStep) {
  const Scaling in = {kSigned, 0.02f, 9};
  QdqMaker g;
  g.Placeholder("x", kFloat);
  g.Quantize("q", "x", in);
  AddLayer(&g, "first", "q", in, ConvOf(1, 1, 4, 8), in);
  g.Dequantize("in", "first", in);
  g.DequantizedConst("w", RandomBytes({1, 1, 4, 6}, kSigned), {0.01f}, 3);
  g.Node("sums", "Conv2D", {"in", "w"})
      .Type("T", kFloat)
      .Ints("strides", {1, 1, 1, 1})
      .Text("padding", "SAME");
  g.Quantize("grouped", "sums", in);
  AddLayer(&g, "y", "grouped", in, ConvOf(1, 1, 6, 3), in);
  const Tensor x = RandomInput({1, 5, 5, 4}, in);
  const auto wanted = RunGraph(g, "x", {x}, "y", false);
  const auto got = RunGraph(g, "x", {x}, "y", true);
  EXPECT_EQ(wanted.status(), got.status());
}

class QdqElementsTest : public QdqFusionTest {};

INSTANTIATE_TEST_SUITE_P(Sets, QdqElementsTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

TEST_P(QdqElementsTest, SumsAndProductsAgreeWithinAStep) {
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const Scaling a = PickScaling(0.01f, 0.05f);
    const Scaling b = PickScaling(0.01f, 0.05f);
    const bool is_sum = Chance();
    const Scaling out =
        is_sum ? PickScaling(0.005f, 0.1f) : PickScaling(0.02f, 0.1f);
    QdqMaker g;
    g.Placeholder("a", a.dtype).Placeholder("b", b.dtype);
    g.Dequantize("fa", "a", a);
    g.Dequantize("fb", "b", b);
    g.Math("both", is_sum ? "AddV2" : "Mul", {"fa", "fb"});
    const bool is_clipped = Chance();
    if (is_clipped) g.Math("clipped", "Relu", {"both"});
    g.Quantize("y", is_clipped ? "clipped" : "both", out);
    const Shape shape = {2, 3, 5, Pick(1, 40)};
    const Shape other =
        is_sum || Chance() ? shape : Shape{2, 1, 1, shape.dim(3)};
    std::vector<std::string> ops;
    ExpectSteps(
        g,
        {RandomBytes(shape, a.dtype, -128), RandomBytes(other, b.dtype, -128)},
        "a,b", "y", &ops);
    if (HasFatalFailure()) return;
    EXPECT_EQ(ops.size(), 1u) << ::testing::PrintToString(ops);
  }
  EXPECT_LT(DifferentShare(), 0.002);
}

// (a + b) / 2, where every other sum is a half.
TEST_P(QdqElementsTest, SumsRoundUpWhereTheyAreToldTo) {
  QdqMaker g;
  g.Placeholder("a", kSigned).Placeholder("b", kSigned);
  g.Dequantize("fa", "a", {kSigned, 0.5f, 0});
  g.Dequantize("fb", "b", {kSigned, 0.5f, 0});
  g.Math("sum", "AddV2", {"fa", "fb"});
  g.Quantize("y", "sum", {kSigned, 1, 0}, "half_up");
  const Shape shape = {7, 100};
  const std::vector<Tensor> inputs = {RandomBytes(shape, kSigned, -128),
                                      RandomBytes(shape, kSigned, -128)};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "a,b", inputs, "y", true));
  EXPECT_EQ(got.ops.size(), 1u);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const int sum = inputs[0].data<int8_t>()[i] + inputs[1].data<int8_t>()[i];
    ASSERT_EQ(got.values[0].data<int8_t>()[i], (sum + 256 + 1) / 2 - 128)
        << "at " << i << ", sum " << sum;
  }
}

TEST_P(QdqElementsTest, OneConstantValueMakesATable) {
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const bool is_sum = Chance();
    const Scaling a = PickScaling(0.01f, 0.05f);
    QdqMaker g;
    g.Placeholder("a", a.dtype);
    g.Dequantize("fa", "a", a);
    g.DequantizedConst("fb", RandomBytes({1}, kSigned), {0.03f}, 0);
    g.Math("both", is_sum ? "AddV2" : "Mul",
           Chance() ? std::vector<std::string>{"fa", "fb"}
                    : std::vector<std::string>{"fb", "fa"});
    g.Quantize("y", "both", PickScaling(0.02f, 0.1f),
               is_sum ? "half_up" : "half_to_even");
    std::vector<std::string> ops;
    ExpectSteps(g, {RandomBytes({3, 50}, a.dtype, -128)}, "a", "y", &ops);
    if (HasFatalFailure()) return;
    EXPECT_EQ(ops.size(), 1u) << ::testing::PrintToString(ops);
  }
  EXPECT_LT(DifferentShare(), 0.01);
}

// Means of six values, of which every sixth is a half.
TEST_P(QdqElementsTest, MeansRoundAwayFromTheValueZero) {
  const Scaling s = {kSigned, 0.013f, -7};
  QdqMaker g;
  g.Placeholder("x", kSigned);
  g.Dequantize("in", "x", s);
  g.Node("pooled", "AvgPool", {"in"})
      .Type("T", kFloat)
      .Ints("ksize", {1, 2, 3, 1})
      .Ints("strides", {1, 2, 3, 1})
      .Text("padding", "VALID");
  g.Quantize("y", "pooled", s, "half_away");
  const Tensor x = RandomBytes({1, 2, 3, 600}, kSigned, -128);
  std::vector<std::string> ops;
  ExpectSteps(g, {x}, "x", "y", &ops);
  EXPECT_EQ(different_, 0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "x", {x}, "y", true));
  for (int c = 0; c < 600; ++c) {
    int sum = 0;
    for (int i = 0; i < 6; ++i) sum += x.data<int8_t>()[i * 600 + c];
    ASSERT_EQ(got.values[0].data<int8_t>()[c], (sum + (sum > 0 ? 3 : -3)) / 6)
        << "sum " << sum;
  }
}

TEST_P(QdqElementsTest, FunctionsOfOneTensorGiveTheSameBytes) {
  for (const std::string op :
       {"Relu", "Sigmoid", "Tanh", "HardSwish", "Exp", "Identity"}) {
    SCOPED_TRACE(op);
    const Scaling in = PickScaling(0.02f, 0.04f);
    const Scaling out = PickScaling(0.01f, 0.04f);
    QdqMaker g;
    g.Placeholder("x", in.dtype);
    g.Dequantize("in", "x", in);
    g.Math("value", op, {"in"});
    // x * f(x)
    g.Math("product", "Mul", {"in", "value"});
    g.Quantize("y", "product", out);
    std::vector<std::string> ops;
    ExpectSteps(g, {RandomBytes({3, 100}, in.dtype, -128)}, "x", "y", &ops);
    EXPECT_EQ(ops.size(), 1u) << ::testing::PrintToString(ops);
  }
  EXPECT_EQ(different_, 0);
}

TEST_P(QdqElementsTest, AnotherScaleIsATable) {
  const Scaling in = {kSigned, 0.02f, 4};
  QdqMaker g;
  g.Placeholder("x", kSigned);
  g.Dequantize("in", "x", in);
  g.Quantize("y", "in", {kUnsigned, 0.03f, 100});
  std::vector<std::string> ops;
  ExpectSteps(g, {RandomBytes({300}, kSigned, -128)}, "x", "y", &ops);
  EXPECT_EQ(ops.size(), 1u);
  EXPECT_EQ(different_, 0);
}

TEST_P(QdqElementsTest, PoolingAgrees) {
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const Scaling in = PickScaling(0.01f, 0.05f);
    const int64_t kind = Pick(0, 3);
    const Scaling out = kind == 0 ? in : PickScaling(0.01f, 0.05f);
    QdqMaker g;
    g.Placeholder("x", in.dtype);
    g.Dequantize("in", "x", in);
    if (kind < 2) {
      g.Node("pooled", kind == 0 ? "MaxPool" : "AvgPool", {"in"})
          .Type("T", kFloat)
          .Ints("ksize", {1, Pick(1, 3), Pick(1, 3), 1})
          .Ints("strides", {1, Pick(1, 2), Pick(1, 2), 1})
          .Text("padding", Chance() ? "SAME" : "VALID");
    } else {
      g.Const("axes", Tensor::FromValues<int32_t>({2}, {1, 2}));
      g.Node("pooled", "Mean", {"in", "axes"})
          .Type("T", kFloat)
          .Type("Tidx", tensorflow::DT_INT32)
          .Bool("keep_dims", kind == 3);
    }
    g.Quantize("y", "pooled", out);
    std::vector<std::string> ops;
    ExpectSteps(
        g,
        {RandomBytes({2, Pick(3, 9), Pick(3, 9), Pick(1, 40)}, in.dtype, -128)},
        "x", "y", &ops);
    if (HasFatalFailure()) return;
    EXPECT_EQ(ops.size(), 1u) << ::testing::PrintToString(ops);
  }
  EXPECT_LT(DifferentShare(), 0.005);
}

TEST_P(QdqElementsTest, MovedValuesKeepTheirScale) {
  const Scaling in = {kSigned, 0.02f, -11};
  QdqMaker g;
  g.Placeholder("a", kSigned).Placeholder("b", kSigned);
  g.Dequantize("fa", "a", in);
  g.Dequantize("fb", "b", in);
  g.Const("axis", Tensor::Scalar<int32_t>(1));
  g.Node("joined", "ConcatV2", {"fa", "fb", "axis"})
      .Type("T", kFloat)
      .Type("Tidx", tensorflow::DT_INT32)
      .Int("N", 2);
  g.Quantize("y", "joined", in);
  std::vector<std::string> ops;
  ExpectSteps(
      g,
      {RandomBytes({3, 4}, kSigned, -128), RandomBytes({3, 6}, kSigned, -128)},
      "a,b", "y", &ops);
  EXPECT_THAT(ops, ElementsAre("ConcatV2+QuantizeLinear"));
  EXPECT_EQ(different_, 0);
}

TEST_P(QdqElementsTest, CanBeLeftOut) {
  const FusionLimit limit("qdq");
  QdqMaker g;
  g.Placeholder("x", kSigned);
  g.Dequantize("in", "x", {kSigned, 0.02f, 4});
  g.Quantize("y", "in", {kUnsigned, 0.03f, 100});
  std::vector<std::string> ops;
  ExpectSteps(g, {RandomBytes({300}, kSigned, -128)}, "x", "y", &ops);
  EXPECT_THAT(ops, ElementsAre("DequantizeLinear", "QuantizeLinear"));
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
