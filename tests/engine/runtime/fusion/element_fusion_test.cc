// Functions of elements as one step against the same functions one by one, with
// each instruction set that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DataType kFloat = tensorflow::DT_FLOAT;

class ElementFusionTest : public FastKernelsTest {
 protected:
  Tensor Random(const Shape& shape) {
    return FastKernelsTest::Random(shape, -3, 3);
  }
};

INSTANTIATE_TEST_SUITE_P(Sets, ElementFusionTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

void ExpectSameAsReference(const GraphMaker& g, const std::string& feeds,
                           const std::vector<Tensor>& inputs,
                           const std::string& fetches) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, feeds, inputs, fetches, false));
  for (int threads : {1, 3}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Result got, RunGraph(g, feeds, inputs, fetches, true, threads));
    EXPECT_LT(got.ops.size(), wanted.ops.size());
    for (size_t i = 0; i < wanted.values.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("output ", i));
      ExpectClose(got.values[i], wanted.values[i],
                  {.absolute = 2e-6f, .relative = 2e-6f});
    }
  }
}

TEST_P(ElementFusionTest, FunctionsInAnyOrderAgree) {
  const std::vector<const char*> binary = {
      "Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "RealDiv", "Div"};
  const std::vector<const char*> unary = {"Neg", "Square", "Relu", "Relu6"};
  const std::vector<Shape> rows = {{1, 7},       {1, 128}, {5, 33},
                                   {2, 3, 4, 5}, {4000},   {70, 64}};
  for (int round = 0; round < 60; ++round) {
    const Shape& shape = rows[round % rows.size()];
    const int64_t width = shape.dim(shape.rank() - 1);
    GraphMaker g;
    g.Placeholder("x", kFloat).Placeholder("y", kFloat);
    g.Const("row", Random({width})).Const("one", Random({}));
    std::vector<std::string> names = {"x", "y", "row", "one"};
    for (int i = 0; i < 12; ++i) {
      const std::string name = absl::StrCat("v", i);
      // The first operand is never only a constant.
      const std::string a = i == 0 ? "x" : absl::StrCat("v", Pick(0, i - 1));
      if (Pick(0, 1) == 0) {
        g.Math(name, unary[Pick(0, unary.size() - 1)], {a});
      } else {
        const std::string b = names[Pick(0, names.size() - 1)];
        const bool swaps = Pick(0, 1) == 0;
        g.Math(name, binary[Pick(0, binary.size() - 1)],
               swaps ? std::vector<std::string>{b, a}
                     : std::vector<std::string>{a, b});
      }
      names.push_back(name);
    }
    // Those that may differ by a rounding come last: a difference of two, or
    // what is divided by it, would show more.
    g.Math("bounded", "Tanh", {"v11"}).Math("middle", "Sigmoid", {"v5"});
    SCOPED_TRACE(absl::StrCat("round ", round, " of ", shape.ToString()));
    ExpectSameAsReference(g, "x,y", {Random(shape), Random(shape)},
                          "bounded,middle");
  }
}

// As PyTorch writes it, by the error function and by tanh.
TEST_P(ElementFusionTest, GeluOfManyNodesIsOneStep) {
  GraphMaker g;
  g.Placeholder("x", kFloat);
  g.Const("root", Tensor::Scalar(1.41421356f))
      .Const("one", Tensor::Scalar(1.0f))
      .Const("half", Tensor::Scalar(0.5f))
      .Const("three", Tensor::Scalar(3.0f))
      .Const("share", Tensor::Scalar(0.044715f))
      .Const("slope", Tensor::Scalar(0.797884561f));
  g.Math("part", "RealDiv", {"x", "root"}).Math("erf", "Erf", {"part"});
  g.Math("sum", "Add", {"erf", "one"}).Math("whole", "Mul", {"x", "sum"});
  g.Math("y", "Mul", {"whole", "half"});
  g.Math("cube", "Pow", {"x", "three"}).Math("few", "Mul", {"cube", "share"});
  g.Math("all", "Add", {"x", "few"}).Math("u", "Mul", {"all", "slope"});
  g.Math("tanh", "Tanh", {"u"}).Math("more", "Add", {"tanh", "one"});
  g.Math("part2", "Mul", {"x", "more"}).Math("z", "Mul", {"part2", "half"});
  const std::vector<Tensor> inputs = {Random({7, 65})};
  ExpectSameAsReference(g, "x", inputs, "y,z");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                               RunGraph(g, "x", inputs, "y,z", true));
  EXPECT_LE(got.ops.size(), 2);
}

