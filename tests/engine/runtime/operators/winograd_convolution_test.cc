// 3x3 convolutions by Winograd's filtering against plain sums, with each
// instruction set that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/fusion/fusions.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kFloat = tensorflow::DT_FLOAT;

struct Convolution {
  // Of the image, and of the filter.
  Shape image;
  Shape filter;
  std::string padding = "SAME";
  int64_t stride = 1;
  int64_t dilation = 1;
};

class WinogradTest : public FastKernelsTest {
 protected:
  // x -> y, or with a residual r: x -> bias -> + r -> Relu6 -> y.
  GraphMaker Graph(const Convolution& c, bool with_tail = false) {
    GraphMaker g;
    g.Placeholder("x", kFloat).Placeholder("r", kFloat);
    filter_ = Random(c.filter);
    g.Const("filter", filter_).Const("bias", Random({c.filter.dim(3)}));
    g.Node(with_tail ? "sums" : "y", "Conv2D", {"x", "filter"})
        .Type("T", kFloat)
        .Text("padding", c.padding)
        .Ints("strides", {1, c.stride, c.stride, 1})
        .Ints("dilations", {1, c.dilation, c.dilation, 1});
    if (with_tail) {
      g.Math("biased", "BiasAdd", {"sums", "bias"});
      g.Math("sum", "Add", {"r", "biased"}).Math("y", "Relu6", {"sum"});
    }
    return g;
  }

  absl::StatusOr<Tensor> Run(const GraphMaker& g, const Tensor& x, bool is_fast,
                             int threads = 1) {
    OPTFARM_ASSIGN_OR_RETURN(Result result,
                             RunGraph(g, "x", {x}, "y", is_fast, threads));
    return std::move(result.values[0]);
  }
  absl::StatusOr<Tensor> RunPlain(const GraphMaker& g, const Tensor& x) {
    const FusionLimit limit("winograd");
    return Run(g, x, true);
  }

  Tensor filter_;
};

INSTANTIATE_TEST_SUITE_P(Sets, WinogradTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

bool HaveSameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0;
}

TEST_P(WinogradTest, LayersOfManyShapesAgreeWithTheReferenceKernels) {
  for (int i = 0; i < 60; ++i) {
    Convolution c;
    c.image = {Pick(1, 2), Pick(9, 30), Pick(9, 30), 16 * Pick(1, 5)};
    c.filter = {3, 3, c.image.dim(3), Pick(17, 100)};
    c.padding = Chance() ? "SAME" : "VALID";
    SCOPED_TRACE(absl::StrCat(c.image.ToString(), " by ", c.filter.ToString(),
                              " ", c.padding));
    const GraphMaker g = Graph(c, true);
    const Tensor x = Random(c.image);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result sums,
                                 RunGraph(g, "x", {x}, "sums", false));
    const Tensor r = Random(sums.values[0].shape(), -10, 10);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x,r", {x, r}, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Result got,
        RunGraph(g, "x,r", {x, r}, "y", true, static_cast<int>(Pick(1, 3))));
    ASSERT_THAT(got.ops, ::testing::ElementsAre("Conv2D+BiasAdd+Add+Relu6"));
    ExpectClose(got.values[0], wanted.values[0], {.absolute = 5e-5f});
    if (HasFailure()) return;
  }
}

TEST_P(WinogradTest, WhereItDoesNotServeSumsArePlain) {
  const Convolution plain[] = {
      // Strides, dilations, channels that are no group, windows of other sizes,
      // more filters than pixels.
      {{1, 20, 20, 32}, {3, 3, 32, 40}, "SAME", 2},
      {{1, 20, 20, 32}, {3, 3, 32, 40}, "SAME", 1, 2},
      {{1, 20, 20, 33}, {3, 3, 33, 40}},
      {{1, 20, 20, 32}, {3, 1, 32, 40}},
      {{1, 20, 20, 32}, {5, 5, 32, 40}},
      {{1, 3, 3, 32}, {3, 3, 32, 400}},
  };
  for (const Convolution& c : plain) {
    const GraphMaker g = Graph(c);
    const Tensor x = Random(c.image);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor with, Run(g, x, true));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor without, RunPlain(g, x));
    EXPECT_TRUE(HaveSameBits(with, without)) << c.filter.ToString();
  }
}

TEST_P(WinogradTest, TheNumberOfThreadsDoesNotMatter) {
  // Shared out by tiles, and by filters.
  for (const Convolution& c : {Convolution{{1, 41, 39, 32}, {3, 3, 32, 32}},
                               {{1, 10, 10, 160}, {3, 3, 160, 200}}}) {
    const GraphMaker g = Graph(c);
    const Tensor x = Random(c.image);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor one, Run(g, x, true));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor plain, RunPlain(g, x));
    EXPECT_FALSE(HaveSameBits(one, plain)) << "it is not used";
    for (const int threads : {2, 3, 5}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor many, Run(g, x, true, threads));
      EXPECT_TRUE(HaveSameBits(one, many)) << threads << " threads";
    }
  }
}

// The root of the mean square of what sums differ from exact ones.
double RoundingOf(const Tensor& got, const Tensor& x, const Tensor& filter) {
  const int64_t width = x.dim(2), channels = x.dim(3);
  const int64_t filters = filter.dim(3);
  double squares = 0;
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const int64_t f = i % filters, ox = i / filters % (width - 2);
    const int64_t oy = i / filters / (width - 2);
    double sum = 0;
    for (int64_t cell = 0; cell < 9 * channels; ++cell) {
      const int64_t y = oy + cell / (3 * channels);
      const int64_t at = y * width * channels + ox * channels;
      sum += double{x.flat<float>()[at + cell % (3 * channels)]} *
             filter.flat<float>()[cell * filters + f];
    }
    squares += std::pow(got.flat<float>()[i] - sum, 2);
  }
  return std::sqrt(squares / static_cast<double>(got.num_elements()));
}

// Chains of sums have a ninth of their length, which makes up for the
// transforms where there are many channels.
TEST_P(WinogradTest, SumsRoundNotMuchMoreThanPlainOnes) {
  for (const int64_t channels : {16, 256}) {
    const Convolution c = {
        {1, 20, 20, channels}, {3, 3, channels, 40}, "VALID"};
    const GraphMaker g = Graph(c);
    const Tensor x = Random(c.image);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor with, Run(g, x, true));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor without, RunPlain(g, x));
    const double plain = RoundingOf(without, x, filter_);
    EXPECT_GT(plain, 0);
    EXPECT_LT(RoundingOf(with, x, filter_), (channels == 16 ? 2 : 1) * plain)
        << channels << " channels";
  }
}

TEST_P(WinogradTest, WhatIsNoNumberGoesTheSameWay) {
  const Convolution c = {{1, 20, 20, 32}, {3, 3, 32, 45}};
  const GraphMaker g = Graph(c, true);
  const Tensor r = Random({1, 20, 20, 45}, -10, 10);
  for (const float value : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::max()}) {
    Tensor x = Random(c.image);
    x.flat<float>()[(8 * 20 + 5) * 32 + 3] = value;
    x.flat<float>()[(19 * 20 + 19) * 32 + 31] = value;
    for (const int threads : {1, 2}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result got, RunGraph(g, "x,r", {x, r}, "y", true, threads));
      const FusionLimit limit("winograd");
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result wanted, RunGraph(g, "x,r", {x, r}, "y", true, threads));
      ExpectClose(got.values[0], wanted.values[0], {.absolute = 2e-5f});
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
