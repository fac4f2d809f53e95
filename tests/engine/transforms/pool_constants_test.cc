#include "tests/engine/transforms/layer_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kHalves[] = "pool_constants(as_half=true)";

// in * a + b with numbers.
GraphBuilder Line(float a, float b) {
  GraphBuilder builder;
  builder.Placeholder("in", {2, 1});
  builder.Floats("a", {}, {a});
  builder.Floats("b", {}, {b});
  builder.Node("mul", "Mul", {"in", "a"}, FloatT());
  builder.Node("out", "Add", {"mul", "b"}, FloatT());
  return builder;
}

void AddNorm(const std::string& name, const std::string& a,
             const std::string& b, GraphBuilder* builder) {
  builder->Node(name, "FusedBatchNorm", {"in", a, b, "mean", "variance"},
                FloatT({{"is_training", BoolAttr(false)}}));
}

// A batch norm, which multiplies its two pixels by a and adds b.
GraphBuilder Norm(const std::vector<float>& a, const std::vector<float>& b) {
  GraphBuilder builder;
  const auto channels = static_cast<int64_t>(a.size());
  builder.Placeholder("in", {1, 1, 2, channels});
  builder.Floats("a", {channels}, a);
  builder.Floats("b", {channels}, b);
  builder.Floats("mean", {channels}, {0});
  builder.Floats("variance", {channels}, {1});
  AddNorm("out", "a", "b", &builder);
  return builder;
}

// Another one of the negatives of a and b; "end" is the sum.
void AddNegative(GraphBuilder* b) {
  b->Node("minus_a", "Neg", {"a"}, FloatT());
  b->Node("minus_b", "Neg", {"b"}, FloatT());
  AddNorm("less", "minus_a", "minus_b", b);
  b->Node("end", "Add", {"out", "less"}, FloatT());
}

Tensor TwoPixels(int64_t channels) {
  return Wave(*runtime::Shape::FromDims({1, 1, 2, channels}));
}

TEST(PoolConstantsTest, NumbersShareOneConstant) {
  Graph graph = Line(3, 0.1f).Build();
  const Tensor in = Wave({2, 1});
  const std::vector<float> before = Answer(graph, in, "out");
  EXPECT_EQ(MustApply(&graph, kHalves, "in", "out").nodes_changed, 2);
  EXPECT_EQ(Show(graph, "mul"), "Mul(in, pool/numbers)");
  EXPECT_EQ(Show(graph, "out"), "Add(mul, pool/numbers:1)");
  EXPECT_EQ(Show(graph, "pool/numbers"), "Unpack(pool/values)");
  EXPECT_THAT(FloatsOf(graph, "pool/values"), ElementsAre(3, 0.1f));
  EXPECT_THAT(Answer(graph, in, "out"), ElementsAreArray(before));
}

TEST(PoolConstantsTest, VectorsAreExactUnlessHalvesAreAskedFor) {
  const Tensor in = TwoPixels(3);
  const auto norm = Norm({1, -0.3f, 100.7f}, {0.1f, 2, 0});
  const std::vector<float> before = Answer(norm.Build(), in, "out");
  Graph exact = norm.Build();
  MustApply(&exact, "pool_constants", "in", "out");
  EXPECT_EQ(Show(exact, "out"),
            "FusedBatchNorm(in, pool/vectors, pool/vectors:1, mean, variance)");
  EXPECT_EQ(Show(exact, "pool/vectors"),
            "SplitV(pool/values, pool/sizes, pool/dimension)");
  EXPECT_THAT(Answer(exact, in, "out"), ElementsAreArray(before));
  Graph halves = norm.Build();
  MustApply(&halves, kHalves, "in", "out");
  EXPECT_EQ(Show(halves, "pool/values"), "Cast(pool/halves)");
  EXPECT_THAT(Answer(halves, in, "out"), Not(ElementsAreArray(before)));
  EXPECT_THAT(Answer(halves, in, "out"), AllNear(before, 101.0f / 2048));
}

TEST(PoolConstantsTest, ValuesThatNoHalfIsCloseToStayFloats) {
  const Tensor in = TwoPixels(2);
  const auto norm = Norm({1e30f, 2}, {70000, 1});
  Graph graph = norm.Build();
  MustApply(&graph, kHalves, "in", "out");
  EXPECT_THAT(Ops(graph), Not(Contains("Cast")));
  EXPECT_THAT(Answer(graph, in, "out"),
              ElementsAreArray(Answer(norm.Build(), in, "out")));
}

