// Layers of quantized graphs as one step give the bits that the reference
// kernels give one after the other, on every instruction set.

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/core/quantization.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "gtest/gtest.h"
#include "tests/engine/runtime/feature_sets.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QUINT8;

// A layer and the image it is tried on.
struct Layer {
  std::string name;
  // {batch, height, width, channels}; {rows, depth} for a matrix product.
  std::vector<int64_t> input;
  // {height, width, channels, filters}; {depth, columns}.
  std::vector<int64_t> filter;
  int stride = 1;
  std::string padding = "SAME";
  Range input_range = {-1, 1};
  // Zero is quantized value 128 of [-128, 127] and nearly any other of others.
  Range filter_range = {-1.28f, 1.27f};
  int threads = 1;
};

void PrintTo(const Layer& layer, std::ostream* out) { *out << layer.name; }

class Int8LayerTest : public ::testing::TestWithParam<Layer> {
 protected:
  Int8LayerTest() : random_(11) {
    const Layer& layer = GetParam();
    graph_.Placeholder("x", DT_QUINT8).Placeholder("low", DT_FLOAT);
    graph_.Placeholder("high", DT_FLOAT);
    graph_.Const("w", Quantized(layer.filter));
    graph_.ConstRange("w", layer.filter_range.min, layer.filter_range.max);
    columns_ = layer.filter.back();
    const std::vector<std::string> inputs = {"x",    "w",     "low",
                                             "high", "w_min", "w_max"};
    if (layer.input.size() == 2) {
      graph_.Node("y", "QuantizedMatMul", inputs)
          .Type("T1", DT_QUINT8)
          .Type("T2", DT_QUINT8)
          .Type("Toutput", DT_QINT32);
    } else {
      auto node = graph_.Node("y", "QuantizedConv2D", inputs);
      node.Type("Tinput", DT_QUINT8)
          .Type("Tfilter", DT_QUINT8)
          .Type("out_type", DT_QINT32)
          .Text("padding", layer.padding);
      auto* strides = (*graph_.def()
                            ->mutable_node(graph_.def()->node_size() - 1)
                            ->mutable_attr())["strides"]
                          .mutable_list();
      for (int64_t s : {1, layer.stride, layer.stride, 1}) strides->add_i(s);
    }
  }

  Tensor Quantized(const std::vector<int64_t>& dims) {
    Tensor quantized = *Tensor::Allocate(DT_QUINT8, *Shape::FromDims(dims));
    for (uint8_t& q : quantized.flat<uint8_t>()) {
      q = static_cast<uint8_t>(random_());
    }
    return quantized;
  }
  Tensor Floats(float least, float most) {
    Tensor values = *Tensor::Allocate(DT_FLOAT, *Shape::FromDims({columns_}));
    std::uniform_real_distribution<float> number(least, most);
    for (float& value : values.flat<float>()) value = number(random_);
    return values;
  }

