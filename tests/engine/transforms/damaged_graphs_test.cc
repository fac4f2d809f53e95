// Graphs that no verifier would pass must not stop the process: what is wrong
// with them stays wrong, or becomes an error.

#include "engine/transforms/freezing/freeze_ranges.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<PipelineReport> ApplyUnverified(Graph* graph,
                                               const std::string& transforms,
                                               const std::string& outputs) {
  PipelineOptions options;
  options.verify = false;
  return Apply(graph, transforms, "", outputs, options);
}

TEST(DamagedGraphsTest, LeavesAProductWhoseSecondOutputIsRead) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 1});
  b.Floats("w", {1, 1, 1, 1}, {3});
  b.Conv2D("conv", "in", "w");
  b.Floats("scale", {1}, {2});
  b.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  b.Node("out", "Relu", {"mul:2"}, FloatT());
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      ApplyUnverified(&graph, "fold_batch_norms", "out"));
  EXPECT_THAT(Skipped(report.steps[0].report),
              ElementsAre(HasSubstr("an output it does not have is read")));
}

TEST(DamagedGraphsTest, FoldsThoughTheFactorIsAlsoWaitedFor) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 1});
  b.Floats("w", {1, 1, 1, 1}, {3});
  b.Conv2D("conv", "in", "w");
  b.Floats("scale", {1}, {2});
  b.Node("mul", "Mul", {"conv", "scale", "^scale"}, FloatT());
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK(
      ApplyUnverified(&graph, "fold_batch_norms", "mul").status());
  EXPECT_EQ(Show(graph, "mul"), "Conv2D(in, w)");
}

TEST(DamagedGraphsTest, KeepsWhatAPlaceholderReads) {
  GraphBuilder b;
  b.Floats("c", {}, {1});
  b.Placeholder("in", {2});
  b.mutable_def()->mutable_node(1)->add_input("c");
  b.Node("out", "Relu", {"in"}, FloatT());
  Graph graph = b.Build();
  PipelineOptions options;
  options.verify = false;
  OPTFARM_ASSERT_OK(
      Apply(&graph, "strip_unused_nodes", "in", "out", options).status());
  EXPECT_EQ(Show(graph, "in"), "Placeholder(c)");
}

TEST(DamagedGraphsTest, DoesNotEvaluateNodesWithWrongInputs) {
  GraphBuilder b;
  b.Floats("c", {}, {1});
  b.Ints("i", {}, {1});
  b.Node("few", "Add", {"c"}, FloatT());
  b.Node("mixed", "Add", {"c", "i"}, FloatT());
  b.Placeholder("x", {});
  b.Node("out", "AddN", {"x", "few", "mixed"}, FloatT({{"N", IntAttr(3)}}));
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      ApplyUnverified(&graph, "fold_constants", "out"));
  EXPECT_EQ(report.steps[0].report.skipped.size(), 2u);
  EXPECT_EQ(Show(graph, "out"), "AddN(x, few, mixed)");
}

TEST(DamagedGraphsTest, RefusesToFreezeARangeWithAThirdOutput) {
  GraphBuilder b;
  b.Placeholder("q", {2}, tensorflow::DT_QINT32);
  b.Node("range", "RequantizationRange", {"q", "q", "q"});
  b.Node("out", "Relu", {"range:2"}, FloatT());
  Graph graph = b.Build();
  EXPECT_THAT(FreezeRanges(&graph, {{"range", {{0, 1}}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("reads output 2 of 'range'")));
}

TEST(DamagedGraphsTest, ReportsACycle) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("a", "Identity", {"b"}, FloatT());
  b.Node("b", "Relu", {"a"}, FloatT());
  b.Node("self", "Identity", {"self"}, FloatT());
  b.Node("out", "AddN", {"x", "b", "self"}, FloatT({{"N", IntAttr(3)}}));
  for (const char* step : {"fold_constants", "fold_batch_norms",
                           "fold_old_batch_norms", "quantize_nodes"}) {
    Graph graph = b.Build();
    EXPECT_THAT(
        ApplyUnverified(&graph, step, "out").status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cycle")))
        << step;
  }
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK(ApplyUnverified(&graph,
                                    "remove_nodes(op=Identity) "
                                    "merge_duplicate_nodes quantize_weights "
                                    "insert_logging",
                                    "out")
                        .status());
}

}  // namespace
}  // namespace optfarm::transforms::testing
