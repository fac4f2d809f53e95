// First layers that make the quantized values of their image themselves give
// the bits of QuantizeV2 and the layer, on every instruction set.

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/core/quantization.h"
#include "engine/runtime/fusion/fusions.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "gtest/gtest.h"
#include "tests/engine/runtime/feature_sets.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;

constexpr char kVnni[] = "avx2,avx512,avx512_vnni";

struct Net {
  std::string name;
  std::vector<int64_t> image;
  // {height, width, channels, filters}.
  std::vector<int64_t> filter;
  int stride = 1;
  Range range = {-1.5f, 1};
  DataType weights = DT_QINT8;
  std::string padding = "SAME";
  // What stands among the floats.
  float odd_value = 0;
};

void PrintTo(const Net& net, std::ostream* out) { *out << net.name; }

class Int8ImageTest : public ::testing::TestWithParam<Net> {
 protected:
  Int8ImageTest() {
    const Net& net = GetParam();
    graph_.Placeholder("x", DT_FLOAT);
    graph_.ConstRange("in", net.range.min, net.range.max);
    graph_.Node("q", "QuantizeV2", {"x", "in_min", "in_max"})
        .Type("T", DT_QUINT8)
        .Text("mode", "MIN_FIRST");
    Tensor weights =
        *Tensor::Allocate(net.weights, *Shape::FromDims(net.filter));
    auto* bytes = static_cast<uint8_t*>(weights.raw());
    for (int64_t i = 0; i < weights.num_elements(); ++i) {
      bytes[i] = static_cast<uint8_t>(random_());
    }
    graph_.Const("w", weights);
    graph_.ConstRange("w", -0.4f, 0.8f);
    graph_.Const("bias", Floats({net.filter.back()}, -3, 3));
    graph_.ConstRange("out", 0, 9);
    graph_
        .Node("y", "QuantizedConv2DWithBiasAndReluAndRequantize",
              {"q", "w", "bias", "q:1", "q:2", "w_min", "w_max", "out_min",
               "out_max"})
        .Type("Tinput", DT_QUINT8)
        .Type("Tfilter", net.weights)
        .Type("Tbias", DT_FLOAT)
        .Type("out_type", DT_QUINT8)
        .Text("padding", net.padding)
        .Ints("strides", {1, net.stride, net.stride, 1});
  }

  Tensor Floats(const std::vector<int64_t>& dims, float least, float most) {
    Tensor values = *Tensor::Allocate(DT_FLOAT, *Shape::FromDims(dims));
    std::uniform_real_distribution<float> number(least, most);
    for (float& value : values.flat<float>()) value = number(random_);
    return values;
  }

  // Runs node by node, and with this instruction set in so many steps.
  void ExpectTheSame(const std::string& fetches, const std::string& set,
                     int steps) {
    Tensor image = Floats(GetParam().image, -2, 2);
    if (GetParam().odd_value != 0) {
      image.data<float>()[7] = GetParam().odd_value;
    }
    SessionOptions options;
    options.fast_kernels = false;
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto plain,
                                 graph_.Session("x", fetches, options));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto expected, plain->Run({image}));
    options.fast_kernels = true;
    const CpuLimit limit(*ParseCpuFeatures(set));
    for (const int threads : {1, 3}) {
      options.threads = threads;
      OPTFARM_ASSERT_OK_AND_ASSIGN(auto fast,
                                   graph_.Session("x", fetches, options));
      if (UsedCpuFeatures() == *ParseCpuFeatures(set)) {
        EXPECT_EQ(fast->step_count(), steps) << set;
      }
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto made, fast->Run({image}));
      ASSERT_EQ(made.size(), expected.size());
      for (size_t i = 0; i < made.size(); ++i) {
        ASSERT_EQ(made[i].shape(), expected[i].shape());
        const auto bytes = [](const Tensor& tensor) {
          return std::string(static_cast<const char*>(tensor.raw()),
                             static_cast<size_t>(tensor.TotalBytes()));
        };
        EXPECT_TRUE(bytes(made[i]) == bytes(expected[i]))
            << "output " << i << " with " << set << ": "
            << expected[i].DebugString(8) << " " << made[i].DebugString(8);
      }
    }
  }

  std::mt19937 random_{31};
  GraphMaker graph_;
};

TEST_P(Int8ImageTest, GivesTheBitsOfBothKernelsInOneStep) {
  ExpectTheSame("y,y:1,y:2", kVnni, 1);
}

