// Softmax with the bias before it against the reference kernels, with each
// instruction set that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/fusion/fusions.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// What is hardly more than denormal may be zero.
constexpr Tolerance kClose = {.absolute = 2e-38f, .relative = 1e-6f};

class SoftmaxFusionTest : public FastKernelsTest {};

INSTANTIATE_TEST_SUITE_P(Sets, SoftmaxFusionTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

GraphMaker SoftmaxOf(const std::string& logits) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Math("y", "Softmax", {logits});
  return g;
}

// The sum of x and a bias, by `op`, and its softmax.
GraphMaker BiasedSoftmax(const char* op, const Tensor& bias,
                         bool is_bias_first = false) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("bias", bias);
  g.Math("sum", op,
         is_bias_first ? std::vector<std::string>{"bias", "x"}
                       : std::vector<std::string>{"x", "bias"});
  g.Math("y", "Softmax", {"sum"});
  return g;
}

void ExpectSameAsReference(const GraphMaker& g, const Tensor& x,
                           const std::vector<std::string>& ops,
                           const std::string& fetches = "y") {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, "x", {x}, fetches, false));
  for (int threads : {1, 3}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", {x}, fetches, true, threads));
    EXPECT_EQ(got.ops, ops);
    ASSERT_EQ(got.values.size(), wanted.values.size());
    for (size_t i = 0; i < wanted.values.size(); ++i) {
      ExpectClose(got.values[i], wanted.values[i], kClose);
    }
  }
}

TEST_P(SoftmaxFusionTest, RowsOfAllWidthsAgree) {
  const GraphMaker g = SoftmaxOf("x");
  for (int64_t columns = 1; columns <= 70; ++columns) {
    SCOPED_TRACE(absl::StrCat(columns, " columns"));
    ExpectSameAsReference(g, Random({Pick(1, 9), columns}, -10, 10),
                          {"Softmax"});
  }
  for (const Shape& shape : std::vector<Shape>{{1001},
                                               {1, 1001},
                                               {1917, 91},
                                               {40000, 3},
                                               {2, 3, 4, 5},
                                               {3, 1, 1, 2, 33},
                                               {5, 1},
                                               {0, 7},
                                               {7, 0},
                                               {0}}) {
    SCOPED_TRACE(shape.ToString());
    ExpectSameAsReference(g, Random(shape, -30, 30), {"Softmax"});
  }
}

TEST_P(SoftmaxFusionTest, SpecialAndLargeLogitsAgree) {
  const GraphMaker g = SoftmaxOf("x");
  const std::vector<float> specials = {kInfinity, -kInfinity, kNan,     3e38f,
                                       -3e38f,    1000.0f,    -1000.0f, 0.0f};
  for (int round = 0; round < 200; ++round) {
    const int64_t columns = Pick(1, 50);
    Tensor x = Random({4, columns}, -100, 100);
    // One row of them stays as it is.
    for (int row = 0; row < 3; ++row) {
      x.data<float>()[row * columns + Pick(0, columns - 1)] =
          specials[Pick(0, specials.size() - 1)];
    }
    SCOPED_TRACE(absl::StrCat("round ", round));
    ExpectSameAsReference(g, x, {"Softmax"});
  }
  for (float value : specials) {
    for (int64_t columns : {1, 16, 21}) {
      SCOPED_TRACE(absl::StrCat(columns, " times ", value));
      ExpectSameAsReference(g,
                            Tensor::FromValues<float>(
                                {columns}, std::vector<float>(columns, value)),
                            {"Softmax"});
    }
  }
}

TEST_P(SoftmaxFusionTest, ABiasBeforeItIsPartOfTheStep) {
  for (int round = 0; round < 60; ++round) {
    const int64_t columns = Pick(1, 70);
    const Tensor bias = Random({columns}, -5, 5);
    const Tensor x = Random({Pick(0, 4), Pick(1, 3), columns}, -5, 5);
    SCOPED_TRACE(absl::StrCat("round ", round));
    ExpectSameAsReference(BiasedSoftmax("BiasAdd", bias), x,
                          {"BiasAdd+Softmax"});
    ExpectSameAsReference(BiasedSoftmax("AddV2", bias, Chance()), x,
                          {"AddV2+Softmax"});
  }
  const Tensor bias = Random({91});
  ExpectSameAsReference(BiasedSoftmax("BiasAdd", bias), Random({1917, 91}),
                        {"BiasAdd+Softmax"});
  ExpectSameAsReference(BiasedSoftmax("Add", bias), Random({91}),
                        {"Add+Softmax"});
}