TEST_P(ElementFusionTest, ExpensiveFunctionsAreVectorizedAlone) {
  for (const bool approximate : {false, true}) {
    GraphMaker g;
    g.Placeholder("x", kFloat);
    g.Node("y", "Gelu", {"x"})
        .Type("T", kFloat)
        .Bool("approximate", approximate);
    const std::vector<Tensor> inputs = {Random({7, 65})};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", inputs, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", inputs, "y", true));
    ExpectClose(got.values[0], wanted.values[0], {.absolute = 1e-6f});
  }
}

TEST_P(ElementFusionTest, PowersOfOtherExponentsStay) {
  for (const float exponent : {2.0f, 3.0f, 2.5f, -1.0f, 0.0f}) {
    SCOPED_TRACE(exponent);
    GraphMaker g;
    g.Placeholder("x", kFloat).Const("e", Tensor::Scalar(exponent));
    g.Math("y", "Pow", {"x", "e"});
    const std::vector<Tensor> inputs = {FastKernelsTest::Random({65}, 0.5f, 3)};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", inputs, "y", false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result got,
                                 RunGraph(g, "x", inputs, "y", true));
    ExpectClose(got.values[0], wanted.values[0], {.relative = 3e-7f});
  }
}

// The cell of a recurrent net but for its product: h and c, and h beside x.
GraphMaker CellGraph() {
  GraphMaker g;
  g.Placeholder("gates", kFloat).Placeholder("c", kFloat);
  g.Placeholder("x", kFloat);
  g.Const("axis", Tensor::Scalar<int32_t>(1));
  g.Const("forget", Tensor::Scalar<float>(1.0f));
  g.Node("split", "Split", {"axis", "gates"})
      .Type("T", kFloat)
      .Int("num_split", 4);
  g.Math("f", "Add", {"split:2", "forget"}).Math("f_gate", "Sigmoid", {"f"});
  g.Math("kept", "Mul", {"c", "f_gate"}).Math("i", "Sigmoid", {"split"});
  g.Math("j", "Tanh", {"split:1"}).Math("added", "Mul", {"i", "j"});
  g.Math("new_c", "Add", {"kept", "added"}).Math("shown", "Tanh", {"new_c"});
  g.Math("o", "Sigmoid", {"split:3"}).Math("new_h", "Mul", {"shown", "o"});
  g.Node("joined", "ConcatV2", {"x", "new_h", "axis"})
      .Type("T", kFloat)
      .Int("N", 2);
  return g;
}

TEST_P(ElementFusionTest, ACellIsOneStep) {
  const GraphMaker g = CellGraph();
  for (int64_t rows : {1, 2, 300}) {
    for (int64_t units : {1, 5, 32, 100}) {
      const std::vector<Tensor> inputs = {
          Random({rows, 4 * units}), Random({rows, units}), Random({rows, 3})};
      SCOPED_TRACE(absl::StrCat(rows, " rows of ", units));
      ExpectSameAsReference(g, "gates,c,x", inputs, "new_c,new_h,joined");
    }
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result result,
      RunGraph(g, "gates,c,x", {Random({1, 8}), Random({1, 2}), Random({1, 3})},
               "new_c,joined", true));
  EXPECT_THAT(result.ops,
              ElementsAre("Split+Add+Sigmoid+Mul+Sigmoid+Tanh+Mul+Add+Tanh+"
                          "Sigmoid+Mul+ConcatV2"));
}

// As squeeze-and-excitation blocks scale each channel.
TEST_P(ElementFusionTest, FunctionsOfOneRowApplyToAllRows) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("gate", kFloat);
  g.Math("open", "Sigmoid", {"gate"}).Math("scaled", "Mul", {"open", "x"});
  g.Math("kept", "Add", {"scaled", "x"});
  for (int64_t rows : {1, 3, 9, 700}) {
    for (int64_t width : {1, 3, 16, 100, 512, 513, 2000}) {
      SCOPED_TRACE(absl::StrCat(rows, " rows of ", width));
      const std::vector<Tensor> inputs = {Random({1, 1, rows, width}),
                                          Random({1, 1, 1, width})};
      ExpectSameAsReference(g, "x,gate", inputs, "kept");
    }
  }
}

