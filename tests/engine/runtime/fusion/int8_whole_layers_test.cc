// The ops that compute a whole layer, and products with a range for each
// channel: one packed kernel gives the bits of the plain ones.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "gtest/gtest.h"
#include "tests/engine/runtime/emulated_kernels.h"
#include "tests/engine/runtime/feature_sets.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;

struct Form {
  std::string op;
  std::vector<int64_t> input;
  // {height, width, channels, filters or 1}; {depth, columns}.
  std::vector<int64_t> filter;
  DataType weights = DT_QINT8;
  bool has_channel_ranges = true;
  int stride = 1;
  float input_min = -0.6f;
  DataType bias = DT_FLOAT;
  // Of unsigned weights: only so many have quantized values that do not fit in
  // eight bits when zero's is taken off; -1 for no matter which.
  int outliers = -1;
  std::string padding = "SAME";
  int dilation_y = 1;
};

class WholeLayerTest : public ::testing::TestWithParam<Form> {
 protected:
  WholeLayerTest() : random_(17) {
    const Form &form = GetParam();
    const bool is_depthwise = absl::StrContains(form.op, "Depthwise");
    columns_ = is_depthwise ? form.filter[2] : form.filter.back();
    graph_.Placeholder("x", DT_QUINT8);
    graph_.Const("low", Tensor::Scalar(form.input_min));
    graph_.Const("high", Tensor::Scalar(3.1f));
    graph_.Const("w", Weights());
    AddWeightRanges();
    std::vector<std::string> inputs = {"x", "w"};
    if (absl::StrContains(form.op, "WithBias")) {
      graph_.Const("bias", Bias());
      inputs.push_back("bias");
    }
    for (const char *end : {"low", "high", "w_min", "w_max"}) {
      inputs.push_back(end);
    }
    if (absl::EndsWith(form.op, "quantize")) {
      graph_.Const("out_min", Tensor::Scalar(-4.0f));
      graph_.Const("out_max", Tensor::Scalar(11.0f));
      inputs.push_back("out_min");
      inputs.push_back("out_max");
    }
    AddAttributes(graph_.Node("y", form.op, inputs));
  }

  Tensor Quantized(DataType type, const std::vector<int64_t> &dims) {
    Tensor quantized = *Tensor::Allocate(type, *Shape::FromDims(dims));
    auto *bytes = static_cast<uint8_t *>(quantized.raw());
    for (int64_t i = 0; i < quantized.num_elements(); ++i) {
      bytes[i] = static_cast<uint8_t>(random_());
    }
    return quantized;
  }
  Tensor Weights() {
    const Form &form = GetParam();
    Tensor quantized = Quantized(form.weights, form.filter);
    if (form.outliers < 0) return quantized;
    // Zero is 85.
    auto *bytes = static_cast<uint8_t *>(quantized.raw());
    for (int64_t i = 0; i < quantized.num_elements(); ++i) {
      bytes[i] = static_cast<uint8_t>(bytes[i] % 213);
    }
    for (int i = 0; i < form.outliers; ++i) {
      bytes[random_() % quantized.num_elements()] =
          static_cast<uint8_t>(213 + random_() % 43);
    }
    return quantized;
  }
  Tensor Bias() {
    Tensor bias =
        *Tensor::Allocate(GetParam().bias, *Shape::FromDims({columns_}));
    for (int64_t i = 0; i < columns_; ++i) {
      if (GetParam().bias == DT_FLOAT) {
        bias.data<float>()[i] =
            std::uniform_real_distribution<float>(-3, 3)(random_);
      } else {
        bias.data<int32_t>()[i] = static_cast<int32_t>(random_()) >> 16;
      }
    }
    return bias;
  }
  void AddWeightRanges() {
    const Form &form = GetParam();
    std::vector<float> min, max;
    const int64_t count = form.has_channel_ranges ? columns_ : 1;
    for (int64_t i = 0; i < count; ++i) {
      const float bound =
          std::uniform_real_distribution<float>(0.01f, 1.0f)(random_);
      // Zero is one code for all channels: 0, or 85 of quint8.
      min.push_back(form.weights == DT_QINT8 ? -bound : -bound / 2);
      max.push_back(bound);
    }
    const Shape shape =
        form.has_channel_ranges ? *Shape::FromDims({count}) : Shape();
    graph_.Const("w_min", Tensor::FromValues<float>(shape, min));
    graph_.Const("w_max", Tensor::FromValues<float>(shape, max));
  }
  void AddAttributes(GraphMaker::NodeMaker node) {
    const Form &form = GetParam();
    const DataType out = absl::EndsWith(form.op, "Requantize")   ? DT_QUINT8
                         : absl::EndsWith(form.op, "Dequantize") ? DT_FLOAT
                                                                 : DT_QINT32;
    if (form.input.size() == 2) {
      node.Type("T1", DT_QUINT8)
          .Type("T2", form.weights)
          .Type("Tbias", form.bias)
          .Type("Toutput", out);
      return;
    }
    node.Type("Tinput", DT_QUINT8)
        .Type("Tfilter", form.weights)
        .Type("Tbias", form.bias)
        .Type("out_type", out)
        .Text("padding", form.padding)
        .Ints("strides", {1, form.stride, form.stride, 1})
        .Ints("dilations", {1, form.dilation_y, 1, 1});
  }