TEST_P(SoftmaxFusionTest, ASumThatOthersReadStaysAStep) {
  GraphMaker g = BiasedSoftmax("BiasAdd", Random({20}));
  ExpectSameAsReference(g, Random({3, 20}), {"BiasAdd", "Softmax"}, "y,sum");
  g.Math("shape_of_it", "Shape", {"sum"});
  ExpectSameAsReference(g, Random({3, 20}), {"BiasAdd", "Softmax"}, "sum,y");
}

TEST_P(SoftmaxFusionTest, WhatIsNoBiasOfRowsTakesTheReferenceKernels) {
  // Vectors that are made longer, or make the logits so.
  ExpectSameAsReference(BiasedSoftmax("Add", Random({1})), Random({3, 20}),
                        {"Add+Softmax"});
  ExpectSameAsReference(BiasedSoftmax("Add", Random({20})), Random({3, 1}),
                        {"Add+Softmax"});
  ExpectSameAsReference(BiasedSoftmax("Add", Random({20})), Random({}),
                        {"Add+Softmax"});
  const GraphMaker g = BiasedSoftmax("BiasAdd", Random({20}));
  for (const Shape& shape : std::vector<Shape>{{20}, {3, 19}, {}}) {
    SCOPED_TRACE(shape.ToString());
    EXPECT_THAT(RunGraph(g, "x", {Random(shape)}, "y", true),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("cannot take a bias of shape")));
  }
  EXPECT_THAT(RunGraph(SoftmaxOf("x"), "x", {Random({})}, "y", true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must have rank 1 or more")));
}

TEST_P(SoftmaxFusionTest, BiasAlongAnotherDimensionStaysAStep) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("bias", Random({4}));
  g.Node("sum", "BiasAdd", {"x", "bias"})
      .Type("T", kFloat)
      .Text("data_format", "NCHW");
  g.Math("y", "Softmax", {"sum"});
  ExpectSameAsReference(g, Random({2, 4, 4, 4}), {"BiasAdd", "Softmax"});
}

TEST_P(SoftmaxFusionTest, AProductKeepsItsBias) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("weights", Random({8, 10}));
  g.Const("bias", Random({10})).Math("product", "MatMul", {"x", "weights"});
  g.Math("sum", "BiasAdd", {"product", "bias"}).Math("y", "Softmax", {"sum"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "x", {Random({3, 8})}, "y", true));
  EXPECT_THAT(got.ops, ElementsAre("MatMul+BiasAdd", "Softmax"));
}

TEST_P(SoftmaxFusionTest, LoopsRunItAsOneStep) {
  // while (n < 5) { h = softmax(h + bias); n = n + 1 }
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("n0", kFloat);
  g.Const("five", Tensor::Scalar<float>(5)).Const("b", Random({20}, -3, 3));
  g.Enter("limit", "five", "loop", kFloat, true);
  g.Enter("bias", "b", "loop", kFloat, true);
  g.LoopVariable("n", "n0", "loop", "cond", "n_next");
  g.LoopVariable("h", "x", "loop", "cond", "h_next");
  g.Math("less", "Less", {"n/merge", "limit"});
  g.Node("cond", "LoopCond", {"less"});
  g.Node("n_body", "Identity", {"n/switch:1"}).Type("T", kFloat);
  g.Const("one", Tensor::Scalar<float>(1), {"^n_body"});
  g.Math("n_next", "Add", {"n_body", "one"});
  g.Math("sum", "BiasAdd", {"h/switch:1", "bias"});
  g.Math("h_next", "Softmax", {"sum"});
  for (int first : {0, 3, 9}) {
    const std::vector<Tensor> inputs = {Random({3, 20}, -3, 3),
                                        Tensor::Scalar<float>(first)};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x,n0", inputs, "h/exit", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x,n0", inputs, "h/exit", true));
    // Once more with the dead values behind the last iteration.
    EXPECT_EQ(std::count(got.ops.begin(), got.ops.end(), "BiasAdd+Softmax"),
              std::max(0, 5 - first) + 1);
    ExpectClose(got.values[0], wanted.values[0], kClose);
  }
}

TEST_P(SoftmaxFusionTest, CanBeLeftOut) {
  const FusionLimit limit("softmax");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result got, RunGraph(BiasedSoftmax("BiasAdd", Random({20})), "x",
                                 {Random({3, 20})}, "y", true));
  EXPECT_THAT(got.ops, ElementsAre("BiasAdd", "Softmax"));
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
