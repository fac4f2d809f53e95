// Fast float kernels against the reference kernels, over random shapes, with
// each instruction set that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/ukernels/cpu_features.h"
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

class FastFloatTest : public FastKernelsTest {};

INSTANTIATE_TEST_SUITE_P(Sets, FastFloatTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

void ExpectClose(const Tensor& got, const Tensor& wanted) {
  ExpectClose(got, wanted, {.absolute = 5e-6f, .of_largest = 5e-6f});
}

void ExpectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.TotalBytes()), 0);
}

struct Slide {
  int64_t stride_y = 1;
  int64_t stride_x = 1;
  int64_t dilation_y = 1;
  int64_t dilation_x = 1;
  std::string padding = "SAME";
};

GraphMaker::NodeMaker AddSliding(GraphMaker* g, const std::string& name,
                                 const std::string& op,
                                 const std::vector<std::string>& inputs,
                                 const Slide& slide) {
  GraphMaker::NodeMaker node = g->Node(name, op, inputs);
  node.Type("T", kFloat)
      .Text("padding", slide.padding)
      .Ints("strides", {1, slide.stride_y, slide.stride_x, 1});
  if (slide.dilation_y != 1 || slide.dilation_x != 1) {
    node.Ints("dilations", {1, slide.dilation_y, slide.dilation_x, 1});
  }
  return node;
}

// x -> conv -> bias -> sum with r -> Relu6.
GraphMaker Layer(const Tensor& filter, const Tensor& bias, const Slide& slide,
                 const std::string& op = "Conv2D") {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("r", kFloat);
  g.Const("filter", filter).Const("bias", bias);
  AddSliding(&g, "conv", op, {"x", "filter"}, slide);
  g.Math("biased", "BiasAdd", {"conv", "bias"});
  g.Math("sum", "Add", {"r", "biased"});
  g.Math("y", "Relu6", {"sum"});
  g.Math("z", "Relu", {"biased"});
  return g;
}

TEST_P(FastFloatTest, ConvolutionsOfManyShapesAgree) {
  for (int i = 0; i < 150; ++i) {
    const int64_t channels = Chance() ? Pick(1, 20) : Pick(21, 70);
    const int64_t filters = Pick(1, 100);
    const int64_t ky = Pick(1, 4), kx = Pick(1, 7);
    Slide slide;
    slide.stride_y = Pick(1, 3);
    slide.stride_x = Pick(1, 3);
    if (Pick(0, 3) == 0) slide.dilation_y = Pick(1, 3);
    if (Pick(0, 3) == 0) slide.dilation_x = Pick(1, 3);
    const int64_t height = Pick(1, 4) + (ky - 1) * slide.dilation_y;
    const int64_t width = Pick(1, 24) + (kx - 1) * slide.dilation_x;
    slide.padding = Chance() ? "SAME" : "VALID";
    SCOPED_TRACE(absl::StrCat(
        height, "x", width, "x", channels, " with ", ky, "x", kx, "x", filters,
        " ", slide.padding, " strides ", slide.stride_y, slide.stride_x,
        " dilations ", slide.dilation_y, slide.dilation_x));
    const GraphMaker g =
        Layer(Random({ky, kx, channels, filters}), Random({filters}), slide);
    const Tensor x = Random({Pick(1, 2), height, width, channels});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result conv,
                                 RunGraph(g, "x", {x}, "conv", false));
    const Tensor r = Random(conv.values[0].shape());
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x,r", {x, r}, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x,r", {x, r}, "y", true));
    ASSERT_THAT(got.ops, ElementsAre("Conv2D+BiasAdd+Add+Relu6"));
    ExpectClose(got.values[0], wanted.values[0]);
    if (HasFailure()) return;
  }
}

TEST_P(FastFloatTest, AFusedLayerGivesTheBitsOfItsParts) {
  const GraphMaker g = Layer(Random({3, 3, 17, 45}), Random({45}), {});
  const Tensor x = Random({1, 9, 11, 17});
  const Tensor r = Random({1, 9, 11, 45});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result fused,
                               RunGraph(g, "x,r", {x, r}, "y", true));
  ASSERT_THAT(fused.ops, ElementsAre("Conv2D+BiasAdd+Add+Relu6"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result apart,
      RunGraph(g, "x,r", {x, r}, "y,conv,biased,sum", true));
  ASSERT_THAT(apart.ops, ElementsAre("Conv2D", "BiasAdd", "Add+Relu6"));
  ExpectSame(fused.values[0], apart.values[0]);
}