TEST_P(ElementFusionTest, APartThatIsFetchedIsCopied) {
  ExpectSameAsReference(CellGraph(), "gates,c,x",
                        {Random({3, 20}), Random({3, 5}), Random({3, 2})},
                        "split:1,new_h,f");
}

TEST_P(ElementFusionTest, OtherAxesAndBroadcastsTakeTheReferenceKernels) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("y", kFloat);
  g.Const("axis", Tensor::Scalar<int32_t>(0));
  g.Node("split", "Split", {"axis", "x"}).Type("T", kFloat).Int("num_split", 2);
  g.Math("a", "Mul", {"split", "y"}).Math("b", "Sigmoid", {"a"});
  ExpectSameAsReference(g, "x,y", {Random({4, 1, 3}), Random({1, 5, 1})}, "b");
  // One column goes with each row, one number with everything.
  GraphMaker h;
  h.Placeholder("x", kFloat).Placeholder("y", kFloat);
  h.Math("a", "Mul", {"x", "y"}).Math("b", "Tanh", {"a"});
  for (const Shape& shape : std::vector<Shape>{{4, 1},
                                               {1, 6},
                                               {6},
                                               {1},
                                               {},
                                               {1, 1},
                                               {4, 6},
                                               {1, 4, 6},
                                               {2, 1, 6}}) {
    SCOPED_TRACE(shape.ToString());
    ExpectSameAsReference(h, "x,y", {Random({4, 6}), Random(shape)}, "b");
    ExpectSameAsReference(h, "x,y", {Random(shape), Random({4, 6})}, "b");
  }
  ExpectSameAsReference(h, "x,y", {Random({}), Random({})}, "b");
  ExpectSameAsReference(h, "x,y", {Random({0, 6}), Random({6})}, "b");
}

TEST_P(ElementFusionTest, ShapesThatDoNotFitAreRefusedByTheNodeItself) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("y", kFloat);
  g.Math("product", "Mul", {"x", "y"}).Math("b", "Tanh", {"product"});
  EXPECT_THAT(
      RunGraph(g, "x,y", {Random({4, 6}), Random({5})}, "b", true),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'product'")));
}

TEST_P(ElementFusionTest, NoNumberAndInfinityComeThrough) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("y", kFloat);
  std::string fetches;
  for (const char* op : {"Sigmoid", "Tanh", "Relu", "Relu6", "Square"}) {
    const std::string name = absl::StrCat(op, "_out");
    g.Math(absl::StrCat(op, "_in"), "Neg", {"x"});
    g.Math(name, op, {absl::StrCat(op, "_in")});
    absl::StrAppend(&fetches, fetches.empty() ? "" : ",", name);
  }
  for (const char* op : {"Maximum", "Minimum", "Mul", "RealDiv"}) {
    const std::string name = absl::StrCat(op, "_out");
    g.Math(absl::StrCat(op, "_in"), "Neg", {"x"});
    g.Math(name, op, {absl::StrCat(op, "_in"), "y"});
    absl::StrAppend(&fetches, ",", name);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {nan,    inf,     -inf,   0.0f, -0.0f,
                                100.0f, -100.0f, 1e-30f, nan,  3.0f,
                                88.5f,  -88.5f,  1.0f};
  const std::vector<float> y = {1.0f, 1.0f, nan,  nan,  2.0f, inf,  -inf,
                                0.5f, nan,  0.5f, 1.0f, 1.0f, -1.0f};
  ExpectSameAsReference(g, "x,y",
                        {Tensor::FromValues<float>({1, 13}, x),
                         Tensor::FromValues<float>({1, 13}, y)},
                        fetches);
}

TEST_P(ElementFusionTest, SigmoidAndTanhAreAsGoodAsTheirType) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Math("same", "Neg", {"x"});
  g.Math("sigmoid", "Sigmoid", {"same"}).Math("tanh", "Tanh", {"same"});
  std::vector<float> x;
  for (float value = 1e-6f; value < 30; value *= 1.003f) {
    x.push_back(value);
    x.push_back(-value);
  }
  const int64_t count = static_cast<int64_t>(x.size());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result result,
      RunGraph(g, "x", {Tensor::FromValues<float>({1, count}, x)},
               "sigmoid,tanh", true));
  ASSERT_THAT(result.ops, ElementsAre("Neg+Sigmoid+Tanh"));
  for (int64_t i = 0; i < count; ++i) {
    const double sigmoid = 1 / (1 + std::exp(static_cast<double>(x[i])));
    const double tanh = std::tanh(-static_cast<double>(x[i]));
    ASSERT_NEAR(result.values[0].flat<float>()[i], sigmoid, 3e-7 * sigmoid);
    ASSERT_NEAR(result.values[1].flat<float>()[i], tanh, 3e-7 * std::abs(tanh));
  }
}