  // Requantizes `from` to a range of constants, or to the one found.
  std::string Requantize(const std::string& from, bool is_frozen, Range range) {
    const std::string name = from + "_8";
    std::string min = name + "_min", max = name + "_max";
    if (is_frozen) {
      graph_.ConstRange(name, range.min, range.max);
    } else {
      graph_.Node(name + "_range", "RequantizationRange", Three(from))
          .Type("Tinput", DT_QINT32);
      min = name + "_range:0";
      max = name + "_range:1";
    }
    std::vector<std::string> inputs = Three(from);
    inputs.push_back(min);
    inputs.push_back(max);
    graph_.Node(name, "Requantize", inputs)
        .Type("Tinput", DT_QINT32)
        .Type("out_type", DT_QUINT8);
    return name;
  }
  // `op` with a constant of one code for each column.
  std::string WithOperand(const std::string& from, const std::string& op,
                          Range range) {
    const std::string name = from + "_" + op;
    graph_.Const(name + "_with", Quantized({columns_}));
    graph_.ConstRange(name + "_with", range.min, range.max);
    graph_
        .Node(name, op,
              {from, name + "_with", from + ":1", from + ":2",
               name + "_with_min", name + "_with_max"})
        .Type("T1", DT_QUINT8)
        .Type("T2", DT_QUINT8)
        .Type(op == "QuantizedBiasAdd" ? "out_type" : "Toutput", DT_QINT32);
    return name;
  }
  std::string Relu(const std::string& from, bool is_relu6) {
    const std::string name = from + "_relu";
    graph_
        .Node(name, is_relu6 ? "QuantizedRelu6" : "QuantizedRelu", Three(from))
        .Type("Tinput", DT_QUINT8)
        .Type("out_type", DT_QUINT8);
    return name;
  }
  std::string Dequantize(const std::string& from, DataType type) {
    graph_.Node(from + "_float", "Dequantize", Three(from))
        .Type("T", type)
        .Text("mode", "MIN_FIRST");
    return from + "_float";
  }
  std::string Math(const std::string& from, const std::string& op,
                   const Tensor& operand) {
    const std::string name = from + "_" + op;
    graph_.Const(name + "_with", operand);
    graph_.Math(name, op, {from, name + "_with"});
    return name;
  }
  // QuantizeV2 over a range of constants, or of Min and Max.
  std::string Quantize(const std::string& from, bool is_frozen, Range range) {
    const std::string name = from + "_codes";
    if (is_frozen) {
      graph_.ConstRange(name, range.min, range.max);
    } else {
      graph_.Const(name + "_list",
                   Tensor::FromValues<int32_t>(*Shape::FromDims({1}), {-1}));
      graph_.Const(name + "_axis",
                   Tensor::FromValues<int32_t>(*Shape::FromDims({1}), {0}));
      graph_.Node(name + "_flat", "Reshape", {from, name + "_list"})
          .Type("T", DT_FLOAT);
      for (const char* op : {"Min", "Max"}) {
        graph_
            .Node(name + (op[1] == 'i' ? "_min" : "_max"), op,
                  {name + "_flat", name + "_axis"})
            .Type("T", DT_FLOAT)
            .Type("Tidx", tensorflow::DT_INT32)
            .Bool("keep_dims", false);
      }
    }
    graph_.Node(name, "QuantizeV2", {from, name + "_min", name + "_max"})
        .Type("T", DT_QUINT8)
        .Text("mode", "MIN_FIRST");
    return name;
  }
  static std::vector<std::string> Three(const std::string& name) {
    return {name, name + ":1", name + ":2"};
  }

  // Runs node by node and as one step.
  void ExpectTheSame(const std::string& fetches) {
    const std::vector<Tensor> feeds = {
        Quantized(GetParam().input), Tensor::Scalar(GetParam().input_range.min),
        Tensor::Scalar(GetParam().input_range.max)};
    SessionOptions options;
    options.fast_kernels = false;
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        auto plain, graph_.Session("x,low,high", fetches, options));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto expected, plain->Run(feeds));
    options.fast_kernels = true;
    options.threads = GetParam().threads;
    for (const CpuFeatures& set : Int8FeatureSets()) {
      const CpuLimit limit(set);
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          auto fast, graph_.Session("x,low,high", fetches, options));
      EXPECT_EQ(fast->step_count(), 1);
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto made, fast->Run(feeds));
      ASSERT_EQ(expected.size(), made.size());
      for (size_t i = 0; i < made.size(); ++i) {
        ASSERT_EQ(expected[i].dtype(), made[i].dtype());
        ASSERT_EQ(expected[i].shape(), made[i].shape());
        const std::string a(static_cast<const char*>(expected[i].raw()),
                            static_cast<size_t>(expected[i].TotalBytes()));
        const std::string b(static_cast<const char*>(made[i].raw()),
                            static_cast<size_t>(made[i].TotalBytes()));
        EXPECT_TRUE(a == b)
            << "output " << i << " with " << ToString(set) << ": "
            << expected[i].DebugString(8) << " " << made[i].DebugString(8);
      }
    }
  }
  void ExpectTheSameCodes(const std::string& node) {
    ExpectTheSame(node + "," + node + ":1," + node + ":2");
  }

  std::mt19937 random_;
  GraphMaker graph_;
  int64_t columns_ = 0;
};