TEST_P(FastFloatTest, WhatIsDoneToChannelsIsDoneInTheLayer) {
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative"}) {
    const bool is_conv = std::string(op) == "Conv2D";
    GraphMaker g =
        Layer(is_conv ? Random({3, 3, 20, 37}) : Random({3, 3, 37, 1}),
              Random({37}), {}, op);
    g.Const("mean", Random({37})).Const("gamma", Random({37}));
    Tensor variance = Random({37});
    for (float& v : variance.flat<float>()) v = v * v + 0.5f;
    g.Const("variance", variance).Const("beta", Random({1, 1, 1, 37}));
    g.Const("offset", Random({37}));
    g.Node("norm", "FusedBatchNorm",
           {"biased", "gamma", "offset", "mean", "variance"})
        .Type("T", kFloat)
        .Bool("is_training", false);
    g.Math("less", "Sub", {"norm", "beta"})
        .Math("more", "Mul", {"gamma", "less"});
    g.Math("out", "Relu", {"more"});
    const Tensor x = Random({1, 7, 8, is_conv ? 20 : 37});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, "out", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", {x}, "out", true));
    EXPECT_THAT(got.ops, ElementsAre(absl::StrCat(
                             op, "+BiasAdd+FusedBatchNorm+Sub+Mul+Relu")));
    ExpectClose(got.values[0], wanted.values[0]);
  }
}

TEST_P(FastFloatTest, APadIsTakenIntoTheLayerBehindIt) {
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative"}) {
    const bool is_conv = std::string(op) == "Conv2D";
    GraphMaker g;
    g.Placeholder("x", kFloat);
    g.Const("pads",
            Tensor::FromValues<int32_t>({4, 2}, {0, 0, 1, 2, 3, 0, 0, 0}));
    g.Const("filter", is_conv ? Random({3, 3, 9, 12}) : Random({3, 3, 9, 1}));
    g.Node("pad", "Pad", {"x", "pads"})
        .Type("T", kFloat)
        .Type("Tpaddings", tensorflow::DT_INT32);
    Slide slide;
    slide.stride_y = slide.stride_x = 2;
    slide.padding = "VALID";
    AddSliding(&g, "conv", op, {"pad", "filter"}, slide);
    g.Math("y", "Relu", {"conv"});
    const Tensor x = Random({2, 8, 9, 9});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", {x}, "y", true));
    EXPECT_THAT(got.ops, ElementsAre(absl::StrCat("Pad+", op, "+Relu")));
    ExpectClose(got.values[0], wanted.values[0]);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result seen,
                                 RunGraph(g, "x", {x}, "y,pad", true));
    EXPECT_THAT(seen.ops, Contains("Pad"));
  }
}

TEST_P(FastFloatTest, AStatisticsOutputThatIsReadKeepsTheBatchNorm) {
  GraphMaker g = Layer(Random({1, 1, 4, 8}), Random({8}), {});
  g.Const("some", Tensor::FromValues<float>({8}, {1, 1, 1, 1, 1, 1, 1, 1}));
  g.Node("norm", "FusedBatchNorm", {"conv", "some", "some", "some", "some"})
      .Type("T", kFloat)
      .Bool("is_training", false);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result got,
      RunGraph(g, "x", {Random({1, 3, 3, 4})}, "norm,norm:1", true));
  EXPECT_THAT(got.ops, ElementsAre("Conv2D", "FusedBatchNorm"));
}

TEST_P(FastFloatTest, AConstantThatAddsDimensionsIsNotABias) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("b", Random({5, 3}));
  g.Const("bias", Random({1, 1, 3}));
  g.Math("product", "MatMul", {"x", "b"}).Math("y", "Add", {"product", "bias"});
  const Tensor x = Random({2, 5});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, "x", {x}, "y", false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "x", {x}, "y", true));
  ExpectClose(got.values[0], wanted.values[0]);
}

TEST_P(FastFloatTest, AValueThatIsReadTwiceIsNotFusedAway) {
  const GraphMaker g = Layer(Random({1, 1, 8, 8}), Random({8}), {});
  const Tensor x = Random({1, 4, 4, 8});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result both,
                               RunGraph(g, "x,r", {x, x}, "y,z", true));
  EXPECT_THAT(both.ops, Contains("Conv2D+BiasAdd"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, "x,r", {x, x}, "y,z", false));
  ExpectClose(both.values[0], wanted.values[0]);
  ExpectClose(both.values[1], wanted.values[1]);
}

