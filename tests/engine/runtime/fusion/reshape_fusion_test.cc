// Reshapes that read their sizes from shapes, against the reference kernels.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr DataType kInt = tensorflow::DT_INT32;

Tensor Ints(const std::vector<int32_t>& values) {
  return Tensor::FromValues<int32_t>(
      Shape({static_cast<int64_t>(values.size())}), values);
}

// x and "like", and the sizes' shape "shape" of `like`.
GraphMaker Begin() {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("like", kFloat);
  g.Node("shape", "Shape", {"like"}).Type("T", kFloat).Type("out_type", kInt);
  g.Const("zero", Tensor::Scalar<int32_t>(0));
  return g;
}

void Slice(GraphMaker* g, const std::string& name, int32_t begin, int32_t end,
           bool shrinks) {
  g->Const(name + "/begin", Ints({begin})).Const(name + "/end", Ints({end}));
  g->Const(name + "/one", Ints({1}));
  g->Node(name, "StridedSlice",
          {"shape", name + "/begin", name + "/end", name + "/one"})
      .Type("T", kInt)
      .Type("Index", kInt)
      .Int("shrink_axis_mask", shrinks ? 1 : 0);
}

void Reshape(GraphMaker* g, const std::string& sizes) {
  g->Node("y", "Reshape", {"x", sizes}).Type("T", kFloat).Type("Tshape", kInt);
}

void ExpectOneStep(const GraphMaker& g, const Shape& x, const Shape& like,
                   const Shape& wanted) {
  const std::vector<Tensor> inputs = {*Tensor::Allocate(kFloat, x),
                                      *Tensor::Allocate(kFloat, like)};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result slow,
                               RunGraph(g, "x,like", inputs, "y", false));
  EXPECT_EQ(slow.values[0].shape(), wanted);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "x,like", inputs, "y", true));
  EXPECT_THAT(got.ops, ElementsAre("Reshape"));
  EXPECT_EQ(got.values[0].shape(), wanted);
}

TEST(ReshapeFusionTest, OuterSizesAndConstantsAreOneStep) {
  GraphMaker g = Begin();
  Slice(&g, "outer", 0, -1, false);
  g.Const("tail", Ints({4, 2}));
  g.Node("sizes", "ConcatV2", {"outer", "tail", "zero"})
      .Type("T", kInt)
      .Int("N", 2);
  Reshape(&g, "sizes");
  ExpectOneStep(g, {6, 8}, {2, 3, 5}, {2, 3, 4, 2});
  ExpectOneStep(g, {6, 8}, {6, 5}, {6, 4, 2});
  ExpectOneStep(g, {8}, {5}, {4, 2});
}

TEST(ReshapeFusionTest, SingleSizesAndAnOpenOneAreOneStep) {
  GraphMaker g = Begin();
  Slice(&g, "batch", 0, 1, true);
  Slice(&g, "last", -1, 0, true);
  g.Node("places", "GatherV2", {"shape", "one", "zero"})
      .Type("Tparams", kInt)
      .Type("Tindices", kInt)
      .Type("Taxis", kInt);
  g.Const("one", Tensor::Scalar<int32_t>(1));
  g.Const("open", Tensor::Scalar<int32_t>(-1));
  g.Node("sizes", "Pack", {"batch", "places", "open", "last"})
      .Type("T", kInt)
      .Int("N", 4);
  Reshape(&g, "sizes");
  ExpectOneStep(g, {60}, {2, 3, 5}, {2, 3, 2, 5});
}

TEST(ReshapeFusionTest, SizesThatComeAsValuesAreRead) {
  GraphMaker g = Begin();
  g.Placeholder("given", kInt);
  Slice(&g, "outer", 0, 1, false);
  g.Node("sizes", "ConcatV2", {"outer", "given", "zero"})
      .Type("T", kInt)
      .Int("N", 2);
  Reshape(&g, "sizes");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result got,
      RunGraph(g, "x,like,given",
               {*Tensor::Allocate(kFloat, Shape({12})),
                *Tensor::Allocate(kFloat, Shape({3, 9})), Ints({2, 2})},
               "y", true));
  EXPECT_THAT(got.ops, ElementsAre("Reshape"));
  EXPECT_EQ(got.values[0].shape(), Shape({3, 2, 2}));
}

