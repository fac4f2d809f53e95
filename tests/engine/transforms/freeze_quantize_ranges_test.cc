#include "engine/transforms/freezing/freeze_quantize_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/graph/attr.h"
#include "engine/runtime/session/session.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using ::optfarm::testing::FloatT;
using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::StatusIs;
using runtime::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// x to quantized values of the range it has in each run, and back.
Graph Codec() {
  GraphBuilder b;
  b.Placeholder("x", {4});
  b.Ints("axis", {1}, {0});
  for (const char* op : {"Min", "Max"}) {
    b.Node(op, op, {"x", "axis"}, FloatT());
  }
  Graph graph = b.Build();
  tensorflow::NodeDef quantize, back;
  quantize.set_name("quantize");
  quantize.set_op("QuantizeV2");
  graph::SetType(&quantize, "T", tensorflow::DT_QUINT8);
  graph::SetString(&quantize, "mode", "MIN_FIRST");
  const auto id = graph.Add(
      quantize,
      {{graph.Find("x"), 0}, {graph.Find("Min"), 0}, {graph.Find("Max"), 0}});
  back.set_name("back");
  back.set_op("Dequantize");
  graph::SetType(&back, "T", tensorflow::DT_QUINT8);
  graph::SetString(&back, "mode", "MIN_FIRST");
  graph.Add(back, {{id, 0}, {id, 1}, {id, 2}});
  return graph;
}

std::vector<float> Decoded(const Graph& graph, const std::vector<float>& x) {
  const auto session = runtime::Session::Create(
      graph, {{graph::TensorName{"x", 0}}}, {{graph::TensorName{"back", 0}}});
  EXPECT_TRUE(session.ok()) << session.status();
  const auto out = (*session)->Run({{Tensor::FromValues<float>({4}, x)}});
  EXPECT_TRUE(out.ok()) << out.status();
  const auto values = (*out)[0].flat<float>();
  return {values.begin(), values.end()};
}

TEST(FreezeQuantizeRangesTest, CutsValuesOutsideTheObservedRange) {
  Graph graph = Codec();
  EXPECT_THAT(QuantizesWithRangeOfRun(graph),
              ElementsAre(graph.Find("quantize")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FreezeResult result,
      FreezeQuantizeRanges(&graph, {{"quantize", {{0, 2}, {0, 2.55f}}}},
                           {0, 0}));
  EXPECT_EQ(result.frozen, 1);
  EXPECT_THAT(QuantizesWithRangeOfRun(graph), ElementsAre());
  EXPECT_THAT(Decoded(graph, {0, 1, 2.55f, 100}),
              ElementsAre(0, ::testing::FloatNear(1, 1e-5),
                          ::testing::FloatNear(2.55f, 1e-5),
                          ::testing::FloatNear(2.55f, 1e-5)));
}

TEST(FreezeQuantizeRangesTest, LeavesNodesWithoutRecordsAsTheyAre) {
  Graph graph = Codec();
  graph.Rename(graph.Find("quantize"), "other");
  EXPECT_THAT(FreezeQuantizeRanges(&graph, {{"quantize", {{0, 1}}}}).status(),
              StatusIs(kInvalid, HasSubstr("'quantize'")));
  EXPECT_EQ(QuantizesWithRangeOfRun(graph).size(), 1u);
}

TEST(FreezeQuantizeRangesTest, RefusesRangesThatAreNotFinite) {
  Graph graph = Codec();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      FreezeQuantizeRanges(&graph, {{"quantize", {{0, infinity}}}}).status(),
      StatusIs(kInvalid, HasSubstr("infinite")));
  EXPECT_THAT(FreezeQuantizeRanges(&graph, {}).status(),
              StatusIs(kInvalid, HasSubstr("no ranges")));
}

}  // namespace
}  // namespace optfarm::transforms