TEST_P(FastFloatTest, TheNumberOfThreadsDoesNotMatter) {
  for (const int64_t filters : {32, 400}) {
    const GraphMaker g =
        Layer(Random({3, 3, 40, filters}), Random({filters}), {});
    const Tensor x = Random({1, 30, 20, 40});
    const Tensor r = Random({1, 30, 20, filters});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result one,
                                 RunGraph(g, "x,r", {x, r}, "y", true, 1));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result three,
                                 RunGraph(g, "x,r", {x, r}, "y", true, 3));
    ExpectSame(one.values[0], three.values[0]);
  }
}

TEST_P(FastFloatTest, NotANumberAndInfinityGoThroughRectifiers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const GraphMaker g = Layer(Tensor::FromValues<float>({1, 1, 1, 1}, {1.0f}),
                             Tensor::FromValues<float>({1}, {0.0f}), {});
  const Tensor x =
      Tensor::FromValues<float>({1, 1, 6, 1}, {nan, inf, -inf, -1, 2, 9});
  const Tensor r = Tensor::FromValues<float>({1, 1, 6, 1}, {0, 0, 0, 0, 0, 0});
  for (const char* output : {"y", "z"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x,r", {x, r}, output, false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x,r", {x, r}, output, true));
    ASSERT_EQ(got.ops.size(), 1u);
    ExpectClose(got.values[0], wanted.values[0]);
  }
}

TEST_P(FastFloatTest, GroupsAndBroadcastsTakeTheReferenceKernels) {
  const GraphMaker g = Layer(Random({3, 3, 4, 8}), Random({8}), {});
  const Tensor grouped = Random({1, 5, 5, 8});
  const Tensor plain = Random({1, 5, 5, 4});
  const Tensor whole = Random({1, 5, 5, 8});
  const Tensor one = Random({1, 1, 1, 8});
  const std::vector<std::vector<Tensor>> cases = {
      {grouped, whole}, {plain, one}, {grouped, one}};
  for (const std::vector<Tensor>& inputs : cases) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x,r", inputs, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x,r", inputs, "y", true));
    ExpectSame(got.values[0], wanted.values[0]);
  }
}

TEST_P(FastFloatTest, InputsThatDoNotFitAreRefusedAsByTheReferenceKernel) {
  const GraphMaker g = Layer(Random({3, 3, 4, 8}), Random({8}), {});
  const Tensor r = Random({1, 5, 5, 8});
  for (const Tensor& x : {Random({1, 5, 5, 3}), Random({5, 5, 4})}) {
    const auto wanted = RunGraph(g, "x,r", {x, r}, "y", false);
    const auto got = RunGraph(g, "x,r", {x, r}, "y", true);
    ASSERT_FALSE(wanted.ok());
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.status().code(), wanted.status().code());
    EXPECT_THAT(std::string(got.status().message()),
                HasSubstr(std::string(wanted.status().message())));
  }
}

TEST_P(FastFloatTest, AnEmptyBatchGivesAnEmptyResult) {
  const GraphMaker g = Layer(Random({3, 3, 4, 8}), Random({8}), {});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result got, RunGraph(g, "x", {Random({0, 5, 5, 4})}, "z", true));
  EXPECT_EQ(got.values[0].shape(), Shape({0, 5, 5, 8}));
}

TEST_P(FastFloatTest, DepthwiseConvolutionsOfManyShapesAgree) {
  for (int i = 0; i < 100; ++i) {
    const int64_t channels = Pick(1, 70);
    const int64_t ky = Pick(1, 5), kx = Pick(1, 5);
    Slide slide;
    slide.stride_y = slide.stride_x = Pick(1, 3);
    if (slide.stride_x == 1) slide.dilation_y = slide.dilation_x = Pick(1, 2);
    const int64_t height = Pick(1, 4) + (ky - 1) * slide.dilation_y;
    const int64_t width = Pick(1, 24) + (kx - 1) * slide.dilation_x;
    slide.padding = Chance() ? "SAME" : "VALID";
    SCOPED_TRACE(absl::StrCat(height, "x", width, "x", channels, " with ", ky,
                              "x", kx, " ", slide.padding, " stride ",
                              slide.stride_y, " dilation ", slide.dilation_y));
    const GraphMaker g =
        Layer(Random({ky, kx, channels, 1}), Random({channels}), slide,
              "DepthwiseConv2dNative");
    const Tensor x = Random({Pick(1, 2), height, width, channels});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, "z", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", {x}, "z", true, 1 + i % 2));
    ASSERT_THAT(got.ops, ElementsAre("DepthwiseConv2dNative+BiasAdd+Relu"));
    ExpectClose(got.values[0], wanted.values[0]);
    if (HasFailure()) return;
  }
}

