// prune_channels: fewer channels, the same answers.

#include <algorithm>
#include <cmath>

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPrune[] = "prune_channels";

// Lets channel `to` of weights whose last axis are the channels be `factor`
// times channel `from`.
void SetMultiple(std::vector<float>* weights, size_t channels, size_t from,
                 size_t to, float factor) {
  for (size_t i = 0; i < weights->size(); i += channels) {
    (*weights)[i + to] = factor * (*weights)[i + from];
  }
}

// in [1,5,5,2] -> "first", 1x1 with 3 channels and "b1" -> "relu" of `op`
// -> "second", window x window -> "b2" -> "out", a Softplus.
struct TwoLayers {
  std::vector<float> weights = RandomValues(6, 1);
  std::vector<float> bias = RandomValues(3, 2);
  std::string op = "Relu";
  int64_t window = 1;

  GraphBuilder Builder() const {
    GraphBuilder b;
    b.Placeholder("in", {1, 5, 5, 2});
    b.Floats("w1", {1, 1, 2, 3}, weights);
    b.Floats("b1", {3}, bias);
    b.Conv2D("first", "in", "w1");
    b.Node("biased", "BiasAdd", {"first", "b1"}, FloatT());
    b.Node("relu", op, {"biased"}, FloatT());
    b.Floats("w2", {window, window, 3, 2},
             RandomValues(window * window * 6, 3));
    b.Floats("b2", {2}, {0.5f, -0.25f});
    b.Conv2D("second", "relu", "w2");
    b.Node("added", "BiasAdd", {"second", "b2"}, FloatT());
    b.Node("out", "Softplus", {"added"}, FloatT());
    return b;
  }
};

std::vector<float> Answer(const Graph& graph, const std::string& output,
                          const runtime::Shape& shape = {1, 5, 5, 2}) {
  return Run(graph, "in", Wave(shape), output);
}

// Prunes, and compares the answers before and after.
Graph Pruned(const GraphBuilder& builder, const std::string& output = "out",
             float tolerance = 1e-5f) {
  Graph graph = builder.Build();
  MustApply(&graph, kPrune, "in", output);
  EXPECT_THAT(Answer(graph, output),
              AllNear(Answer(builder.Build(), output), tolerance));
  return graph;
}

