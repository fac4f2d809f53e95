// Products with weights of 4 bits against the reference kernels, with each
// instruction set that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/fusion/fusions.h"
#include "engine/runtime/fusion/int4_products.h"
#include "engine/runtime/plan/fused_nodes.h"
#include "engine/runtime/reference/quantized/block_quantization.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Codes are shifted to their reals behind their sum.
constexpr Tolerance kClose = {.of_largest = 2e-5f};

struct Layer {
  int64_t depth = 40;
  int64_t columns = 24;
  int64_t block = 16;
  bool transposed = false;
  bool has_zero_points = true;
  bool has_half_scales = true;
};

class Int4MatMulFusionTest : public FastKernelsTest {
 protected:
  Tensor Bytes(int64_t count) {
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < count; ++i) {
      bytes.push_back(static_cast<uint8_t>(Pick(0, 255)));
    }
    return Tensor::FromValues<uint8_t>({count}, bytes);
  }

  // x -> product with weights in blocks, called `name`.
  void AddLayer(const Layer& l, const std::string& x, const std::string& name,
                GraphMaker* g) {
    const std::vector<int64_t> dims =
        l.transposed ? std::vector<int64_t>{l.columns, l.depth}
                     : std::vector<int64_t>{l.depth, l.columns};
    const int axis = l.transposed ? 1 : 0;
    const BlockGrid grid(*Shape::FromDims(dims), axis, l.block);
    const Tensor scales = Random(grid.ScaleShape(), 0.01f, 0.1f);
    const std::string w = name + "_w";
    g->Const(w + "_x", Bytes(FourBitBytes(l.depth * l.columns)));
    g->Const(w + "_s", l.has_half_scales
                           ? *FloatAsHalf(scales, tensorflow::DT_HALF)
                           : scales);
    g->Const(w + "_z",
             Bytes(l.has_zero_points ? FourBitBytes(grid.scale_count()) : 0));
    g->Node(w, "DequantizeBlocks", {w + "_x", w + "_s", w + "_z"})
        .Type("S", l.has_half_scales ? tensorflow::DT_HALF : kFloat)
        .Shape("shape", dims)
        .Int("axis", axis)
        .Int("block_size", l.block);
    g->Node(name, "MatMul", {x, w})
        .Type("T", kFloat)
        .Bool("transpose_b", l.transposed);
  }

  const Int4ProductsLimit all_{0};

  void ExpectSameAsReference(const GraphMaker& g,
                             const std::vector<Tensor>& inputs,
                             const std::vector<std::string>& ops,
                             const std::string& feeds = "x",
                             bool is_fused = true) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, feeds, inputs, "y", false));
    for (const int threads : {1, 3}) {
      SessionOptions options;
      options.threads = threads;
      std::vector<FusedNodes> fused;
      options.fused_nodes = &fused;
      OPTFARM_ASSERT_OK_AND_ASSIGN(auto session,
                                   g.Session(feeds, "y", options));
      EXPECT_EQ(std::any_of(
                    fused.begin(), fused.end(),
                    [](const FusedNodes& one) { return one.fusion == "int4"; }),
                is_fused);
      RunTrace trace;
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got,
                                   session->Run(inputs, &trace));
      std::vector<std::string> ran;
      for (const NodeTiming& node : trace.nodes) ran.push_back(node.op);
      EXPECT_EQ(ran, ops);
      ExpectClose(got[0], wanted.values[0], kClose);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Sets, Int4MatMulFusionTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

TEST_P(Int4MatMulFusionTest, AllSizesAgree) {
  for (int i = 0; i < 60; ++i) {
    Layer layer;
    layer.depth = Pick(1, 200);
    layer.columns = Pick(1, 150);
    layer.block = int64_t{8} << Pick(0, 4);
    layer.transposed = Chance();
    layer.has_zero_points = Chance();
    layer.has_half_scales = Chance();
    GraphMaker g;
    g.Placeholder("x", kFloat);
    AddLayer(layer, "x", "y", &g);
    const int64_t rows = Pick(1, 9);
    SCOPED_TRACE(absl::StrCat(rows, "x", layer.depth, " by ", layer.columns,
                              " in blocks of ", layer.block));
    ExpectSameAsReference(g, {Random({rows, layer.depth})}, {"MatMul"});
  }
}