TEST(ReshapeFusionTest, SizesThatOthersReadStayForThem) {
  GraphMaker g = Begin();
  Slice(&g, "outer", 0, 1, false);
  g.Const("tail", Ints({-1}));
  g.Node("sizes", "ConcatV2", {"outer", "tail", "zero"})
      .Type("T", kInt)
      .Int("N", 2);
  Reshape(&g, "sizes");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result got, RunGraph(g, "x,like",
                                 {*Tensor::Allocate(kFloat, Shape({12})),
                                  *Tensor::Allocate(kFloat, Shape({3, 9}))},
                                 "y,outer", true));
  EXPECT_EQ(got.values[0].shape(), Shape({3, 4}));
  EXPECT_THAT(got.values[1].flat<int32_t>(), ElementsAre(3));
}

TEST(ReshapeFusionTest, WhatDoesNotFitIsRefusedAsByTheSteps) {
  GraphMaker g = Begin();
  Slice(&g, "outer", 0, -1, false);
  g.Const("tail", Ints({4}));
  g.Node("sizes", "ConcatV2", {"outer", "tail", "zero"})
      .Type("T", kInt)
      .Int("N", 2);
  Reshape(&g, "sizes");
  EXPECT_THAT(RunGraph(g, "x,like",
                       {*Tensor::Allocate(kFloat, Shape({6, 8})),
                        *Tensor::Allocate(kFloat, Shape({5, 3}))},
                       "y", true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cannot become [5,4]")));
}

TEST(ReshapeFusionTest, BitsOfDimensionsThatAShapeDoesNotHaveAreIgnored) {
  GraphMaker g = Begin();
  g.Const("begin", Ints({0})).Const("end", Ints({1})).Const("one", Ints({1}));
  g.Node("sizes", "StridedSlice", {"shape", "begin", "end", "one"})
      .Type("T", kInt)
      .Type("Index", kInt)
      .Int("end_mask", 3);
  Reshape(&g, "sizes");
  for (const bool fast : {false, true}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Result got, RunGraph(g, "x,like",
                                   {*Tensor::Allocate(kFloat, Shape({6})),
                                    *Tensor::Allocate(kFloat, Shape({2, 3}))},
                                   "y", fast));
    EXPECT_EQ(got.values[0].shape(), Shape({2, 3}));
  }
}

// while (n < 3) { y = Reshape(y, sizes of like); n = n + 1 }, and the same with
// the sizes found within the loop.
TEST(ReshapeFusionTest, LoopsReadSizesFromOutsideAndInside) {
  for (const bool inside : {false, true}) {
    SCOPED_TRACE(inside);
    GraphMaker g;
    g.Placeholder("x", kFloat).Placeholder("like", kFloat);
    g.Placeholder("n0", kFloat);
    g.Math("moved", "Neg", {"like"});
    g.Enter("limit", "three", "loop", kFloat, true);
    g.Const("three", Tensor::Scalar<float>(3));
    if (inside) {
      g.Enter("like_in", "moved", "loop", kFloat, true);
      g.Node("sizes_in", "Shape", {"like_in"})
          .Type("T", kFloat)
          .Type("out_type", kInt);
    } else {
      g.Node("shape", "Shape", {"moved"})
          .Type("T", kFloat)
          .Type("out_type", kInt);
      g.Enter("sizes_in", "shape", "loop", kInt, true);
    }
    g.LoopVariable("n", "n0", "loop", "cond", "n_next");
    g.LoopVariable("y", "x", "loop", "cond", "y_next");
    g.Math("less", "Less", {"n/merge", "limit"});
    g.Node("cond", "LoopCond", {"less"});
    g.Node("n_body", "Identity", {"n/switch:1"}).Type("T", kFloat);
    g.Const("one", Tensor::Scalar<float>(1), {"^n_body"});
    g.Math("n_next", "Add", {"n_body", "one"});
    g.Node("y_next", "Reshape", {"y/switch:1", "sizes_in"})
        .Type("T", kFloat)
        .Type("Tshape", kInt);
    for (const bool fast : {false, true}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result got, RunGraph(g, "x,like,n0",
                                     {*Tensor::Allocate(kFloat, Shape({6})),
                                      *Tensor::Allocate(kFloat, Shape({2, 3})),
                                      Tensor::Scalar<float>(0)},
                                     "y/exit", fast));
      EXPECT_EQ(got.values[0].shape(), Shape({2, 3}));
    }
  }
}