TEST_P(FastFloatTest, ManyFiltersForAChannelAgree) {
  for (int i = 0; i < 30; ++i) {
    const int64_t channels = Pick(1, 20), multiplier = Pick(2, 9);
    Slide slide;
    slide.stride_y = slide.stride_x = Pick(1, 2);
    slide.padding = Chance() ? "SAME" : "VALID";
    SCOPED_TRACE(absl::StrCat(channels, " times ", multiplier, " ",
                              slide.padding, " stride ", slide.stride_y));
    const GraphMaker g =
        Layer(Random({3, 2, channels, multiplier}),
              Random({channels * multiplier}), slide, "DepthwiseConv2dNative");
    const Tensor x = Random({Pick(1, 2), Pick(3, 9), Pick(2, 9), channels});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, "z", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", {x}, "z", true, 1 + i % 2));
    ASSERT_THAT(got.ops, ElementsAre("DepthwiseConv2dNative+BiasAdd+Relu"));
    ExpectClose(got.values[0], wanted.values[0]);
    if (HasFailure()) return;
  }
}

TEST_P(FastFloatTest, PoolsOfManyShapesAgree) {
  for (int i = 0; i < 100; ++i) {
    Slide slide;
    slide.stride_y = Pick(1, 3);
    slide.stride_x = Pick(1, 3);
    slide.padding = Chance() ? "SAME" : "VALID";
    const int64_t ky = Pick(1, 4), kx = Pick(1, 4);
    GraphMaker g;
    g.Placeholder("x", kFloat);
    AddSliding(&g, "y", i % 2 == 0 ? "MaxPool" : "AvgPool", {"x"}, slide)
        .Ints("ksize", {1, ky, kx, 1});
    Tensor x =
        Random({Pick(1, 2), ky + Pick(0, 5), kx + Pick(0, 20), Pick(1, 70)});
    if (i % 5 == 0) {
      x.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    }
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", {x}, "y", true, 1 + i % 3));
    ExpectSame(got.values[0], wanted.values[0]);
    if (HasFailure()) return;
  }
}

TEST_P(FastFloatTest, MatrixProductsOfManyShapesAgree) {
  for (int i = 0; i < 100; ++i) {
    const int64_t rows = Pick(1, 40);
    const int64_t depth = Pick(1, 300);
    const int64_t columns = Pick(1, 100);
    const bool transposed = Chance();
    GraphMaker g;
    g.Placeholder("x", kFloat).Placeholder("r", kFloat);
    g.Const("b",
            transposed ? Random({columns, depth}) : Random({depth, columns}));
    g.Const("bias", Random({columns}));
    g.Node("product", "MatMul", {"x", "b"})
        .Type("T", kFloat)
        .Bool("transpose_b", transposed);
    g.Math("sum", "Add", {"product", "r"});
    g.Math("biased", "BiasAdd", {"product", "bias"});
    g.Math("y", "Relu", {"sum"}).Math("z", "Relu", {"biased"});
    const Tensor x = Random({rows, depth});
    const Tensor r = Random({rows, columns});
    for (const char* output : {"y", "z"}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                   RunGraph(g, "x,r", {x, r}, output, false));
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result got,
          RunGraph(g, "x,r", {x, r}, output, true, 1 + i % 3));
      ASSERT_EQ(got.ops.size(), 1u);
      ExpectClose(got.values[0], wanted.values[0]);
    }
    if (HasFailure()) return;
  }
}

