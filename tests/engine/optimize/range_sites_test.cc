#include "engine/optimize/layers/range_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/transforms/machinery/pipeline.h"
#include "tests/engine/optimize/small_model.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::TensorName;
using transforms::TransformStep;

Graph Transformed(const Graph& graph, const TransformStep& step,
                  const std::string& output) {
  Graph result = graph.Clone();
  const TransformStep steps[] = {step, {"strip_unused_nodes", {}}};
  const TensorName inputs[] = {{"input", 0}}, outputs[] = {{output, 0}};
  EXPECT_TRUE(transforms::RunTransforms(&result, steps, inputs, outputs).ok());
  return result;
}

std::map<std::string, TensorName> FloatTensors(const Graph& quantized,
                                               const Graph& floats) {
  std::map<std::string, TensorName> tensors;
  const auto sites =
      FloatSites(quantized, floats, FindRangeSites(quantized, true));
  EXPECT_TRUE(sites.ok()) << sites.status();
  if (!sites.ok()) return tensors;
  for (const RangeSite& site : *sites) {
    EXPECT_TRUE(site.is_float) << site.node;
    tensors[site.node] = site.value;
  }
  return tensors;
}

class FloatSitesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FloatSitesTest, EveryRangeHasAFloatTensor) {
  const Graph floats = *Graph::FromDef(testing::SmallModel());
  const Graph quantized = Transformed(floats, {GetParam(), {}}, "softmax");
  const auto tensors = FloatTensors(quantized, floats);
  EXPECT_GT(tensors.size(), 1u);
  EXPECT_EQ(tensors.size(), FindRangeSites(quantized, true).size());
  for (const auto& [node, tensor] : tensors) {
    EXPECT_NE(floats.Find(tensor.node), graph::kNoNode) << node;
  }
}

INSTANTIATE_TEST_SUITE_P(BothWays, FloatSitesTest,
                         ::testing::Values("quantize_layers",
                                           "quantize_nodes"));

TEST(FloatSitesTest, LeavesOutWhatTheFloatGraphDoesNotHave) {
  const Graph floats = *Graph::FromDef(testing::SmallModel());
  const Graph quantized =
      Transformed(floats, {"quantize_layers", {}}, "softmax");
  Graph without = floats.Clone();
  const auto tensors = FloatTensors(quantized, floats);
  const std::string gone = tensors.begin()->second.node;
  without.Rename(without.Find(gone), "another");
  const auto left = FloatTensors(quantized, without);
  EXPECT_LT(left.size(), tensors.size());
  EXPECT_EQ(left.count(tensors.begin()->first), 0u);
}

}  // namespace
}  // namespace optfarm::optimize