// x [batch, places, 4] by a matrix, as ONNX's MatMul is read.
TEST(RowsFusionTest, ALayerOnTheRowsOfAnyTensorIsOneStep) {
  for (const bool is_open : {false, true}) {
    SCOPED_TRACE(is_open);
    GraphMaker g = Begin();
    std::vector<float> weights(12);
    for (int i = 0; i < 12; ++i) weights[i] = static_cast<float>(i) - 5;
    g.Const("w", Tensor::FromValues<float>(Shape({4, 3}), weights));
    g.Const("rows", Ints({-1, 4})).Const("columns", Ints({3}));
    g.Node("flat", "Reshape", {"like", "rows"})
        .Type("T", kFloat)
        .Type("Tshape", kInt);
    g.Math("product", "MatMul", {"flat", "w"});
    if (is_open) {
      Slice(&g, "outer", 0, -1, false);
      g.Node("sizes", "ConcatV2", {"outer", "columns", "zero"})
          .Type("T", kInt)
          .Int("N", 2);
    } else {
      g.Const("sizes", Ints({2, -1, 3}));
    }
    g.Node("y", "Reshape", {"product", "sizes"})
        .Type("T", kFloat)
        .Type("Tshape", kInt);
    Tensor like = *Tensor::Allocate(kFloat, Shape({2, 3, 4}));
    for (int i = 0; i < 24; ++i) like.data<float>()[i] = static_cast<float>(i);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "like", {like}, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "like", {like}, "y", true));
    EXPECT_THAT(got.ops, ElementsAre("Reshape+MatMul+Reshape"));
    ExpectClose(got.values[0], wanted.values[0], {.relative = 1e-6f});
    // Rows of another size are cut as the steps cut them, or refused.
    const Tensor other = *Tensor::Zeros(kFloat, Shape({4, 6}));
    for (const bool fast : {false, true}) {
      const auto result = RunGraph(g, "like", {other}, "y", fast);
      EXPECT_EQ(result.ok(), !is_open) << result.status();
    }
    EXPECT_FALSE(
        RunGraph(g, "like", {*Tensor::Zeros(kFloat, Shape({2, 3}))}, "y", true)
            .ok());
  }
}

// Each join reads the one before sixteen times.
TEST(ReshapeFusionTest, SizesWithoutEndAreLeftToTheSteps) {
  GraphMaker g = Begin();
  std::string last = "shape";
  for (int i = 0; i < 7; ++i) {
    const std::string name = absl::StrCat("join", i);
    std::vector<std::string> inputs(16, last);
    inputs.push_back("zero");
    g.Node(name, "ConcatV2", inputs).Type("T", kInt).Int("N", 16);
    last = name;
  }
  Reshape(&g, last);
  EXPECT_TRUE(g.Session("x,like", "y").ok());
}

TEST(ReshapeFusionTest, ADimensionThatIsNotThereIsRefused) {
  GraphMaker g = Begin();
  Slice(&g, "third", 2, 3, true);
  g.Const("open", Tensor::Scalar<int32_t>(-1));
  g.Node("sizes", "Pack", {"third", "open"}).Type("T", kInt).Int("N", 2);
  Reshape(&g, "sizes");
  for (const bool fast : {false, true}) {
    EXPECT_THAT(RunGraph(g, "x,like",
                         {*Tensor::Allocate(kFloat, Shape({6, 8})),
                          *Tensor::Allocate(kFloat, Shape({5, 3}))},
                         "y", fast),
                StatusIs(absl::StatusCode::kInvalidArgument, _));
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