TEST(PruneChannelsTest, RemovesAChannelWithoutWeights) {
  TwoLayers layers;
  layers.weights = {1, 0, -2, 3, 0, 0.5f};
  layers.bias = {0.5f, -1, 0.25f};
  layers.window = 3;
  const Graph graph = Pruned(layers.Builder());
  EXPECT_THAT(DimsOf(graph, "w1"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(FloatsOf(graph, "w1"), ElementsAre(1, -2, 3, 0.5f));
  EXPECT_THAT(FloatsOf(graph, "b1"), ElementsAre(0.5f, 0.25f));
  EXPECT_THAT(DimsOf(graph, "w2"), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(FloatsOf(graph, "b2"), ElementsAre(0.5f, -0.25f));
}

TEST(PruneChannelsTest, FoldsAConstantChannelIntoTheNextBias) {
  TwoLayers layers;
  layers.weights = {1, 0, -2, 3, 0, 0.5f};
  layers.bias = {0.5f, 2, 0.25f};
  const std::vector<float> next = RandomValues(6, 3);
  const Graph graph = Pruned(layers.Builder());
  EXPECT_THAT(DimsOf(graph, "w2"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(
      FloatsOf(graph, "b2"),
      AllNear(std::vector<float>{0.5f + 2 * next[2], -0.25f + 2 * next[3]},
              1e-6f));
}

TEST(PruneChannelsTest, AConstantThatZerosSurroundStays) {
  TwoLayers layers;
  layers.weights = {1, 0, -2, 3, 0, 0.5f};
  layers.bias = {0.5f, 2, 0.25f};
  layers.window = 3;
  EXPECT_THAT(DimsOf(Pruned(layers.Builder()), "w1"), ElementsAre(1, 1, 2, 3));
  // Without zeros around the image it is the same everywhere.
  GraphBuilder valid = layers.Builder();
  for (tensorflow::NodeDef& node : *valid.mutable_def()->mutable_node()) {
    if (node.name() == "second") {
      (*node.mutable_attr())["padding"] = StringAttr("VALID");
    }
  }
  EXPECT_THAT(DimsOf(Pruned(valid), "w1"), ElementsAre(1, 1, 2, 2));
}

TEST(PruneChannelsTest, ANextLayerWithoutABiasGetsOne) {
  TwoLayers layers;
  layers.weights = {1, 0, -2, 3, 0, 0.5f};
  layers.bias = {0.5f, 2, 0.25f};
  GraphBuilder b = layers.Builder();
  b.Node("direct", "Softplus", {"second"}, FloatT());
  const Graph graph = Pruned(b, "out,direct");
  EXPECT_EQ(Show(graph, "second"), "BiasAdd(second/pruned, second/bias)");
  EXPECT_EQ(Show(graph, "direct"), "Softplus(second)");
  EXPECT_THAT(Answer(graph, "direct"),
              AllNear(Answer(b.Build(), "direct"), 1e-5f));
}

// in -> Relu6, which lies within 0 and 6 -> "first" of two channels -> `op`.
GraphBuilder Bounded(const std::string& op, const std::vector<float>& bias) {
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 2});
  b.Node("bounded", "Relu6", {"in"}, FloatT());
  b.Floats("w1", {1, 1, 2, 2}, {1, -1, 0.5f, -0.5f});
  b.Floats("b1", {2}, bias);
  b.Conv2D("first", "bounded", "w1");
  b.Node("biased", "Add", {"first", "b1"}, FloatT());
  b.Node("relu", op, {"biased"}, FloatT());
  b.Floats("w2", {1, 1, 2, 2}, {1, 2, 3, 4});
  b.Conv2D("second", "relu", "w2");
  b.Node("out", "Softplus", {"second"}, FloatT());
  return b;
}

TEST(PruneChannelsTest, FindsChannelsThatTheActivationAlwaysCutsOff) {
  const auto channels = [](const std::string& op, float bias) {
    return DimsOf(Pruned(Bounded(op, {0.25f, bias})), "w1").back();
  };
  // The second channel lies within bias - 9 and bias.
  EXPECT_EQ(channels("Relu", -0.1f), 1);
  EXPECT_EQ(channels("Relu", 0.1f), 2);
  EXPECT_EQ(channels("Relu6", 15), 1);
  EXPECT_EQ(channels("Relu", 15), 2);
}

// in of 4 channels -> "first" -> Relu -> "second".
GraphBuilder Grouped(const std::vector<int64_t>& first,
                     const std::vector<float>& weights,
                     const std::vector<int64_t>& second) {
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 4});
  b.Floats("w1", first, weights);
  b.Conv2D("first", "in", "w1");
  b.Node("relu", "Relu", {"first"}, FloatT());
  b.Floats("w2", second, RandomValues(second[2] * second[3], 3));
  b.Conv2D("second", "relu", "w2");
  b.Node("out", "Softplus", {"second"}, FloatT());
  return b;
}

TEST(PruneChannelsTest, LeavesTheChannelsOfGroupsAlone) {
  const auto expect_same = [](const GraphBuilder& b) {
    Graph graph = b.Build();
    EXPECT_EQ(MustApply(&graph, kPrune, "in", "out").nodes_changed, 0);
    EXPECT_EQ(Answer(graph, "out", {1, 5, 5, 4}),
              Answer(b.Build(), "out", {1, 5, 5, 4}));
  };
  // Channels 0 and 2, as 1 and 3, have equal weights for other inputs.
  expect_same(Grouped({1, 1, 2, 4}, {1, 2, 1, 2, 3, -1, 3, -1}, {1, 1, 4, 2}));
  // What reads them has groups: the second channel is always zero.
  expect_same(Grouped({1, 1, 4, 4},
                      {1, 0, 2, 3, 2, 0, 1, 1, -1, 0, 2, 4, 1, 0, -1, 0},
                      {1, 1, 2, 2}));
}

TEST(PruneChannelsTest, RemovesWhatTheNextLayersDoNotUse) {
  GraphBuilder b = TwoLayers().Builder();
  for (tensorflow::NodeDef& node : *b.mutable_def()->mutable_node()) {
    if (node.name() != "w2") continue;
    auto* tensor = (*node.mutable_attr())["value"].mutable_tensor();
    tensor->set_float_val(0, 0);
    tensor->set_float_val(1, 0);
  }
  EXPECT_THAT(DimsOf(Pruned(b), "w1"), ElementsAre(1, 1, 2, 2));
}

TEST(PruneChannelsTest, OneChannelStaysOfALayerThatGivesConstants) {
  TwoLayers layers;
  layers.weights.assign(6, 0);
  EXPECT_THAT(DimsOf(Pruned(layers.Builder()), "w1"), ElementsAre(1, 1, 2, 1));
}

TEST(PruneChannelsTest, MergesMultiplesThroughRelu) {
  TwoLayers layers;
  SetMultiple(&layers.weights, 3, 2, 0, 0.5f);
  layers.bias[0] = 0.5f * layers.bias[2];
  layers.window = 3;
  const Graph graph = Pruned(layers.Builder());
  // The larger one stays.
  EXPECT_THAT(FloatsOf(graph, "b1"),
              ElementsAre(layers.bias[1], layers.bias[2]));
  const std::vector<float> before = RandomValues(54, 3);
  EXPECT_FLOAT_EQ(FloatsOf(graph, "w2")[2], before[4] + 0.5f * before[0]);
}

TEST(PruneChannelsTest, MergesOnlyEqualsThroughRelu6) {
  TwoLayers layers;
  layers.op = "Relu6";
  SetMultiple(&layers.weights, 3, 2, 0, 0.5f);
  layers.bias[0] = 0.5f * layers.bias[2];
  EXPECT_EQ(DimsOf(Pruned(layers.Builder()), "w1").back(), 3);
  SetMultiple(&layers.weights, 3, 2, 0, 1);
  layers.bias[0] = layers.bias[2];
  EXPECT_EQ(DimsOf(Pruned(layers.Builder()), "w1").back(), 2);
}

TEST(PruneChannelsTest, KeepsMultiplesThatDifferInBiasOrSign) {
  TwoLayers layers;
  SetMultiple(&layers.weights, 3, 2, 0, 0.5f);
  EXPECT_EQ(DimsOf(Pruned(layers.Builder()), "w1").back(), 3);
  SetMultiple(&layers.weights, 3, 2, 0, -0.5f);
  layers.bias[0] = -0.5f * layers.bias[2];
  EXPECT_EQ(DimsOf(Pruned(layers.Builder()), "w1").back(), 3);
}

TEST(PruneChannelsTest, WithoutAnActivationBiasesMayDiffer) {
  TwoLayers layers;
  layers.op = "Identity";
  SetMultiple(&layers.weights, 3, 2, 0, 0.5f);
  EXPECT_EQ(DimsOf(Pruned(layers.Builder()), "w1").back(), 2);
}

// in -> "first" of 3 channels -> FusedBatchNorm -> Relu6 -> depthwise 3x3 ->
// BiasAdd -> Relu6 -> "second" 1x1.
GraphBuilder Separable(const std::vector<float>& filters,
                       const std::vector<float>& bias,
                       const std::vector<float>& weights,
                       const std::vector<float>& norm) {
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 2});
  b.Floats("w1", {1, 1, 2, 3}, weights);
  b.Conv2D("first", "in", "w1");
  b.Floats("gamma", {3}, norm);
  b.Floats("variance", {3}, norm);
  b.Node("norm", "FusedBatchNorm",
         {"first", "gamma", "gamma", "gamma", "variance"},
         FloatT({{"epsilon", FloatAttr(0.001f)},
                 {"is_training", BoolAttr(false)}}));
  b.Node("relu", "Relu6", {"norm"}, FloatT());
  b.Floats("filters", {3, 3, 3, 1}, filters);
  b.Conv2D("depthwise", "relu", "filters").set_op("DepthwiseConv2dNative");
  b.Floats("bias", {3}, bias);
  b.Node("biased", "BiasAdd", {"depthwise", "bias"}, FloatT());
  b.Node("relu2", "Relu6", {"biased"}, FloatT());
  b.Floats("w2", {1, 1, 3, 2}, RandomValues(6, 7));
  b.Conv2D("second", "relu2", "w2");
  b.Node("out", "Softplus", {"second"}, FloatT());
  return b;
}

TEST(PruneChannelsTest, ADeadDepthwiseFilterTakesItsChannelAlong) {
  std::vector<float> filters = RandomValues(27, 4);
  for (size_t i = 1; i < filters.size(); i += 3) filters[i] = 0;
  const Graph graph = Pruned(Separable(filters, {0.1f, 1.5f, -0.2f},
                                       RandomValues(6, 5), {0.5f, 1, 0.75f}));
  EXPECT_THAT(DimsOf(graph, "w1"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(DimsOf(graph, "filters"), ElementsAre(3, 3, 2, 1));
  // Read three times, and cut once for each.
  EXPECT_THAT(FloatsOf(graph, "gamma"), ElementsAre(0.5f, 0.75f));
  EXPECT_THAT(FloatsOf(graph, "variance"), ElementsAre(0.5f, 0.75f));
  EXPECT_THAT(DimsOf(graph, "w2"), ElementsAre(1, 1, 2, 2));
}

TEST(PruneChannelsTest, MergesEqualsThroughADepthwiseLayer) {
  std::vector<float> filters = RandomValues(27, 4),
                     weights = RandomValues(6, 5);
  SetMultiple(&weights, 3, 0, 1, 1);
  const std::vector<float> norm = {0.5f, 0.5f, 0.75f};
  EXPECT_EQ(
      DimsOf(Pruned(Separable(filters, {1, 1, 0}, weights, norm)), "w1").back(),
      3);
  SetMultiple(&filters, 3, 0, 1, 1);
  EXPECT_EQ(
      DimsOf(Pruned(Separable(filters, {1, 1, 0}, weights, norm)), "w1").back(),
      2);
}

TEST(PruneChannelsTest, FollowsChannelsIntoRowsOfAMatrix) {
  for (const bool is_turned : {false, true}) {
    GraphBuilder b;
    b.Placeholder("in", {1, 5, 5, 2});
    b.Floats("w1", {1, 1, 2, 3}, {1, 0, 2, -1, 0, 0.5f});
    b.Conv2D("first", "in", "w1");
    b.Floats("b1", {3}, {0.25f, 0.75f, 0.5f});
    b.Node("biased", "BiasAdd", {"first", "b1"}, FloatT());
    b.Node("pool", "MaxPool", {"biased"},
           FloatT({{"ksize", IntsAttr({1, 2, 2, 1})},
                   {"strides", IntsAttr({1, 2, 2, 1})},
                   {"padding", StringAttr("SAME")}}));
    b.Ints("shape", {2}, {-1, 27});
    b.Node("flat", "Reshape", {"pool", "shape"}, FloatT());
    b.Floats(
        "w2",
        is_turned ? std::vector<int64_t>{4, 27} : std::vector<int64_t>{27, 4},
        RandomValues(108, 9));
    b.Node("second", "MatMul", {"flat", "w2"},
           FloatT({{"transpose_b", BoolAttr(is_turned)}}));
    // A second pair behind it: the first channel is four times the last.
    b.Floats("w3", {4, 3}, {4, 1, 1, 0, 2, 0, 8, 3, 2, -4, 1, -1});
    b.Node("third", "MatMul", {"second", "w3"}, FloatT());
    b.Floats("w4", {3, 2}, RandomValues(6, 10));
    b.Node("fourth", "MatMul", {"third", "w4"}, FloatT());
    b.Node("out", "Softplus", {"fourth"}, FloatT());
    const Graph graph = Pruned(b, "out", 1e-4f);
    EXPECT_EQ(DimsOf(graph, "w1").back(), 2);
    EXPECT_THAT(DimsOf(graph, "w2"),
                is_turned ? ElementsAre(4, 18) : ElementsAre(18, 4));
    EXPECT_THAT(DimsOf(graph, "w3"), ElementsAre(4, 2));
    EXPECT_THAT(DimsOf(graph, "w4"), ElementsAre(2, 2));
  }
}

// in [1,3,1,2] -> "first" of 3 channels, the second of them zero -> Relu ->
// ReshapeCopy to `shape` -> "second", a MatMul or a Conv2D.
GraphBuilder Reshaped(const std::vector<int64_t>& shape, int64_t inputs) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 1, 2});
  b.Floats("w1", {1, 1, 2, 3}, {1, 0, 2, 3, 0, -1});
  b.Conv2D("first", "in", "w1");
  b.Node("relu", "Relu", {"first"}, FloatT());
  *b.mutable_def()->add_node() = MakeConst(
      "shape",
      Tensor::FromValues<int64_t>({static_cast<int64_t>(shape.size())}, shape));
  b.Node("flat", "ReshapeCopy", {"relu", "shape"}, FloatT());
  const bool is_image = shape.size() == 4;
  b.Floats("w2",
           is_image ? std::vector<int64_t>{1, 1, inputs, 2}
                    : std::vector<int64_t>{inputs, 2},
           RandomValues(inputs * 2, 3));
  if (is_image) {
    b.Conv2D("second", "flat", "w2");
  } else {
    b.Node("second", "MatMul", {"flat", "w2"}, FloatT());
  }
  b.Node("out", "Softplus", {"second"}, FloatT());
  return b;
}

