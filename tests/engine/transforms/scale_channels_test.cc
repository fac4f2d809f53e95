// scale_channels: larger quantized values for channels that use few of them.

#include "engine/transforms/folding/scale_channels.h"

#include <algorithm>
#include <cmath>

#include "engine/transforms/freezing/freeze_ranges.h"
#include "engine/transforms/quantizing/expanded_layers.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// in -> 1x1 convolution with Relu6 -> depthwise -> 1x1 convolution; `others`
// adds a reader of the first layer.
GraphBuilder Floats(bool others) {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 4, 2});
  b.Floats("w1", {1, 1, 2, 3}, {1, 0.01f, 2, 0.5f, 0.02f, 1});
  b.Floats("b1", {3}, {1, 0.01f, 1});
  b.Conv2D("a", "in", "w1");
  b.Node("add", "BiasAdd", {"a", "b1"}, FloatT());
  b.Node("first", "Relu6", {"add"}, FloatT());
  b.Floats("w2", {3, 3, 3, 1}, WaveValues(27));
  b.Conv2D("second", "first", "w2").set_op("DepthwiseConv2dNative");
  b.Floats("w3", {1, 1, 3, 2}, {1, 2, 300, -200, 3, 1});
  b.Conv2D("out", "second", "w3");
  if (others) b.Node("more", "Softplus", {"first"}, FloatT());
  return b;
}

Graph Net(bool others, const std::string& output) {
  Graph graph = Floats(others).Build();
  MustApply(&graph, "quantize_layers strip_unused_nodes", "in", output);
  RangeLog log;
  for (graph::NodeId id : graph.Ids()) {
    const std::string& name = graph.node(id).name();
    if (!graph.node(id).op().starts_with("RequantizationRange")) continue;
    const Tensor in = Wave({1, 4, 4, 2});
    log[name] = {
        {Run(graph, "in", in, name)[0], Run(graph, "in", in, name + ":1")[0]}};
  }
  EXPECT_TRUE(FreezeRanges(&graph, log, {0, 0}).ok());
  MustApply(&graph, "fuse_requantization strip_unused_nodes", "in", output);
  return graph;
}

// Run, by a name that fixtures do not have.
std::vector<float> Answer(const Graph& graph, const Tensor& in) {
  return Run(graph, "in", in, "out");
}

TEST(ScaleChannelsTest, KnowsLayersThatOnlyDepthwiseLayersRead) {
  EXPECT_THAT(ScalableLayers(Net(false, "out")), ElementsAre("first/eightbit"));
  EXPECT_THAT(ScalableLayers(Net(true, "out,more")), IsEmpty());
}

float LargestError(const Graph& graph) {
  const Tensor in = Wave({1, 4, 4, 2});
  const std::vector<float> wanted = Answer(Floats(false).Build(), in);
  const std::vector<float> found = Answer(graph, in);
  float largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i] - found[i]));
  }
  return largest;
}

TEST(ScaleChannelsTest, ChangesRoundingAlone) {
  Graph graph = Net(false, "out");
  const float before = LargestError(graph);
  const int nodes = graph.node_count();
  OPTFARM_ASSERT_OK(ScaleChannels({{"first/eightbit", {1, 32, 1.5f}}}, &graph));
  EXPECT_NE(graph.Find("first/eightbit/scaled"), graph::kNoNode);
  EXPECT_EQ(graph.node_count(), nodes);
  EXPECT_LT(LargestError(graph), before);
}

TEST(ScaleChannelsTest, BiasesAreSeenOnTheOriginalsScale) {
  Graph graph = Net(false, "out");
  const ChannelFactors factors = {{"first/eightbit", {1, 32, 1.5f}}};
  OPTFARM_ASSERT_OK(ScaleChannels(factors, &graph));
  Graph expanded = graph.Clone();
  OPTFARM_ASSERT_OK(
      ExpandLayers(Floats(false).Build(), factors, {}, &expanded));
  EXPECT_EQ(Show(expanded, "add"),
            "Add(first/eightbit/scaled/down, eightbit/1/bias/unscaled)");
  EXPECT_THAT(Answer(expanded, Wave({1, 4, 4, 2})),
              AllNear(Answer(graph, Wave({1, 4, 4, 2})), 0.3f));
  const ConstantShifts shifts =
      ShiftsOfScaled({{"eightbit/1/bias/unscaled", {1, 1, 2}}}, factors, graph);
  ASSERT_EQ(shifts.size(), 1u);
  EXPECT_THAT(shifts.at("eightbit/1/bias"), ElementsAre(1, 32, 3));
}

TEST(ScaleChannelsTest, RefusesFactorsThatDoNotFit) {
  Graph graph = Net(false, "out");
  EXPECT_THAT(ScaleChannels({{"first/eightbit", {1, 2}}}, &graph),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 3 channels, 2 factors")));
  EXPECT_THAT(ScaleChannels({{"first/eightbit", {1, 0.5f, 1}}}, &graph),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not within 1 and 256")));
  EXPECT_THAT(ScaleChannels({{"out/eightbit", {1, 1}}}, &graph),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("go to others than depthwise layers")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