// Weights are unpacked for them, some of the depth at a time.
TEST_P(Int4MatMulFusionTest, ManyRowsAgree) {
  for (const int64_t depth : {1, 40, 512, 513, 1100}) {
    for (const int64_t columns : {5, 16, 40, 70}) {
      Layer layer;
      layer.depth = depth;
      layer.columns = columns;
      layer.block = 32;
      GraphMaker g;
      g.Placeholder("x", kFloat).Const("bias", Random({columns}));
      g.Const("factor", Random({columns}));
      AddLayer(layer, "x", "product", &g);
      g.Math("scaled", "Mul", {"product", "factor"});
      g.Math("y", "Add", {"scaled", "bias"});
      SCOPED_TRACE(absl::StrCat(depth, " by ", columns));
      ExpectSameAsReference(g, {Random({Pick(12, 30), depth})},
                            {"MatMul+Mul+Add"});
    }
  }
}

TEST_P(Int4MatMulFusionTest, TakesInWhatFollows) {
  for (const int64_t rows : {1, 3, 20}) {
    GraphMaker g;
    g.Placeholder("x", kFloat).Placeholder("other", kFloat);
    g.Const("bias", Random({24}));
    AddLayer({}, "x", "product", &g);
    g.Math("biased", "BiasAdd", {"product", "bias"});
    g.Math("sum", "Add", {"biased", "other"}).Math("y", "Relu6", {"sum"});
    ExpectSameAsReference(g, {Random({rows, 40}), Random({rows, 24}, -9, 9)},
                          {"MatMul+BiasAdd+Add+Relu6"}, "x,other");
  }
}

// As the steps of a recurrent layer do.
TEST_P(Int4MatMulFusionTest, SeveralProductsShareTheirWeights) {
  GraphMaker g;
  g.Placeholder("x", kFloat);
  AddLayer({.depth = 24}, "x", "first", &g);
  g.Math("middle", "Tanh", {"first"});
  g.Node("y", "MatMul", {"middle", "first_w"}).Type("T", kFloat);
  ExpectSameAsReference(g, {Random({2, 24})}, {"MatMul", "Tanh", "MatMul"});
}

// Longer than any sum of sizes may be.
TEST_P(Int4MatMulFusionTest, BlocksMayBeLongerThanTheDepth) {
  for (const int64_t block : {int64_t{64}, INT64_MAX - 7}) {
    for (const int64_t rows : {1, 20}) {
      GraphMaker g;
      g.Placeholder("x", kFloat);
      AddLayer({.block = block}, "x", "y", &g);
      ExpectSameAsReference(g, {Random({rows, 40})}, {"MatMul"});
    }
  }
}

TEST_P(Int4MatMulFusionTest, HugeInputsGiveWhatFloatsGive) {
  for (const float value : {kInfinity, -kInfinity, 3e38f, -3e38f}) {
    GraphMaker g;
    g.Placeholder("x", kFloat);
    AddLayer({}, "x", "y", &g);
    Tensor x = Random({1, 40});
    x.flat<float>()[3] = value;
    ExpectSameAsReference(g, {x}, {"MatMul"});
  }
}

TEST_P(Int4MatMulFusionTest, FewWeightsBecomeFloatsAtLoad) {
  GraphMaker g;
  g.Placeholder("x", kFloat);
  AddLayer({}, "x", "y", &g);
  constexpr int64_t kFloatBytes = 40 * 24 * sizeof(float);
  const Int4ProductsLimit above(kFloatBytes + 1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto few, g.Session("x", "y"));
  const Int4ProductsLimit at(kFloatBytes);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto many, g.Session("x", "y"));
  EXPECT_GT(few->constant_bytes(), 3 * many->constant_bytes());
}

TEST_P(Int4MatMulFusionTest, WeightsThatAreSeenStayThere) {
  GraphMaker g;
  g.Placeholder("x", kFloat);
  AddLayer({}, "x", "product", &g);
  g.Math("y", "Relu", {"product"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, g.Session("x", "y,product_w"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto values,
                               session->Run({Random({1, 40})}));
  EXPECT_EQ(values[1].shape(), Shape({40, 24}));
}

TEST_P(Int4MatMulFusionTest, BadInputIsReported) {
  GraphMaker g;
  g.Placeholder("x", kFloat);
  AddLayer({}, "x", "y", &g);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, g.Session("x", "y"));
  EXPECT_FALSE(session->Run({Random({1, 41})}).ok());
}

TEST_P(Int4MatMulFusionTest, CanBeLeftOut) {
  const FusionLimit limit("int4");
  GraphMaker g;
  g.Placeholder("x", kFloat);
  AddLayer({}, "x", "y", &g);
  ExpectSameAsReference(g, {Random({2, 40})}, {"MatMul"}, "x", false);
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
