// Attention in one step against the reference kernels, with each instruction
// set that this machine has.

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
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr DataType kBool = tensorflow::DT_BOOL;
constexpr Tolerance kClose = {.absolute = 2e-6f, .relative = 2e-5f};

class AttentionFusionTest : public FastKernelsTest {
 protected:
  Tensor Choices(const Shape& shape) {
    std::vector<bool> chosen(shape.num_elements());
    Tensor tensor = *Tensor::Allocate(kBool, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      // The first of each row stays: no row is masked whole.
      tensor.data<bool>()[i] = i % shape.dim(shape.rank() - 1) == 0 || Chance();
    }
    return tensor;
  }
};

INSTANTIATE_TEST_SUITE_P(Sets, AttentionFusionTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

Tensor Order(const std::vector<int32_t>& order) {
  return Tensor::FromValues<int32_t>(
      Shape({static_cast<int64_t>(order.size())}), order);
}

// Queries, keys and values q, k and v of heads [batch, heads, positions, size],
// with `steps` between the product "scores" and the softmax, which reads
// `masked`.
struct Attention {
  GraphMaker g;
  std::string masked = "scores";

  explicit Attention(const std::string& q = "q", const std::string& k = "k",
                     const std::string& v = "v", bool transposes_keys = true)
      : value(v) {
    for (const char* name : {"q", "k", "v"}) g.Placeholder(name, kFloat);
    g.Node("scores", "BatchMatMulV2", {q, k})
        .Type("T", kFloat)
        .Bool("adj_y", transposes_keys);
  }
  Attention& Then(const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs) {
    g.Math(name, op, inputs);
    masked = name;
    return *this;
  }
  GraphMaker& End() {
    g.Math("weights", "Softmax", {masked});
    g.Node("mixed", "BatchMatMulV2", {"weights", value}).Type("T", kFloat);
    return g;
  }
  const std::string value;
};

void ExpectFused(const GraphMaker& g, const std::string& feeds,
                 const std::vector<Tensor>& inputs, const std::string& fetch) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, feeds, inputs, fetch, false));
  for (int threads : {1, 3}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Result got, RunGraph(g, feeds, inputs, fetch, true, threads));
    EXPECT_THAT(got.ops, Contains(HasSubstr("Softmax+")));
    EXPECT_THAT(got.ops, Not(Contains("BatchMatMulV2")));
    ExpectClose(got.values[0], wanted.values[0], kClose);
  }
}

TEST_P(AttentionFusionTest, HeadsOfAllSizesAgree) {
  Attention a;
  a.g.Const("scale", Tensor::Scalar(0.3f));
  a.Then("scaled", "Mul", {"scores", "scale"});
  const GraphMaker& g = a.End();
  for (int i = 0; i < 40; ++i) {
    const int64_t batch = Pick(1, 2), heads = Pick(1, 4), size = Pick(1, 40);
    const int64_t queries = Pick(4, 70), keys = Pick(1, 70);
    const Shape q({batch, heads, queries, size}), k({batch, heads, keys, size});
    const Shape v({batch, heads, keys, Pick(1, 40)});
    SCOPED_TRACE(absl::StrCat(q.ToString(), k.ToString(), v.ToString()));
    ExpectFused(g, "q,k,v", {Random(q), Random(k), Random(v)}, "mixed");
    if (HasFailure()) return;
  }
}

TEST_P(AttentionFusionTest, ManyKeysAreTakenInBlocksOfRows) {
  Attention a;
  const GraphMaker& g = a.End();
  for (const int64_t keys : {1500, 5000}) {
    ExpectFused(g, "q,k,v",
                {Random({1, 1, 100, 8}), Random({1, 1, keys, 8}),
                 Random({1, 1, keys, 8})},
                "mixed");
  }
}

TEST_P(AttentionFusionTest, HeadsAreReadAndWrittenWhereTheyStand) {
  // As exported: positions before heads, keys transposed with the heads.
  Attention a("q4", "k4", "v4", false);
  a.g.Const("heads", Order({0, 2, 1, 3})).Const("keys", Order({0, 2, 3, 1}));
  for (const std::string part : {"q", "k", "v"}) {
    a.g.Node(part + "4", "Transpose", {part, part == "k" ? "keys" : "heads"})
        .Type("T", kFloat)
        .Type("Tperm", tensorflow::DT_INT32);
  }
  a.g.Const("eight", Tensor::Scalar(8.0f));
  a.Then("scaled", "RealDiv", {"scores", "eight"});
  GraphMaker& g = a.End();
  g.Node("joined", "Transpose", {"mixed", "heads"})
      .Type("T", kFloat)
      .Type("Tperm", tensorflow::DT_INT32);
  const std::vector<Tensor> inputs = {
      Random({2, 21, 3, 16}), Random({2, 33, 3, 16}), Random({2, 33, 3, 10})};
  ExpectFused(g, "q,k,v", inputs, "joined");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "q,k,v", inputs, "joined", true));
  EXPECT_EQ(got.ops.size(), 1);
}