  void ExpectTheSame(const std::string &fetches, int steps) {
    const std::vector<Tensor> feeds = {Quantized(DT_QUINT8, GetParam().input)};
    SessionOptions options;
    options.fast_kernels = false;
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto plain,
                                 graph_.Session("x", fetches, options));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto expected, plain->Run(feeds));
    options.fast_kernels = true;
    options.threads = 2;
    const auto check = [&](const std::string &with) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(auto fast,
                                   graph_.Session("x", fetches, options));
      EXPECT_EQ(fast->step_count(), steps);
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto made, fast->Run(feeds));
      for (size_t i = 0; i < made.size(); ++i) {
        ASSERT_EQ(expected[i].shape(), made[i].shape());
        EXPECT_TRUE(std::equal(static_cast<const char *>(expected[i].raw()),
                               static_cast<const char *>(expected[i].raw()) +
                                   expected[i].TotalBytes(),
                               static_cast<const char *>(made[i].raw())))
            << "output " << i << " with " << with << ": "
            << expected[i].DebugString(8) << " " << made[i].DebugString(8);
      }
    };
    for (const CpuFeatures &set : Int8FeatureSets()) {
      const CpuLimit limit(set);
      check(ToString(set));
    }
    for (const MicroKernel *kernel : EmulatedKernels()) {
      const PreferredMicroKernels preferred({kernel});
      check(kernel->name);
    }
  }

  std::mt19937 random_;
  GraphMaker graph_;
  int64_t columns_ = 0;
};