TEST_P(Int8LayerTest, ProductAlone) { ExpectTheSameCodes("y"); }

TEST_P(Int8LayerTest, RequantizedWithFrozenRanges) {
  const std::string sum =
      WithOperand(Requantize("y", true, {-9, 11}), "QuantizedBiasAdd", {-2, 1});
  ExpectTheSameCodes(Relu(Requantize(sum, true, {-5, 8}), false));
}

TEST_P(Int8LayerTest, RequantizedWithRangesFoundInTheNumbers) {
  const std::string sum =
      WithOperand(Requantize("y", false, {}), "QuantizedBiasAdd", {-2, 1});
  ExpectTheSameCodes(Relu(Requantize(sum, false, {}), true));
}

TEST_P(Int8LayerTest, MultipliedAndAddedInCodes) {
  const std::string scaled =
      WithOperand(Requantize("y", false, {}), "QuantizedMul", {-0.5f, 2});
  const std::string sum =
      WithOperand(Requantize(scaled, true, {-4, 30}), "QuantizedAdd", {-1, 1});
  ExpectTheSameCodes(Requantize(sum, false, {}));
}

TEST_P(Int8LayerTest, FloatBehindWideCodes) {
  const std::string scaled =
      Math(Dequantize("y", DT_QINT32), "Mul", Floats(-0.3f, 2));
  graph_.Math(scaled + "_relu", "Relu", {Math(scaled, "Add", Floats(-3, 3))});
  ExpectTheSame(scaled + "_relu");
}

TEST_P(Int8LayerTest, CodesAgainWithFrozenRanges) {
  const std::string sum =
      Math(Dequantize("y", DT_QINT32), "BiasAdd", Floats(-3, 3));
  graph_.Math("relu6", "Relu6", {sum});
  ExpectTheSameCodes(Quantize("relu6", true, {0.01f, 5.9f}));
}

TEST_P(Int8LayerTest, CodesAgainWithRangesFoundInTheNumbers) {
  const std::string scaled =
      Math(Dequantize("y", DT_QINT32), "Mul", Floats(-0.3f, 2));
  const std::string sum = Math(scaled, "AddV2", Floats(-3, 3));
  ExpectTheSameCodes(Quantize(sum, false, {}));
}

TEST_P(Int8LayerTest, FloatBehindNarrowCodes) {
  const std::string quantized = Requantize("y", false, {});
  ExpectTheSame(Dequantize(quantized, DT_QUINT8));
}

INSTANTIATE_TEST_SUITE_P(
    Layers, Int8LayerTest,
    ::testing::Values(
        Layer{"pointwise", {2, 5, 7, 32}, {1, 1, 32, 40}},
        Layer{"three_by_three", {1, 9, 8, 12}, {3, 3, 12, 33}},
        Layer{"first_layer", {1, 11, 10, 3}, {3, 3, 3, 8}, 2},
        Layer{"valid", {1, 9, 9, 5}, {5, 3, 5, 64}, 2, "VALID"},
        Layer{"odd_zeros",
              {1, 6, 6, 16},
              {3, 3, 16, 20},
              1,
              "SAME",
              {-0.3f, 5.1f},
              {-0.7f, 2.9f}},
        Layer{"zeros_outside",
              {1, 5, 5, 8},
              {2, 2, 8, 17},
              1,
              "SAME",
              {0.5f, 1.5f},
              {0.25f, 0.5f}},
        Layer{"one_code", {1, 4, 4, 4}, {1, 1, 4, 3}, 1, "SAME", {0, 0}},
        Layer{"matrix", {5, 100}, {100, 37}},
        Layer{"odd_matrix", {1, 27}, {27, 130}, 1, "", {-2, 3}, {-1, 3}},
        Layer{"single", {1, 8}, {8, 1}},
        Layer{"threads",
              {2, 24, 24, 32},
              {3, 3, 32, 96},
              1,
              "SAME",
              {-0.3f, 5.1f},
              {-0.7f, 2.9f},
              3}),
    [](const auto& param) { return param.param.name; });

