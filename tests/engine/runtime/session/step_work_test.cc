// Steps are told by what they work on, not by what they are called.

#include "engine/runtime/session/step_work.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/runtime/session/session.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::GraphBuilder;

// A 1x1 convolution over a picture of `size` by `size`, and what follows.
std::vector<StepWork> WorksOf(const std::string& prefix, int64_t size,
                              float weight) {
  GraphBuilder b;
  b.Placeholder(prefix + "in", {1, size, size, 2});
  b.Floats(prefix + "w", {1, 1, 2, 3}, std::vector<float>(6, weight));
  b.Conv2D(prefix + "conv", prefix + "in", prefix + "w");
  const graph::Graph graph = b.Build();
  const graph::TensorName in{prefix + "in", 0}, out{prefix + "conv", 0};
  const auto works =
      StepWorks::Create(graph, {{in, graph::PartialShape({1, size, size, 2})}});
  EXPECT_TRUE(works.ok()) << works.status();
  const auto session = Session::Create(graph, {in}, {out});
  EXPECT_TRUE(session.ok()) << session.status();
  RunTrace trace;
  const std::vector<Tensor> fed = {
      *Tensor::Zeros(tensorflow::DT_FLOAT, Shape({1, size, size, 2}))};
  EXPECT_TRUE((*session)->Run(fed, &trace).ok());
  std::vector<StepWork> found;
  for (const NodeTiming& step : trace.nodes) found.push_back(works->Of(step));
  return found;
}

TEST(StepWorksTest, TellTheWork) {
  const std::vector<StepWork> works = WorksOf("", 4, 1);
  ASSERT_EQ(works.size(), 1u);
  EXPECT_EQ(works[0].op, "Conv2D");
  EXPECT_EQ(works[0].nodes[0], "conv");
  EXPECT_EQ(works[0].multiply_adds, 4 * 4 * 2 * 3);
  EXPECT_EQ(works[0].input_bytes, 4 * 4 * 2 * 4);
  EXPECT_EQ(works[0].weight_bytes, 2 * 3 * 4);
  EXPECT_EQ(works[0].output_bytes, 4 * 4 * 3 * 4);
}

TEST(StepWorksTest, HaveTheSameKeyUnderOtherNamesAndValues) {
  EXPECT_EQ(WorksOf("", 4, 1)[0].key, WorksOf("other/", 4, 0.5)[0].key);
  EXPECT_NE(WorksOf("", 4, 1)[0].key, WorksOf("", 5, 1)[0].key);
}

TEST(StepWorksTest, DependOnAttributesAndOnWhatRunsAsOne) {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 4, 2});
  const graph::Graph graph = b.Build();
  const auto works = StepWorks::Create(graph, {});
  ASSERT_TRUE(works.ok()) << works.status();
  NodeTiming alone;
  alone.name = "in";
  alone.op = "Conv2D";
  NodeTiming fused = alone;
  fused.op = "Conv2D+Relu";
  fused.fused_names = {"in", "gone"};
  EXPECT_NE(works->Of(alone).key, works->Of(fused).key);
  EXPECT_EQ(works->Of(fused).nodes.size(), 2u);
}

}  // namespace
}  // namespace optfarm::runtime