TEST_P(WholeLayerTest, GivesTheBitsOfThePlainKernel) {
  if (AllKernels().Find(GetParam().op) == nullptr) {
    GTEST_SKIP() << "this build has no kernel for " << GetParam().op;
  }
  const bool is_wide = !absl::EndsWith(GetParam().op, "quantize");
  if (absl::EndsWith(GetParam().op, "Dequantize")) {
    ExpectTheSame("y", 1);
  } else if (is_wide && GetParam().has_channel_ranges) {
    // The rest of the layer comes with it: ranges by channel are no output.
    graph_.Node("range", "RequantizationRangePerChannel", {"y", "y:1", "y:2"})
        .Type("T", DT_QINT32);
    auto *attr = graph_.def()
                     ->mutable_node(graph_.def()->node_size() - 1)
                     ->mutable_attr();
    (*attr)["clip_value_max"].set_f(6.0f);
    graph_
        .Node("z", "RequantizePerChannel",
              {"y", "y:1", "y:2", "range", "range:1"})
        .Type("T", DT_QINT32)
        .Type("out_type", DT_QUINT8);
    ExpectTheSame("z,z:1,z:2", 1);
  } else {
    ExpectTheSame("y,y:1,y:2", 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, WholeLayerTest,
    ::testing::Values(
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 7, 6, 16},
             {3, 3, 16, 40}},
        Form{"QuantizedConv2DWithBiasAndRequantize",
             {2, 9, 9, 3},
             {3, 3, 3, 8},
             DT_QUINT8,
             false,
             2},
        // Windows whose rows are read in place: of 27, 35 and 2 quantized
        // values.
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 11, 14, 9},
             {3, 3, 9, 8}},
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {2, 16, 15, 5},
             {7, 7, 5, 64},
             DT_QINT8,
             true,
             2},
        // The same in lines so long that they are made in strips.
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 35, 33, 3},
             {3, 3, 3, 32},
             DT_QINT8,
             true,
             2},
        Form{"QuantizedConv2DWithBiasAndRequantize",
             {2, 12, 17, 1},
             {5, 4, 1, 40},
             DT_QINT8,
             false},
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {3, 40, 31, 3},
             {7, 7, 3, 64},
             DT_QINT8,
             true,
             2,
             0.5f},
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 29, 47, 2},
             {3, 2, 2, 33},
             DT_QINT8,
             true,
             3,
             -0.6f,
             DT_FLOAT,
             -1,
             "VALID"},
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {2, 20, 9, 5},
             {3, 3, 5, 16},
             DT_QINT8,
             true,
             1,
             -0.6f,
             DT_FLOAT,
             -1,
             "SAME",
             4},
        // Two of three lines of each window lie outside of the image.
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 2, 24, 3},
             {3, 1, 3, 8},
             DT_QINT8,
             true,
             1,
             -0.6f,
             DT_FLOAT,
             -1,
             "SAME",
             3},
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 19, 23, 3},
             {3, 3, 3, 40},
             DT_QUINT8,
             false,
             2,
             -0.6f,
             DT_FLOAT,
             2},
        Form{"QuantizedConv2DWithBiasAndRequantize",
             {1, 19, 23, 3},
             {3, 3, 3, 40},
             DT_QUINT8,
             true,
             1},
        Form{"QuantizedConv2DWithBias", {1, 3, 5, 2}, {1, 1, 2, 5}, DT_QUINT8},
        Form{"QuantizedConv2DWithBiasAndRelu", {1, 5, 5, 8}, {1, 1, 8, 33}},
        Form{"QuantizedConv2DWithBias",
             {1, 5, 5, 8},
             {1, 1, 8, 33},
             DT_QINT8,
             false},
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 4, 4, 8},
             {1, 1, 8, 20},
             DT_QUINT8,
             true,
             1,
             0.0f,
             DT_QINT32},
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {1, 14, 13, 40},
             {3, 3, 40, 1}},
        // Lines in pairs, with one over in each image.
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {2, 7, 9, 40},
             {3, 3, 40, 1}},
        // Blocks of channels that are full.
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {1, 8, 11, 64},
             {3, 3, 64, 1}},
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {1, 9, 14, 64},
             {3, 3, 64, 1},
             DT_QINT8,
             true,
             2},
        // Shared out by channels: they are many for so few pixels.
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {2, 3, 2, 200},
             {3, 3, 200, 1}},
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {1, 5, 5, 300},
             {5, 5, 300, 1}},
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {2, 9, 27, 8},
             {3, 3, 8, 1},
             DT_QUINT8,
             true,
             2},
        Form{"QuantizedDepthwiseConv2DWithBias",
             {1, 9, 27, 33},
             {5, 5, 33, 1},
             DT_QINT8,
             true,
             1,
             0.5f},
        Form{"QuantizedDepthwiseConv2D",
             {1, 8, 8, 32},
             {3, 3, 32, 1},
             DT_QUINT8,
             false},
        // Unsigned weights, few of which do not fit in eight bits.
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {1, 7, 6, 64},
             {3, 3, 64, 70},
             DT_QUINT8,
             false,
             1,
             -0.6f,
             DT_FLOAT,
             7},
        Form{"QuantizedConv2DWithBiasAndReluAndRequantize",
             {2, 9, 9, 3},
             {3, 3, 3, 40},
             DT_QUINT8,
             false,
             2,
             -0.6f,
             DT_FLOAT,
             2},
        Form{"QuantizedConv2DWithBias",
             {1, 13, 5, 32},
             {1, 1, 32, 64},
             DT_QUINT8,
             false,
             1,
             -0.6f,
             DT_QINT32,
             2},
        Form{"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
             {1, 14, 13, 100},
             {3, 3, 100, 1},
             DT_QUINT8,
             false,
             1,
             -0.6f,
             DT_FLOAT,
             2},
        Form{"QuantizedMatMulWithBias",
             {5, 270},
             {270, 33},
             DT_QUINT8,
             false,
             1,
             -0.6f,
             DT_FLOAT,
             3},
        Form{"QuantizedMatMulWithBiasAndReluAndRequantize", {3, 50}, {50, 37}},
        Form{"QuantizedMatMulWithBiasAndDequantize", {1, 64}, {64, 100}},
        // So deep that only these weights' sums are known to fit.
        Form{"QuantizedMatMulWithBiasAndDequantize", {2, 40000}, {40000, 12}},
        Form{"QuantizedMatMulWithBiasAndDequantize",
             {1, 40000},
             {40000, 5},
             DT_QUINT8,
             false},
        Form{"QuantizedMatMulWithBias", {2, 27}, {27, 10}, DT_QUINT8, false}));

// What ends a net: sums that become floats, each column by its own step.
using LastLayerTest = WholeLayerTest;

TEST_P(LastLayerTest, GivesTheBitsOfThePlainKernelsAsFloats) {
  graph_.Node("z", "Dequantize", {"y", "y:1", "y:2"})
      .Type("T", DT_QINT32)
      .Text("mode", "SCALED")
      .Int("axis", static_cast<int64_t>(GetParam().input.size()) - 1);
  ExpectTheSame("z", 1);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, LastLayerTest,
    ::testing::Values(
        Form{"QuantizedConv2DWithBias", {1, 1, 1, 64}, {1, 1, 64, 101}},
        Form{"QuantizedConv2DWithBiasAndRelu", {2, 5, 5, 8}, {3, 3, 8, 33}},
        Form{"QuantizedDepthwiseConv2DWithBias", {1, 9, 7, 33}, {3, 3, 33, 1}},
        Form{"QuantizedMatMulWithBias", {2, 27}, {27, 10}},
        Form{"QuantizedMatMulWithBias", {2, 27}, {27, 10}, DT_QUINT8, false}));

}  // namespace
}  // namespace optfarm::runtime
