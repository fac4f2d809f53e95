// Convolutions and the pools behind them, which are computed together a band of
// rows at a time, against the reference kernels, with each instruction set
// that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kFloat = tensorflow::DT_FLOAT;

struct Case {
  Shape image;
  int64_t filter = 3;
  int64_t stride = 2;
  std::string padding = "SAME";
  int64_t pool = 3;
  int64_t pool_stride = 2;
  std::string pool_padding = "SAME";
  std::string op = "MaxPool";
  int64_t filters = 40;
  bool is_depthwise = false;

  std::string convolution() const {
    return is_depthwise ? "DepthwiseConv2dNative" : "Conv2D";
  }
};

class PooledConvolutionTest : public FastKernelsTest {
 protected:
  GraphMaker Net(const Case& c) {
    GraphMaker g;
    g.Placeholder("x", kFloat);
    const int64_t channels = c.image.dim(3);
    g.Const("filter", Random({c.filter, c.filter, channels,
                              c.is_depthwise ? 1 : c.filters}));
    g.Const("bias", Random({c.is_depthwise ? channels : c.filters}));
    g.Node("conv", c.convolution(), {"x", "filter"})
        .Type("T", kFloat)
        .Text("padding", c.padding)
        .Ints("strides", {1, c.stride, c.stride, 1});
    g.Math("sum", "BiasAdd", {"conv", "bias"}).Math("relu", "Relu", {"sum"});
    g.Node("y", c.op, {"relu"})
        .Type("T", kFloat)
        .Text("padding", c.pool_padding)
        .Ints("ksize", {1, c.pool, c.pool, 1})
        .Ints("strides", {1, c.pool_stride, c.pool_stride, 1});
    return g;
  }

  void ExpectSameAsReference(const Case& c, const std::string& fetches,
                             int fused) {
    const GraphMaker g = Net(c);
    const Tensor x = Random(c.image);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, fetches, false));
    for (int threads : {1, 3}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result got, RunGraph(g, "x", {x}, fetches, true, threads));
      const std::string op =
          absl::StrCat(c.convolution(), "+BiasAdd+Relu+", c.op);
      EXPECT_EQ(std::count(got.ops.begin(), got.ops.end(), op), fused);
      ASSERT_EQ(got.values.size(), wanted.values.size());
      for (size_t i = 0; i < wanted.values.size(); ++i) {
        ExpectClose(got.values[i], wanted.values[i], {.absolute = 1e-4f});
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Sets, PooledConvolutionTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

TEST_P(PooledConvolutionTest, BandsAgree) {
  const std::vector<Case> cases = {
      {.image = {1, 160, 160, 3}, .filter = 5},
      {.image = {1, 227, 150, 3}, .padding = "VALID", .pool_padding = "VALID"},
      // Two images, whose rows do not fill bands.
      {.image = {2, 131, 140, 3}, .pool = 2},
      // Windows side by side, with rows between them, and one on another.
      {.image = {1, 150, 150, 5}, .pool = 2, .pool_stride = 3},
      {.image = {1, 150, 150, 5}, .pool = 4, .pool_stride = 1},
      {.image = {1, 150, 150, 5}, .op = "AvgPool"},
      // One row has more than a band's bytes.
      {.image = {1, 40, 2600, 2}, .filters = 48},
      // Too small for bands.
      {.image = {1, 20, 20, 3}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.image.ToString(), " by ", c.filter, ", ", c.op,
                              " of ", c.pool, " by ", c.pool_stride));
    ExpectSameAsReference(c, "y", 1);
  }
}

TEST_P(PooledConvolutionTest, BandsOfDepthwiseConvolutionsAgree) {
  std::vector<Case> cases = {
      {.image = {1, 160, 160, 24}, .stride = 1},
      {.image = {1, 161, 150, 24}, .padding = "VALID", .pool_padding = "VALID"},
      // Channels that fill no vector, and two images.
      {.image = {2, 131, 140, 13}, .filter = 5, .stride = 1, .pool = 2},
      {.image = {1, 150, 150, 16}, .stride = 1, .pool = 4, .pool_stride = 1},
      {.image = {1, 150, 150, 16}, .stride = 1, .op = "AvgPool"},
      // One row has more than a band's bytes; too small for bands.
      {.image = {1, 40, 2600, 24}, .stride = 1},
      {.image = {1, 20, 20, 3}},
  };
  for (Case& c : cases) {
    c.is_depthwise = true;
    SCOPED_TRACE(absl::StrCat(c.image.ToString(), " by ", c.filter, ", ", c.op,
                              " of ", c.pool, " by ", c.pool_stride));
    ExpectSameAsReference(c, "y", 1);
  }
}

TEST_P(PooledConvolutionTest, AResultThatIsSeenIsWritten) {
  ExpectSameAsReference({.image = {1, 130, 130, 3}}, "y,relu", 0);
  ExpectSameAsReference({.image = {1, 130, 130, 16}, .is_depthwise = true},
                        "y,relu", 0);
}

TEST_P(PooledConvolutionTest, ImagesOfOtherRankAreRefused) {
  const GraphMaker g = Net({.image = {1, 130, 130, 3}});
  for (bool is_fast : {false, true}) {
    EXPECT_EQ(
        RunGraph(g, "x", {Random({130, 130, 3})}, "y", is_fast).status().code(),
        absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif
