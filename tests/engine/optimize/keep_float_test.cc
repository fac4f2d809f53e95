#include "engine/optimize/judging/keep_float.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::NodeId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using transforms::PrintTransforms;

// A chain of nodes, each reading the one before.
Graph Chain(const std::vector<std::string>& names) {
  Graph graph;
  NodeId last = graph::kNoNode;
  for (const std::string& name : names) {
    tensorflow::NodeDef def;
    def.set_name(name);
    def.set_op("Identity");
    std::vector<graph::Endpoint> inputs;
    if (last != graph::kNoNode) inputs.push_back({last, 0});
    last = graph.Add(def, inputs);
  }
  return graph;
}

v1::TensorComparison Measured(const std::string& name, double snr) {
  v1::TensorComparison layer;
  layer.set_name(name);
  layer.set_snr_db(snr);
  layer.set_samples(8);
  return layer;
}

TEST(KeepFloatTest, SparesOpsAndNodesInBothQuantizers) {
  v1::KeepFloat keep;
  keep.add_ops("Mul");
  keep.add_nodes("conv");
  EXPECT_EQ(
      PrintTransforms(WithSpared({{"fold_constants", {}},
                                  {"quantize_weights", {}},
                                  {"quantize_nodes", {{"ignore_op", "Mul"}}}},
                                 SparedByRecipe(keep))),
      "fold_constants quantize_weights(ignore_op=Mul, exclude_node=conv) "
      "quantize_nodes(ignore_op=Mul, exclude_node=conv)");
}

TEST(KeepFloatTest, AnAttemptAddsToWhatIsAlwaysSpared) {
  v1::KeepFloat keep;
  keep.add_ops("Mul");
  v1::ChainChange attempt;
  attempt.add_keep_ops("Add");
  attempt.add_leave_out("fold_constants");
  const Spared spared = SparedByAttempt(keep, attempt);
  EXPECT_THAT(spared.ops, ElementsAre("Add", "Mul"));
  EXPECT_EQ(PrintTransforms(WithSpared(
                {{"fold_constants", {}}, {"round_weights", {}}}, spared)),
            "round_weights");
}

TEST(KeepFloatTest, BlamesTheLayerThatAddsTheNoise) {
  const Graph original = Chain({"x", "a", "b", "c"});
  const Graph result = Chain({"x", "a/eightbit", "b/eightbit", "c/eightbit"});
  EXPECT_THAT(
      WorstLayers(original, result,
                  {Measured("a", 40), Measured("b", 10), Measured("c", 9.9)},
                  2),
      ElementsAre("b", "c"));
}

TEST(KeepFloatTest, FindsLayersWhoseNamesAreHidden) {
  const Graph original = Chain({"x", "a", "b"});
  const Graph result = Chain({"x", "0", "1"});
  EXPECT_THAT(
      WorstLayers(original, result, {Measured("a", 5), Measured("b", 4)}, 1,
                  {{"a/eightbit", "0"}, {"b/eightbit", "1"}}),
      ElementsAre("a"));
}

TEST(KeepFloatTest, FloatLayersAreNeverBlamed) {
  const Graph original = Chain({"x", "a", "b"});
  const Graph result = Chain({"x", "a", "b"});
  EXPECT_THAT(WorstLayers(original, result, {Measured("b", 1)}, 5), IsEmpty());
}

TEST(KeepFloatTest, ALayerThatWasNotComparedIsJudgedByTheNext) {
  const Graph original = Chain({"x", "a", "scale", "b", "relu"});
  const Graph result =
      Chain({"x", "a/normalized/eightbit", "scale", "b/eightbit", "relu"});
  EXPECT_THAT(WorstLayers(original, result,
                          {Measured("scale", 5), Measured("relu", 4.9)}, 2),
              ElementsAre("a/normalized", "b"));
}

TEST(KeepFloatTest, AnAttemptMayTakeOtherRanges) {
  v1::Calibration calibration;
  calibration.set_range_method(v1::Calibration::PERCENTILE);
  calibration.set_min_percentile(5);
  calibration.set_max_samples(7);
  v1::ChainChange attempt;
  const Spared plain = SparedByAttempt({}, attempt);
  EXPECT_EQ(WithRanges(calibration, plain).min_percentile(), 5);
  attempt.set_range_method(v1::Calibration::MSE);
  const Spared other = SparedByAttempt({}, attempt);
  EXPECT_EQ(WithRanges(calibration, other).range_method(),
            v1::Calibration::MSE);
  EXPECT_EQ(WithRanges(calibration, other).max_samples(), 7);
  EXPECT_EQ(DescribeSpared(other), "ranges by mse");
  EXPECT_FALSE(plain == other);
}

// A node that reads outputs 0 of others.
NodeId AddTo(Graph* graph, const std::string& name, const std::string& op,
             std::vector<NodeId> inputs) {
  tensorflow::NodeDef def;
  def.set_name(name);
  def.set_op(op);
  std::vector<graph::Endpoint> endpoints;
  for (const NodeId input : inputs) endpoints.push_back({input, 0});
  return graph->Add(def, endpoints);
}

TEST(KeepFloatTest, FindsLayersThatReadInputsInEachIteration) {
  Graph graph;
  const std::string product = "QuantizedMatMulWithBias";
  const NodeId input = AddTo(&graph, "in", "TensorArrayReadV3", {});
  const NodeId state = AddTo(&graph, "state", "Merge", {input, input});
  const NodeId both = AddTo(&graph, "both", "ConcatV2", {input, state});
  const NodeId cell = AddTo(&graph, "cell/eightbit", product, {both});
  const NodeId next = AddTo(&graph, "next/eightbit", product, {cell});
  graph.SetInput(state, 1, {AddTo(&graph, "n", "NextIteration", {next}), 0});
  EXPECT_THAT(InputLayers(graph), ElementsAre("cell"));
}

TEST(KeepFloatTest, FindsTheLayersThatReadTheInputs) {
  Graph graph;
  const auto add = [&](const std::string& name, const std::string& op,
                       std::vector<NodeId> inputs) {
    return AddTo(&graph, name, op, std::move(inputs));
  };
  const std::string conv = "QuantizedConv2DWithBiasAndReluAndRequantize";
  const NodeId input = add("in", "QuantizeV2", {});
  const NodeId first = add("a/eightbit/scaled", conv, {input});
  const NodeId beside = add("b/eightbit", conv, {input});
  const NodeId sum = add("sum/eightbit", "QuantizedAdd", {first, beside});
  const NodeId last = add("c/eightbit", conv, {sum});
  // Behind a loop, whose first value comes from elsewhere.
  const NodeId merge = add("merge", "Merge", {input, input});
  graph.SetInput(merge, 1, {last, 0});
  add("d/eightbit", conv, {merge});
  EXPECT_THAT(InputLayers(graph), ElementsAre("a", "b"));
  const std::vector<transforms::RenamedNode> map = {
      {"other/eightbit", "b/eightbit"}};
  EXPECT_THAT(InputLayers(graph, map), ElementsAre("a", "other"));
}

}  // namespace
}  // namespace optfarm::optimize