TEST_P(ElementFusionTest, ADeadOperandLeavesOtherOutputsAlive) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("taken", tensorflow::DT_BOOL);
  g.Node("switch", "Switch", {"x", "taken"}).Type("T", kFloat);
  g.Math("always", "Neg", {"x"}).Math("a", "Sigmoid", {"always"});
  g.Math("b", "Mul", {"a", "switch:1"}).Math("c", "Tanh", {"b"});
  g.Math("d", "Add", {"a", "x"});
  const Tensor x = Random({2, 9});
  SessionOptions options;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto both,
                               g.Session("x,taken", "a,c,d", options));
  OPTFARM_ASSERT_OK(both->Run({x, Tensor::Scalar<bool>(true)}).status());
  EXPECT_THAT(both->Run({x, Tensor::Scalar<bool>(false)}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'c")));
  // Somebody takes what is alive.
  g.Node("merged", "Merge", {"c", "d"}).Type("T", kFloat).Int("N", 2);
  for (bool taken : {true, false}) {
    ExpectSameAsReference(g, "x,taken", {x, Tensor::Scalar<bool>(taken)},
                          "a,d,merged");
  }
}

TEST_P(ElementFusionTest, AnInputsBufferIsTakenOverOnlyWhenItIsRead) {
  // "late" is read after the first output is made.
  GraphMaker g;
  g.Placeholder("x", kFloat);
  g.Math("early", "Neg", {"x"}).Math("late", "Square", {"x"});
  g.Node("p", "AddN", {"early", "x"}).Type("T", kFloat).Int("N", 2);
  g.Node("q", "AddN", {"late", "x"}).Type("T", kFloat).Int("N", 2);
  g.Math("first", "Add", {"p", "q"}).Math("second", "Mul", {"first", "q"});
  g.Math("third", "Sub", {"second", "p"});
  ExpectSameAsReference(g, "x", {Random({30, 100})}, "first,third");
}

TEST_P(ElementFusionTest, LoopsRunCellsAsOneStep) {
  // while (n < 5) { h = tanh(sigmoid(h) * 2 + h); s = s + h; n = n + 1 }
  GraphMaker g;
  g.Placeholder("x", kFloat).Placeholder("n0", kFloat);
  g.Enter("limit", "five", "loop", kFloat, true);
  g.Const("five", Tensor::Scalar<float>(5));
  g.LoopVariable("n", "n0", "loop", "cond", "n_next");
  g.LoopVariable("h", "x", "loop", "cond", "h_next");
  g.LoopVariable("s", "x", "loop", "cond", "s_next");
  g.Math("less", "Less", {"n/merge", "limit"});
  g.Node("cond", "LoopCond", {"less"});
  g.Node("n_body", "Identity", {"n/switch:1"}).Type("T", kFloat);
  g.Const("one", Tensor::Scalar<float>(1), {"^n_body"});
  g.Const("two", Tensor::Scalar<float>(2), {"^n_body"});
  g.Math("n_next", "Add", {"n_body", "one"});
  g.Math("gate", "Sigmoid", {"h/switch:1"})
      .Math("twice", "Mul", {"gate", "two"});
  g.Math("sum", "Add", {"twice", "h/switch:1"}).Math("h_next", "Tanh", {"sum"});
  g.Math("s_next", "Add", {"s/switch:1", "h_next"});
  for (float first : {0.0f, 4.0f, 9.0f}) {
    ExpectSameAsReference(g, "x,n0",
                          {Random({1, 20}), Tensor::Scalar<float>(first)},
                          "h/exit,s/exit");
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result result,
      RunGraph(g, "x,n0", {Random({1, 20}), Tensor::Scalar<float>(3)},
               "h/exit,s/exit", true));
  EXPECT_EQ(std::count(result.ops.begin(), result.ops.end(),
                       "Sigmoid+Mul+Add+Tanh+Add"),
            3);
  EXPECT_EQ(std::count(result.ops.begin(), result.ops.end(), "Const"), 0);
}

}  // namespace
}  // namespace optfarm::runtime
#endif