// --- Sums of two layers ------------------------------------------------------

struct SumCase {
  Range a, b;
  // No range: it is found in the numbers.
  bool is_frozen = true;
  bool has_relu = false;
  int64_t count = 5000;
};

class Int8SumTest : public ::testing::TestWithParam<SumCase> {};

TEST_P(Int8SumTest, GivesTheBitsOfTheKernels) {
  const SumCase& p = GetParam();
  GraphMaker g;
  g.Placeholder("x", DT_QUINT8).Placeholder("y", DT_QUINT8);
  g.Const("xl", Tensor::Scalar(p.a.min)).Const("xh", Tensor::Scalar(p.a.max));
  g.Const("yl", Tensor::Scalar(p.b.min)).Const("yh", Tensor::Scalar(p.b.max));
  g.Const("low", Tensor::Scalar(-1.5f)).Const("high", Tensor::Scalar(2.25f));
  g.Node("sum", "QuantizedAdd", {"x", "y", "xl", "xh", "yl", "yh"})
      .Type("T1", DT_QUINT8)
      .Type("T2", DT_QUINT8)
      .Type("Toutput", DT_QINT32);
  std::string wide = "sum";
  if (p.has_relu) {
    wide = "relu";
    g.Node("relu", "QuantizedRelu", {"sum", "sum:1", "sum:2"})
        .Type("Tinput", DT_QINT32)
        .Type("out_type", DT_QINT32);
  }
  const std::vector<std::string> three = {wide, wide + ":1", wide + ":2"};
  if (!p.is_frozen) {
    g.Node("range", "RequantizationRange", three).Type("Tinput", DT_QINT32);
  }
  std::vector<std::string> inputs = three;
  inputs.push_back(p.is_frozen ? "low" : "range");
  inputs.push_back(p.is_frozen ? "high" : "range:1");
  g.Node("z", "Requantize", inputs)
      .Type("Tinput", DT_QINT32)
      .Type("out_type", DT_QUINT8);
  std::mt19937 random(13);
  std::vector<Tensor> feeds;
  for (int i = 0; i < 2; ++i) {
    Tensor quantized =
        *Tensor::Allocate(DT_QUINT8, *Shape::FromDims({p.count}));
    for (uint8_t& q : quantized.flat<uint8_t>()) {
      q = static_cast<uint8_t>(random());
    }
    feeds.push_back(std::move(quantized));
  }
  SessionOptions options;
  options.fast_kernels = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto plain,
                               g.Session("x,y", "z,z:1,z:2", options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto expected, plain->Run(feeds));
  options.fast_kernels = true;
  options.threads = 2;
  for (const CpuFeatures& set :
       FeatureSetsOf({MicroKernelKind::kInt8OutputStages})) {
    const CpuLimit limit(set);
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto fast,
                                 g.Session("x,y", "z,z:1,z:2", options));
    EXPECT_EQ(fast->step_count(), 1);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto made, fast->Run(feeds));
    EXPECT_EQ(expected[0].flat<uint8_t>(), made[0].flat<uint8_t>())
        << ToString(set);
    for (int i : {1, 2}) {
      EXPECT_EQ(expected[i].data<float>()[0], made[i].data<float>()[0]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ranges, Int8SumTest,
    ::testing::Values(SumCase{{-1, 1}, {-0.5f, 2}},
                      SumCase{{0, 6}, {-3, 1}, false, true},
                      SumCase{{-1, 1}, {-1e-4f, 2e-4f}, false},
                      SumCase{{-1e3f, 5}, {0, 0}, true, true, 385},
                      SumCase{{0.5f, 0.75f}, {-2, 2}, true, false, 1},
                      SumCase{{-1, 1}, {-1, 1}, true, true, 33}));

// --- Floats that become quantized values
// ------------------------------------------------

struct CodesCase {
  std::vector<int64_t> shape;
  bool is_frozen = true;
  // A product and a sum with one code for each channel behind.
  bool has_channels = false;
  // What stands among the values.
  float odd_value = 0;
};

class Int8CodesTest : public ::testing::TestWithParam<CodesCase> {};

TEST_P(Int8CodesTest, GiveTheBitsOfTheKernels) {
  const CodesCase& p = GetParam();
  std::mt19937 random(23);
  GraphMaker g;
  g.Placeholder("x", DT_FLOAT);
  std::string min = "q_min", max = "q_max";
  if (p.is_frozen) {
    g.ConstRange("q", -2.5f, 7.25f);
  } else {
    const Shape one = *Shape::FromDims({1});
    g.Const("list", Tensor::FromValues<int32_t>(one, {-1}));
    g.Const("axis", Tensor::FromValues<int32_t>(one, {0}));
    g.Node("flat", "Reshape", {"x", "list"}).Type("T", DT_FLOAT);
    g.Node("q_min", "Min", {"flat", "axis"}).Type("T", DT_FLOAT);
    g.Node("q_max", "Max", {"flat", "axis"}).Type("T", DT_FLOAT);
  }
  g.Node("q", "QuantizeV2", {"x", min, max})
      .Type("T", DT_QUINT8)
      .Text("mode", "MIN_FIRST");
  std::string last = "q";
  if (p.has_channels) {
    for (const char* op : {"QuantizedMul", "QuantizedAdd"}) {
      const std::string name = last + "_" + op;
      Tensor quantized =
          *Tensor::Allocate(DT_QUINT8, *Shape::FromDims({p.shape.back()}));
      for (uint8_t& q : quantized.flat<uint8_t>()) {
        q = static_cast<uint8_t>(random());
      }
      g.Const(name + "_with", quantized);
      g.ConstRange(name, -0.7f, 1.9f);
      g.Node(name, op,
             {last, name + "_with", last + ":1", last + ":2", name + "_min",
              name + "_max"})
          .Type("T1", DT_QUINT8)
          .Type("T2", DT_QUINT8)
          .Type("Toutput", DT_QINT32);
      const std::vector<std::string> wide = {name, name + ":1", name + ":2"};
      g.Node(name + "_range", "RequantizationRange", wide)
          .Type("Tinput", DT_QINT32);
      last = name + "_8";
      g.Node(
           last, "Requantize",
           {name, name + ":1", name + ":2", name + "_range", name + "_range:1"})
          .Type("Tinput", DT_QINT32)
          .Type("out_type", DT_QUINT8);
    }
  }
  Tensor x = *Tensor::Allocate(DT_FLOAT, *Shape::FromDims(p.shape));
  std::uniform_real_distribution<float> number(-3, 8);
  for (float& value : x.flat<float>()) value = number(random);
  if (p.odd_value != 0) x.data<float>()[5] = p.odd_value;
  const std::string fetches = last + "," + last + ":1," + last + ":2";
  SessionOptions options;
  options.fast_kernels = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto plain, g.Session("x", fetches, options));
  const auto expected = plain->Run({x});
  options.fast_kernels = true;
  options.threads = 2;
  for (const CpuFeatures& set :
       FeatureSetsOf({MicroKernelKind::kInt8OutputStages})) {
    const CpuLimit limit(set);
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto fast, g.Session("x", fetches, options));
    EXPECT_EQ(fast->step_count(), 1);
    const auto made = fast->Run({x});
    ASSERT_EQ(expected.ok(), made.ok()) << ToString(set);
    if (!made.ok()) continue;
    EXPECT_EQ((*expected)[0].flat<uint8_t>(), (*made)[0].flat<uint8_t>())
        << ToString(set);
    for (int i : {1, 2}) {
      EXPECT_EQ((*expected)[i].data<float>()[0], (*made)[i].data<float>()[0]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Int8CodesTest,
    ::testing::Values(CodesCase{{3, 70, 5}}, CodesCase{{7, 11, 13}, false},
                      CodesCase{{2, 9, 9, 40}, false, true},
                      CodesCase{{2, 9, 9, 40}, true, true},
                      CodesCase{{31, 3}, false, true},
                      CodesCase{{400}, true, false, NAN},
                      CodesCase{{400}, false, false, NAN},
                      CodesCase{{40, 10}, false, true, NAN},
                      CodesCase{{400}, false, false, INFINITY},
                      CodesCase{{400}, true, false, -INFINITY},
                      CodesCase{{40, 10}, false, false, 3e38f}));

TEST(Int8LayersTest, WhatIsFetchedStays) {
  GraphMaker g;
  g.Placeholder("x", DT_QUINT8);
  g.Const("low", Tensor::Scalar(-1.0f)).Const("high", Tensor::Scalar(1.0f));
  Tensor filter = *Tensor::Zeros(DT_QUINT8, *Shape::FromDims({4, 3}));
  g.Const("w", filter);
  g.Node("y", "QuantizedMatMul", {"x", "w", "low", "high", "low", "high"})
      .Type("T1", DT_QUINT8)
      .Type("T2", DT_QUINT8)
      .Type("Toutput", DT_QINT32);
  g.Node("z", "Requantize", {"y", "y:1", "y:2", "low", "high"})
      .Type("Tinput", DT_QINT32)
      .Type("out_type", DT_QUINT8);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto all, g.Session("x", "z"));
  EXPECT_EQ(all->step_count(), 1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto both, g.Session("x", "z,y"));
  EXPECT_EQ(both->step_count(), 2);
}

TEST(Int8LayersTest, WhatDoesNotFitIsRefusedAsByTheKernel) {
  GraphMaker g;
  g.Placeholder("x", DT_QUINT8);
  g.Placeholder("low", DT_FLOAT).Placeholder("high", DT_FLOAT);
  g.Const("one", Tensor::Scalar(1.0f));
  g.Const("zero", Tensor::Scalar(0.0f));
  g.Const("w", *Tensor::Zeros(DT_QUINT8, *Shape::FromDims({4, 3})));
  g.Node("y", "QuantizedMatMul", {"x", "w", "low", "high", "zero", "one"})
      .Type("T1", DT_QUINT8)
      .Type("T2", DT_QUINT8)
      .Type("Toutput", DT_QINT32);
  const auto quantized = [](std::vector<int64_t> dims) {
    return *Tensor::Zeros(DT_QUINT8, *Shape::FromDims(dims));
  };
  for (const std::vector<Tensor>& feeds : std::vector<std::vector<Tensor>>{
           {quantized({2, 5}), Tensor::Scalar(0.0f), Tensor::Scalar(1.0f)},
           {quantized({4}), Tensor::Scalar(0.0f), Tensor::Scalar(1.0f)},
           {quantized({2, 4}), Tensor::Scalar(2.0f), Tensor::Scalar(1.0f)},
           {quantized({2, 4}), Tensor::Scalar(1e6f),
            Tensor::Scalar(1e6f + 1)}}) {
    SessionOptions options;
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto fast,
                                 g.Session("x,low,high", "y", options));
    options.fast_kernels = false;
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto plain,
                                 g.Session("x,low,high", "y", options));
    EXPECT_FALSE(fast->Run(feeds).ok());
    EXPECT_EQ(fast->Run(feeds).status(), plain->Run(feeds).status());
  }
  // No rows are no error.
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto fast, g.Session("x,low,high", "y"));
  EXPECT_TRUE(
      fast->Run({quantized({0, 4}), Tensor::Scalar(0.0f), Tensor::Scalar(1.0f)})
          .ok());
}

}  // namespace
}  // namespace optfarm::runtime