TEST_P(Int8ImageTest, IsLeftOutWhereAsked) {
  const FusionLimit limit("bands");
  ExpectTheSame("y,y:1,y:2", kVnni, 2);
}

TEST_P(Int8ImageTest, CodesThatAreFetchedAreMade) {
  ExpectTheSame("q,y", kVnni, 2);
  ExpectTheSame("q:1,y", kVnni, 2);
}

TEST_P(Int8ImageTest, OtherInstructionSetsHaveTwoSteps) {
  for (const CpuFeatures& set : Int8FeatureSets()) {
    if (SelectMicroKernel(MicroKernelKind::kInt8Row, set) != nullptr) continue;
    ExpectTheSame("y,y:1,y:2", ToString(set).c_str(), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nets, Int8ImageTest,
    ::testing::Values(
        Net{"first_layer", {1, 35, 34, 3}, {3, 3, 3, 32}, 2},
        Net{"large_windows", {2, 41, 37, 3}, {7, 7, 3, 64}, 2, {-0.2f, 1.9f}},
        Net{"one_channel", {3, 13, 21, 1}, {4, 5, 1, 40}},
        Net{"valid",
            {1, 27, 33, 2},
            {3, 3, 2, 8},
            3,
            {-1.5f, 1},
            DT_QINT8,
            "VALID"},
        // Zero is no code.
        Net{"zero_outside", {1, 19, 17, 3}, {3, 3, 3, 8}, 1, {0.5f, 1.5f}},
        Net{"far_range", {1, 9, 17, 3}, {3, 3, 3, 8}, 1, {99, 99.5f}},
        // Lines too short for strips, and weights whose zero cannot be taken
        // off: both are found when the net runs.
        Net{"narrow", {2, 19, 7, 3}, {3, 3, 3, 8}},
        Net{"unsigned_weights",
            {1, 21, 25, 3},
            {3, 3, 3, 40},
            2,
            {-1.5f, 1},
            DT_QUINT8},
        Net{"no_number",
            {1, 9, 17, 3},
            {3, 3, 3, 8},
            1,
            {-1.5f, 1},
            DT_QINT8,
            "SAME",
            NAN},
        Net{"infinity",
            {1, 9, 17, 3},
            {3, 3, 3, 8},
            1,
            {-1.5f, 1},
            DT_QINT8,
            "SAME",
            INFINITY}),
    [](const auto& param) { return param.param.name; });

TEST(Int8ImagesTest, WhatIsNoImageIsRefusedAsByTheKernels) {
  GraphMaker g;
  g.Placeholder("x", DT_FLOAT);
  g.Const("low", Tensor::Scalar(-1.0f)).Const("high", Tensor::Scalar(1.0f));
  g.Const("bias", *Tensor::Zeros(DT_FLOAT, *Shape::FromDims({8})));
  g.Const("w", *Tensor::Zeros(DT_QINT8, *Shape::FromDims({3, 3, 3, 8})));
  g.Node("q", "QuantizeV2", {"x", "low", "high"})
      .Type("T", DT_QUINT8)
      .Text("mode", "MIN_FIRST");
  g.Node("y", "QuantizedConv2DWithBiasAndReluAndRequantize",
         {"q", "w", "bias", "q:1", "q:2", "low", "high", "low", "high"})
      .Type("Tinput", DT_QUINT8)
      .Type("Tfilter", DT_QINT8)
      .Type("Tbias", DT_FLOAT)
      .Type("out_type", DT_QUINT8)
      .Text("padding", "VALID")
      .Ints("strides", {1, 1, 1, 1});
  SessionOptions options;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto fast, g.Session("x", "y", options));
  options.fast_kernels = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto plain, g.Session("x", "y", options));
  const auto image = [](std::vector<int64_t> dims) {
    return *Tensor::Zeros(DT_FLOAT, *Shape::FromDims(dims));
  };
  for (const Tensor& other :
       {image({1, 20, 20, 4}), image({20, 20, 3}), image({3})}) {
    EXPECT_FALSE(fast->Run({other}).ok());
    EXPECT_FALSE(plain->Run({other}).ok());
  }
  // No image, and one without room for a window.
  for (const Tensor& empty : {image({0, 20, 20, 3}), image({1, 2, 20, 3})}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto made, fast->Run({empty}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto expected, plain->Run({empty}));
    EXPECT_EQ(made[0].shape(), expected[0].shape());
  }
}

}  // namespace
}  // namespace optfarm::runtime