TEST(PruneChannelsTest, FollowsChannelsThroughReshapesOfOnnx) {
  struct Case {
    std::vector<int64_t> shape;
    int64_t inputs;
    int64_t channels;
  };
  for (const auto& [shape, inputs, channels] :
       {Case{{1, 9}, 9, 2}, Case{{1, -1}, 9, 2}, Case{{-1, 9}, 9, 2},
        Case{{0, 9}, 9, 2}, Case{{0, -1}, 9, 2}, Case{{1, 1, 3, 3}, 3, 2},
        Case{{0, 1, -1, 0}, 3, 2},
        // As many as the image is high.
        Case{{-1, 0}, 3, 3}}) {
    SCOPED_TRACE(absl::StrJoin(shape, ","));
    const GraphBuilder b = Reshaped(shape, inputs);
    Graph graph = b.Build();
    MustApply(&graph, kPrune, "in", "out");
    EXPECT_EQ(DimsOf(graph, "w1").back(), channels);
    EXPECT_THAT(Answer(graph, "out", {1, 3, 1, 2}),
                AllNear(Answer(b.Build(), "out", {1, 3, 1, 2}), 1e-5f));
  }
}

TEST(PruneChannelsTest, LeavesChannelsOfComputedShapesAlone) {
  GraphBuilder b = Reshaped({1, 9}, 9);
  b.Node("computed", "Identity", {"shape"},
         {{"T", TypeAttr(tensorflow::DT_INT64)}});
  for (tensorflow::NodeDef& node : *b.mutable_def()->mutable_node()) {
    if (node.name() == "flat") node.set_input(1, "computed");
  }
  Graph graph = b.Build();
  EXPECT_THAT(
      Skipped(MustApply(&graph, kPrune, "in", "out")),
      Contains("first: node 'flat' (ReshapeCopy) has a computed shape"));
  // A shape that is fed is not known either.
  Graph fed = Reshaped({1, 9}, 9).Build();
  EXPECT_EQ(MustApply(&fed, kPrune, "in,shape", "out").nodes_changed, 0);
}