TEST_P(AttentionFusionTest, QueriesAndKeysMayBeScaledBefore) {
  Attention a("qs", "ks", "v");
  a.g.Const("third", Tensor::Scalar(1.0f / 3))
      .Const("five", Tensor::Scalar(5.0f));
  a.g.Const("heads", Order({0, 2, 1, 3}));
  a.g.Node("q4", "Transpose", {"q", "heads"})
      .Type("T", kFloat)
      .Type("Tperm", tensorflow::DT_INT32);
  a.g.Math("qs", "Mul", {"q4", "third"}).Math("ks", "RealDiv", {"k", "five"});
  ExpectFused(a.End(), "q,k,v",
              {Random({2, 9, 3, 5}, -4, 4), Random({2, 3, 14, 5}, -4, 4),
               Random({2, 3, 14, 5})},
              "mixed");
}

TEST_P(AttentionFusionTest, FactorsNearTheEndsOfTheRangeStayWhereTheyAre) {
  Attention a;
  a.g.Const("tiny", Tensor::Scalar(1e-39f));
  a.Then("scaled", "RealDiv", {"scores", "tiny"});
  const GraphMaker& g = a.End();
  const std::vector<Tensor> inputs = {Random({1, 1, 9, 5}, -1e-20f, 1e-20f),
                                      Random({1, 1, 7, 5}, -1e-20f, 1e-20f),
                                      Random({1, 1, 7, 5})};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, "q,k,v", inputs, "mixed", false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "q,k,v", inputs, "mixed", true));
  ExpectClose(got.values[0], wanted.values[0], {.relative = 1e-3f});
}

// As a softmax of nothing but -infinity.
TEST_P(AttentionFusionTest, RowsThatAreMaskedWholeAreNoNumbers) {
  Attention a;
  a.g.Placeholder("bias", kFloat);
  a.Then("biased", "Add", {"scores", "bias"});
  Tensor bias = Random({9, 14});
  std::fill_n(bias.data<float>() + 14, 14,
              -std::numeric_limits<float>::infinity());
  ExpectFused(a.End(), "q,k,v,bias",
              {Random({1, 1, 9, 5}), Random({1, 1, 14, 5}),
               Random({1, 1, 14, 5}), bias},
              "mixed");
}

TEST_P(AttentionFusionTest, MasksAreAddedAndSelect) {
  for (const Shape& shape : std::vector<Shape>{
           {2, 3, 9, 14}, {2, 1, 1, 14}, {9, 14}, {14}, {1, 3, 9, 1}, {}}) {
    SCOPED_TRACE(shape.ToString());
    Attention a;
    a.g.Placeholder("bias", kFloat).Placeholder("may_see", kBool);
    a.g.Const("least", Tensor::Scalar(-1e30f))
        .Const("half", Tensor::Scalar(0.5f));
    a.Then("scaled", "Mul", {"half", "scores"});
    a.Then("biased", "Add", {"bias", "scaled"});
    a.Then("again", "Mul", {"biased", "half"});
    a.Then("seen", "SelectV2", {"may_see", "again", "least"});
    ExpectFused(a.End(), "q,k,v,bias,may_see",
                {Random({2, 3, 9, 5}), Random({2, 3, 14, 5}),
                 Random({2, 3, 14, 5}), Random(shape), Choices({9, 14})},
                "mixed");
  }
}

TEST_P(AttentionFusionTest, AMaskMayNameWhatIsHidden) {
  Attention a;
  a.g.Placeholder("hidden", kBool);
  a.g.Const("least", Tensor::Scalar(-1e30f));
  a.Then("seen", "SelectV2", {"hidden", "least", "scores"});
  Tensor hidden = Choices({1, 1, 1, 14});
  for (int i = 0; i < 14; ++i) hidden.data<bool>()[i] = i % 3 == 1;
  ExpectFused(a.End(), "q,k,v,hidden",
              {Random({2, 3, 9, 5}), Random({2, 3, 14, 5}),
               Random({2, 3, 14, 5}), hidden},
              "mixed");
}

TEST_P(AttentionFusionTest, WhatDoesNotFitIsLeftToTheSteps) {
  Attention a;
  const GraphMaker& g = a.End();
  // Heads that are repeated, and a single query.
  const std::vector<std::vector<Tensor>> cases = {
      {Random({2, 3, 9, 5}), Random({1, 3, 7, 5}), Random({2, 3, 7, 5})},
      {Random({2, 3, 1, 5}), Random({2, 3, 7, 5}), Random({2, 3, 7, 5})},
      {Random({2, 3, 9, 5}), Random({2, 3, 0, 5}), Random({2, 3, 0, 5})}};
  for (const std::vector<Tensor>& inputs : cases) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "q,k,v", inputs, "mixed", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "q,k,v", inputs, "mixed", true));
    ExpectClose(got.values[0], wanted.values[0], kClose);
  }
  EXPECT_THAT(RunGraph(g, "q,k,v",
                       {Random({2, 3, 9, 5}), Random({2, 3, 7, 6}),
                        Random({2, 3, 7, 5})},
                       "mixed", true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cannot be multiplied")));
}

TEST_P(AttentionFusionTest, ScoresThatAreSeenStay) {
  Attention a;
  const GraphMaker& g = a.End();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result got, RunGraph(g, "q,k,v",
                                 {Random({1, 1, 9, 5}), Random({1, 1, 7, 5}),
                                  Random({1, 1, 7, 5})},
                                 "scores,mixed", true));
  EXPECT_THAT(got.ops, Contains("BatchMatMulV2"));
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