TEST(PoolConstantsTest, WhatOthersThanLayersReadStaysExact) {
  GraphBuilder b = Norm({1.1f, 2.2f}, {3.3f, 4.4f});
  b.Node("limits", "Mul", {"a", "b"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, kHalves, "in", "out,limits");
  EXPECT_THAT(Ops(graph), Contains("SplitV"));
  EXPECT_THAT(Ops(graph), Not(Contains("Cast")));
}

// A tiny value beside a large one may become nothing, unless it is a range.
TEST(PoolConstantsTest, SmallRangesKeepTheirPrecision) {
  for (const bool is_range : {false, true}) {
    GraphBuilder b = Norm({1, 1e-9f}, {2, 1e-9f});
    if (is_range) AddNegative(&b);
    Graph graph = b.Build();
    MustApply(&graph, kHalves, "in", is_range ? "end" : "out");
    EXPECT_EQ(graph.Find("pool/halves") == graph::kNoNode, is_range);
  }
}

TEST(PoolConstantsTest, NegativesAreTakenOfAllAtOnce) {
  GraphBuilder b = Norm({1, 2}, {3, 4});
  AddNegative(&b);
  const Tensor in = TwoPixels(2);
  Graph graph = b.Build();
  MustApply(&graph, kHalves, "in", "end");
  EXPECT_EQ(
      Show(graph, "less"),
      "FusedBatchNorm(in, pool/vectors_1, pool/vectors_1:1, mean, variance)");
  EXPECT_EQ(Show(graph, "pool/vectors_1"),
            "SplitV(pool/negative, pool/sizes, pool/dimension)");
  EXPECT_THAT(Answer(graph, in, "end"),
              ElementsAreArray(Answer(b.Build(), in, "end")));
}

TEST(PoolConstantsTest, WhatIsNoSmallConstantOfItsOwnStays) {
  GraphBuilder b = Norm({1, 2}, {3, 4});
  b.Floats("same", {2}, {5});
  b.Floats("matrix", {1, 2}, {5, 6});
  b.Floats("waiting", {2}, {7, 8});
  b.Floats("output", {2}, {9, 10});
  b.Floats("long", {3}, {1, 2, 3});
  b.Node("read_long", "Neg", {"long"}, FloatT());
  for (const char* name : {"same", "matrix", "waiting", "output"}) {
    b.Node(std::string("read_") + name, "Mul", {"in", name}, FloatT());
  }
  Graph graph = b.Build();
  graph.AddControlInput(graph.Find("waiting"), graph.Find("in"));
  MustApply(&graph, "pool_constants(maximum_size=2)", "in",
            "out,output,read_same,read_matrix,read_waiting,read_long");
  EXPECT_THAT(Names(graph),
              IsSupersetOf({"same", "matrix", "waiting", "output", "long"}));
  EXPECT_THAT(Names(graph), Not(Contains("a")));
}

TEST(PoolConstantsTest, OneConstantIsNoPool) {
  GraphBuilder b;
  b.Placeholder("in", {2});
  b.Floats("a", {2}, {1, 2});
  b.Node("out", "Mul", {"in", "a"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kHalves, "in", "out").nodes_changed, 0);
  EXPECT_EQ(Show(graph, "out"), "Mul(in, a)");
}

// What 8-bit layers compute with comes out of pools before the first run.
TEST(PoolConstantsTest, LayersRunAsFusedAsBefore) {
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 3});
  std::string last = "in";
  for (const std::string name : {"one", "two"}) {
    b.Floats(name + "/w", {1, 1, 3, 3}, UnlikeChannels(9, 3));
    b.Floats(name + "/b", {3}, {0.5f, -0.25f, 2});
    b.Conv2D(name, last, name + "/w");
    b.Node(name + "/sum", "BiasAdd", {name, name + "/b"}, FloatT());
    b.Node(name + "/relu", "Relu", {name + "/sum"}, FloatT());
    last = name + "/relu";
  }
  const Tensor in = Wave({1, 5, 5, 3});
  Graph graph = b.Build();
  MustApply(&graph, kLayers, "in", last);
  Freeze(&graph, in);
  MustApply(&graph, kFuse, "in", last);
  const auto steps = [&] {
    const graph::TensorName input = {"in", 0}, output = {last, 0};
    const auto session = runtime::Session::Create(
        graph, absl::MakeConstSpan(&input, 1), absl::MakeConstSpan(&output, 1));
    EXPECT_TRUE(session.ok()) << session.status();
    runtime::RunTrace trace;
    EXPECT_TRUE((*session)->Run({in}, &trace).ok());
    return trace.nodes.size();
  };
  const size_t before = steps();
  const std::vector<float> wanted = Answer(graph, in, last);
  MustApply(&graph, "pool_constants sort_by_execution_order", "in", last);
  EXPECT_THAT(Ops(graph), Contains("SplitV"));
  EXPECT_EQ(steps(), before);
  EXPECT_THAT(Answer(graph, in, last), ElementsAreArray(wanted));
}

}  // namespace
}  // namespace optfarm::transforms::testing