TEST_P(FastFloatTest, SessionsOverOneModelShareWhatTheyPack) {
  const GraphMaker g = Layer(Random({3, 3, 64, 64}), Random({64}), {});
  OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, g.Graph());
  const auto model = LoadedModel::Create(std::move(graph));
  const auto feeds = *graph::ParseTensorNames("x");
  const auto fetches = *graph::ParseTensorNames("z");
  SessionOptions limited;
  // The model's own weights are not the session's; its packed ones are.
  limited.memory_limit = 200 * 1000;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto first,
                               Session::Create(model, feeds, fetches));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto second,
                               Session::Create(model, feeds, fetches, limited));
  EXPECT_EQ(first->constant_bytes(), second->constant_bytes());
  EXPECT_EQ(first->step_count(), second->step_count());
  const Tensor x = Random({1, 5, 5, 64});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto a, first->Run({x}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto b, second->Run({x}));
  ExpectSame(a[0], b[0]);
}

// Whoever comes first packs; the others get what they ask for all the same.
TEST_P(FastFloatTest, SessionsOfAllKindsAgreeOverOneModel) {
  const Tensor filter = Random({3, 3, 64, 64});
  const GraphMaker g = Layer(filter, Random({64}), {});
  OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, g.Graph());
  const auto model = LoadedModel::Create(std::move(graph));
  const auto make = [&](const char* fetches, bool fast) {
    SessionOptions options;
    options.fast_kernels = fast;
    return Session::Create(model, *graph::ParseTensorNames("x"),
                           *graph::ParseTensorNames(fetches), options);
  };
  const Tensor x = Random({1, 5, 5, 64});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, "x", {x}, "z", false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto before, make("z", false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto fast, make("z", true));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      if (t % 2 == 0) {
        const auto got = fast->Run({x});
        ASSERT_TRUE(got.ok()) << got.status();
        ExpectClose((*got)[0], wanted.values[0]);
        return;
      }
      const auto late = make("z,filter", t % 4 == 1);
      ASSERT_TRUE(late.ok()) << late.status();
      const auto got = (*late)->Run({x});
      ASSERT_TRUE(got.ok()) << got.status();
      ExpectClose((*got)[0], wanted.values[0]);
      ExpectSame((*got)[1], filter);
    });
  }
  for (std::thread& thread : threads) thread.join();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, before->Run({x}));
  ExpectSame(got[0], wanted.values[0]);
}

TEST_P(FastFloatTest, StepsWithTheSameWeightsPackThemOnce) {
  GraphMaker one, two;
  for (GraphMaker* g : {&one, &two}) {
    g->Placeholder("x", kFloat).Const("b", Random({64, 64}));
    g->Math("first", "MatMul", {"x", "b"});
  }
  two.Math("second", "MatMul", {"first", "b"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto once, one.Session("x", "first"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto twice, two.Session("x", "second"));
  EXPECT_EQ(twice->step_count(), 2);
  EXPECT_EQ(once->constant_bytes(), twice->constant_bytes());
  const Tensor x = Random({3, 64});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(two, "x", {x}, "second", false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, twice->Run({x}));
  ExpectClose(got[0], wanted.values[0]);
}

TEST_P(FastFloatTest, OneBufferMayBeWeightsOfSeveralShapes) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("z", kFloat);
  g.Const("b", Random({8, 32}));
  g.Const("shape", Tensor::FromValues<int32_t>({2}, {16, 16}));
  g.Node("other", "Reshape", {"b", "shape"}).Type("T", kFloat);
  g.Math("first", "MatMul", {"x", "b"})
      .Math("second", "MatMul", {"z", "other"});
  const std::vector<Tensor> inputs = {Random({3, 8}), Random({3, 16})};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result wanted, RunGraph(g, "x,z", inputs, "first,second", false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result got, RunGraph(g, "x,z", inputs, "first,second", true));
  ExpectClose(got.values[0], wanted.values[0]);
  ExpectClose(got.values[1], wanted.values[1]);
}

TEST(FastFloatSwitchTest, WithoutFastKernelsEveryNodeIsAStep) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("b", Tensor::FromValues<float>({1, 1}, {2}));
  g.Math("product", "MatMul", {"x", "b"}).Math("y", "Relu", {"product"});
  const Tensor x = Tensor::FromValues<float>({1, 1}, {3});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result off,
                               RunGraph(g, "x", {x}, "y", false));
  EXPECT_THAT(off.ops, ElementsAre("MatMul", "Relu"));
  const CpuLimit limit({});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result portable,
                               RunGraph(g, "x", {x}, "y", true));
  EXPECT_THAT(portable.ops, Not(Contains("MatMul+Relu")));
}

}  // namespace
}  // namespace optfarm::runtime
#endif