TEST(PruneChannelsTest, KnowsItsChannelsAmongOthersInAJoin) {
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 2});
  b.Floats("a", {1, 1, 2, 2}, RandomValues(4, 1));
  b.Conv2D("left", "in", "a");
  b.Floats("b", {1, 1, 2, 3}, {1, 0, 2, -1, 0, 0.5f});
  b.Conv2D("right", "in", "b");
  b.Ints("axis", {}, {3});
  b.Node("both", "ConcatV2", {"left", "right", "axis"},
         FloatT({{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
  b.Floats("shared", {5}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f});
  b.Node("biased", "BiasAdd", {"both", "shared"}, FloatT());
  b.Node("relu", "Relu", {"biased"}, FloatT());
  b.Floats("w2", {1, 1, 5, 2}, RandomValues(10, 3));
  b.Conv2D("second", "relu", "w2");
  // The bias has another reader, which keeps all of it.
  b.Node("bias", "Softplus", {"shared"}, FloatT());
  b.Node("out", "Softplus", {"second"}, FloatT());
  const Graph graph = Pruned(b, "out,bias");
  EXPECT_THAT(DimsOf(graph, "a"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(DimsOf(graph, "b"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(FloatsOf(graph, "shared/pruned"),
              ElementsAre(0.1f, 0.2f, 0.3f, 0.5f));
  EXPECT_EQ(FloatsOf(graph, "shared").size(), 5u);
  EXPECT_THAT(DimsOf(graph, "w2"), ElementsAre(1, 1, 4, 2));
}

TEST(PruneChannelsTest, LeavesChannelsThatOthersReadToo) {
  TwoLayers layers;
  layers.weights = {1, 0, -2, 3, 0, 0.5f};
  GraphBuilder b = layers.Builder();
  b.Floats("w3", {1, 1, 2, 3}, RandomValues(6, 5));
  b.Conv2D("third", "out", "w3");
  b.Node("sum", "Add", {"relu", "third"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report = MustApply(&graph, kPrune, "in", "sum");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(Skipped(report),
              ElementsAre("first: node 'sum' (Add) reads its channels",
                          "third: node 'sum' (Add) reads its channels"));
  // Whoever asks for a tensor wants all of it.
  Graph asked = layers.Builder().Build();
  EXPECT_THAT(
      Skipped(MustApply(&asked, kPrune, "in", "out,relu")),
      ElementsAre(
          "first: node 'relu' (Relu) is an input or output of the graph",
          "second: node 'out' (Softplus) is an input or output of the graph"));
  EXPECT_EQ(DimsOf(asked, "w1").back(), 3);
}

// "out" when a Const is fed besides "in".
std::vector<float> AnswerFed(const Graph& graph, const std::string& constant,
                             const Tensor& value) {
  const auto session = runtime::Session::Create(
      graph, graph::ParseTensorNames("in," + constant).value(),
      graph::ParseTensorNames("out").value());
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return {};
  const auto outputs = (*session)->Run({Wave({1, 5, 5, 2}), value});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  const absl::Span<const float> values = (*outputs)[0].flat<float>();
  return {values.begin(), values.end()};
}

TEST(PruneChannelsTest, DoesNotRelyOnConstantsThatAreFed) {
  TwoLayers layers;
  layers.weights = {1, 0, -2, 3, 0, 0.5f};
  layers.bias = {0.5f, 2, 0.25f};
  const GraphBuilder b = layers.Builder();
  Graph graph = b.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, kPrune, "in,b1", "out")),
              Contains("first: node 'biased' (BiasAdd) reads an input of the "
                       "graph"));
  EXPECT_EQ(DimsOf(graph, "w1").back(), 3);
  // What a removed channel adds goes to a bias of its own.
  graph = b.Build();
  MustApply(&graph, kPrune, "in,b2", "out");
  EXPECT_EQ(DimsOf(graph, "w1").back(), 2);
  EXPECT_EQ(Show(graph, "second"), "BiasAdd(second/pruned, second/bias)");
  const Tensor fed = Tensor::FromValues<float>({2}, {7, -3});
  EXPECT_THAT(AnswerFed(graph, "b2", fed),
              AllNear(AnswerFed(b.Build(), "b2", fed), 1e-5f));
}

TEST(PruneChannelsTest, BoundsDoNotComeFromConstantsThatAreFed) {
  for (const bool is_product : {false, true}) {
    GraphBuilder b;
    b.Placeholder("in", {1, 2});
    b.Floats("fed",
             is_product ? std::vector<int64_t>{2, 2} : std::vector<int64_t>{2},
             std::vector<float>(is_product ? 4 : 2));
    b.Node("data", is_product ? "MatMul" : "Mul", {"in", "fed"}, FloatT());
    b.Floats("w1", {2, 2}, {1, -1, 0.5f, 2});
    b.Node("first", "MatMul", {"data", "w1"}, FloatT());
    b.Node("relu", "Relu", {"first"}, FloatT());
    b.Floats("w2", {2, 2}, {1, 2, 3, 4});
    b.Node("second", "MatMul", {"relu", "w2"}, FloatT());
    b.Node("out", "Softplus", {"second"}, FloatT());
    Graph graph = b.Build();
    MustApply(&graph, kPrune, "in,fed", "out");
    EXPECT_EQ(DimsOf(graph, "w1").back(), 2) << is_product;
    // What is not fed is what it is.
    MustApply(&graph, kPrune, "in", "out");
    EXPECT_EQ(DimsOf(graph, "w1").back(), 1) << is_product;
  }
}

TEST(PruneChannelsTest, ABiasOfRowsIsNoneOfChannels) {
  TwoLayers layers;
  layers.weights = {1, 0, -2, 3, 0, 0.5f};
  layers.bias = {0.5f, 2, 0.25f};
  GraphBuilder b = layers.Builder();
  b.Floats("w3", {1, 1, 3, 5}, RandomValues(15, 4));
  b.Conv2D("third", "relu", "w3");
  b.Floats("b3", {5}, RandomValues(5, 6));
  b.Node("by_row", "BiasAdd", {"third", "b3"},
         FloatT({{"data_format", StringAttr("NCHW")}}));
  b.Node("rows", "Softplus", {"by_row"}, FloatT());
  const Graph graph = Pruned(b, "out,rows");
  EXPECT_EQ(DimsOf(graph, "w3")[2], 2);
  EXPECT_EQ(FloatsOf(graph, "b3"), RandomValues(5, 6));
  EXPECT_THAT(Answer(graph, "rows"), AllNear(Answer(b.Build(), "rows"), 1e-5f));
}

TEST(PruneChannelsTest, KeepsAMultipleOfChannels) {
  // Channels 1 and 3 are zero, 4 is channel 0.
  std::vector<float> weights = RandomValues(12, 1);
  SetMultiple(&weights, 6, 0, 1, 0);
  SetMultiple(&weights, 6, 0, 3, 0);
  SetMultiple(&weights, 6, 0, 4, 1);
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 2});
  b.Floats("w1", {1, 1, 2, 6}, weights);
  b.Conv2D("first", "in", "w1");
  b.Floats("w2", {3, 3, 6, 2}, RandomValues(108, 3));
  b.Conv2D("second", "first", "w2");
  b.Node("out", "Softplus", {"second"}, FloatT());
  for (const auto& [multiple, channels] :
       {std::pair(1, 3), std::pair(2, 4), std::pair(3, 3), std::pair(4, 4),
        std::pair(5, 5), std::pair(6, 6), std::pair(8, 6)}) {
    Graph graph = b.Build();
    MustApply(&graph, absl::StrCat("prune_channels(multiple=", multiple, ")"),
              "in", "out");
    EXPECT_EQ(DimsOf(graph, "w1").back(), channels) << multiple;
    EXPECT_THAT(Answer(graph, "out"), AllNear(Answer(b.Build(), "out"), 1e-5f));
  }
  Graph graph = b.Build();
  EXPECT_THAT(Apply(&graph, "prune_channels(multiple=0)", "in", "out").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'multiple' is 0, not within 1 and 1024")));
}

// --- Within a tolerance ------------------------------------------------------

// Largest error of the answer, over its largest value.
double ErrorOf(const GraphBuilder& builder, const Graph& graph) {
  const std::vector<float> wanted = Answer(builder.Build(), "added");
  const std::vector<float> found = Answer(graph, "added");
  double error = 0, largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    error = std::max<double>(error, std::abs(wanted[i] - found[i]));
    largest = std::max<double>(largest, std::abs(wanted[i]));
  }
  return error / largest;
}

TEST(PruneChannelsTest, MergesNearMultiplesWithinTheTolerance) {
  TwoLayers layers;
  SetMultiple(&layers.weights, 3, 2, 0, 0.5f);
  layers.bias[0] = 0.5f * layers.bias[2];
  layers.weights[0] *= 1.02f;
  const GraphBuilder b = layers.Builder();
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kPrune, "in", "out").nodes_changed, 0);
  MustApply(&graph, "prune_channels(tolerance=0.03)", "in", "out");
  EXPECT_EQ(DimsOf(graph, "w1").back(), 2);
  EXPECT_GT(ErrorOf(b, graph), 0);
  EXPECT_LT(ErrorOf(b, graph), 0.03);
}

TEST(PruneChannelsTest, NearConstantsBecomeTheMiddleOfTheirRange) {
  // The second channel lies within -0.9 and 0.1 of a bias, and is at most 0.1
  // after Relu; the first goes up to 6.
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 2});
  b.Node("bounded", "Relu6", {"in"}, FloatT());
  b.Floats("w1", {1, 1, 2, 2}, {1, -0.1f, 0.5f, -0.05f});
  b.Floats("b1", {2}, {0.25f, 0.1f});
  b.Conv2D("first", "bounded", "w1");
  b.Node("biased", "BiasAdd", {"first", "b1"}, FloatT());
  b.Node("relu", "Relu6", {"biased"}, FloatT());
  b.Floats("w2", {1, 1, 2, 2}, {1, 2, 3, 4});
  b.Floats("b2", {2}, {1, 2});
  b.Conv2D("second", "relu", "w2");
  b.Node("added", "BiasAdd", {"second", "b2"}, FloatT());
  b.Node("out", "Softplus", {"added"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kPrune, "in", "out").nodes_changed, 0);
  MustApply(&graph, "prune_channels(tolerance=0.02)", "in", "out");
  EXPECT_THAT(FloatsOf(graph, "b2"),
              AllNear(std::vector<float>{1.15f, 2.2f}, 1e-6f));
  // Half of the range, times the largest weight.
  EXPECT_THAT(Answer(graph, "added"),
              AllNear(Answer(b.Build(), "added"), 0.05f * 4 + 1e-5f));
}

TEST(PruneChannelsTest, RefusesToleranceOutOfRange) {
  for (const char* tolerance : {"-0.1", "1", "2"}) {
    Graph graph = TwoLayers().Builder().Build();
    EXPECT_THAT(
        Apply(&graph, absl::StrCat("prune_channels(tolerance=", tolerance, ")"),
              "in", "out")
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("not at least 0 and below 1")));
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
