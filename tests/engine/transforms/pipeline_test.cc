#include "engine/transforms/machinery/pipeline.h"

#include "engine/transforms/machinery/catalog.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// in -> relu -> out, beside a Const that nothing reads.
GraphBuilder SmallGraph() {
  GraphBuilder b;
  b.Placeholder("in", {2});
  b.Node("relu", "Relu", {"in"}, FloatT());
  b.Node("out", "Identity", {"relu"}, FloatT());
  b.Floats("unused", {4}, {1, 2, 3, 4});
  b.mutable_def()->mutable_versions()->set_producer(24);
  b.mutable_def()
      ->mutable_library()
      ->add_function()
      ->mutable_signature()
      ->set_name("f");
  return b;
}

TEST(CatalogTest, IsSortedAndDescribed) {
  std::string previous;
  for (const TransformDef& def : AllTransforms()) {
    EXPECT_LT(previous, def.name);
    previous = def.name;
    EXPECT_FALSE(def.summary.empty()) << def.name;
    EXPECT_NE(def.run, nullptr) << def.name;
    EXPECT_EQ(def.parameters.back().name, "ignore_errors") << def.name;
    for (const ParameterDef& parameter : def.parameters) {
      EXPECT_FALSE(parameter.help.empty()) << def.name << parameter.name;
      EXPECT_FALSE(parameter.repeated && !parameter.default_value.empty());
    }
  }
}

TEST(CatalogTest, OffersTheNearestName) {
  EXPECT_THAT(
      FindTransform("fold_constant"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("Transform 'fold_constant' not recognized"),
                     HasSubstr("'fold_constants'"))));
}

TEST(CatalogTest, ChecksParameters) {
  const auto check = [](absl::string_view text) {
    return CheckTransforms(ParseTransforms(text).value());
  };
  EXPECT_THAT(check("quantize_weights(minimum_size=3, ignore_errors=true)"),
              IsOk());
  EXPECT_THAT(check("fold_constants(ignore_errors=True)"), IsOk());
  EXPECT_THAT(check("quantize_weights(minimum_sise=3)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("transform 'quantize_weights'"),
                             HasSubstr("no parameter 'minimum_sise'"),
                             HasSubstr("'minimum_size'"))));
  EXPECT_THAT(
      check("quantize_weights(minimum_size=x)"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("whole number")));
  EXPECT_THAT(
      check("quantize_weights(minimum_size=1, minimum_size=2)"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several times")));
  EXPECT_THAT(check("strip_unused_nodes(type=flaot)"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("flaot")));
  EXPECT_THAT(check("strip_unused_nodes(shape=\"1,x\")"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1,x")));
  EXPECT_THAT(check("strip_unused_nodes(shape=\"-1,3\")"), IsOk());
  EXPECT_THAT(check("remove_nodes"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'op' is missing")));
  EXPECT_THAT(check("set_device(ignore_errors=perhaps)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("true, false, 0 or 1")));
}

TEST(PipelineTest, ReportsWhatEachStepDid) {
  Graph graph = SmallGraph().Build();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph, "strip_unused_nodes remove_nodes(op=Relu)", "in", "out"));
  ASSERT_THAT(report.steps, SizeIs(2));
  EXPECT_EQ(report.steps[0].step, "strip_unused_nodes");
  EXPECT_EQ(report.steps[0].nodes_before, 4);
  EXPECT_EQ(report.steps[0].nodes_after, 3);
  EXPECT_GT(report.steps[0].constant_bytes_before, 0);
  EXPECT_EQ(report.steps[0].constant_bytes_after, 0);
  EXPECT_EQ(report.steps[1].step, "remove_nodes(op=Relu)");
  EXPECT_EQ(report.steps[1].report.nodes_changed, 1);
  EXPECT_EQ(Show(graph, "out"), "Identity(in)");
}

TEST(PipelineTest, CountsChangesByOp) {
  GraphBuilder b = SmallGraph();
  b.Ints("axis", {}, {0});
  b.Node("joined", "ConcatV2", {"relu", "relu", "axis"},
         FloatT({{"N", IntAttr(2)}}));
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph,
            "backport_concatv2 remove_nodes(op=Identity) "
            "insert_logging(op=Relu) sort_by_execution_order",
            "in", "joined"));
  EXPECT_THAT(report.steps[0].op_changes,
              ElementsAre(OpChange{"ConcatV2", "Concat", 1}));
  EXPECT_THAT(report.steps[1].op_changes,
              ElementsAre(OpChange{"Identity", "", 1}));
  EXPECT_THAT(report.steps[2].op_changes,
              ElementsAre(OpChange{"", "Print", 1}));
  EXPECT_THAT(report.steps[3].op_changes, IsEmpty());
}

TEST(PipelineTest, AnIgnoredErrorLeavesNoChanges) {
  Graph graph = SmallGraph().Build();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph,
            "remove_nodes(op=Identity, op=Relu, ignore_errors=true) "
            "rename_op(old_op_name=Identity, new_op_name=Add, "
            "ignore_errors=true)",
            "in", "out"));
  EXPECT_FALSE(report.steps[1].ignored_error.ok());
  EXPECT_THAT(report.steps[1].op_changes, IsEmpty());
}

TEST(PipelineTest, JoinsTheRenamesOfAllSteps) {
  Graph graph = SmallGraph().Build();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport named,
      Apply(&graph, "rename_node(old_node_name=relu, new_node_name=r)", "in",
            "out"));
  // Nothing is hidden.
  EXPECT_THAT(MakeNameMap(named.steps, graph), IsEmpty());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      PipelineReport report,
      Apply(&graph,
            "rename_node(old_node_name=r, new_node_name=\"a\\tb\") "
            "obfuscate_names "
            "rename_node(old_node_name=1, new_node_name=weights) "
            "rename_node(old_node_name=0, new_node_name=1)",
            "in", "out"));
  EXPECT_THAT(
      MakeNameMap(report.steps, graph),
      ElementsAre(RenamedNode{"r", "1"}, RenamedNode{"unused", "weights"}));
  // A node that is gone has no name.
  MustApply(&graph, "strip_unused_nodes", "in", "out");
  EXPECT_EQ(PrintNameMap(MakeNameMap(report.steps, graph)), "1\tr\n");
  EXPECT_EQ(PrintNameMap({{"a\tb", "0"}}), "0\ta\\tb\n");
}

TEST(PipelineTest, KeepsVersionsAndLibrary) {
  Graph graph = SmallGraph().Build();
  MustApply(&graph,
            "strip_unused_nodes remove_nodes(op=Relu) fold_constants "
            "fold_batch_norms quantize_weights quantize_nodes "
            "sort_by_execution_order",
            "in", "out");
  EXPECT_EQ(graph.versions().producer(), 24);
  EXPECT_EQ(graph.library().function_size(), 1);
}

TEST(PipelineTest, RefusesUnknownTransformsBeforeItStarts) {
  Graph graph = SmallGraph().Build();
  EXPECT_THAT(
      Apply(&graph, "remove_nodes(op=Relu) nonsense(ignore_errors=true)", "in",
            "out"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("'nonsense' not recognized")));
  EXPECT_EQ(graph.node_count(), 4);
}

TEST(PipelineTest, RefusesNamesThatAreNotInTheGraph) {
  Graph graph = SmallGraph().Build();
  EXPECT_THAT(Apply(&graph, "fold_constants", "in", "aut"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("output 'aut'"), HasSubstr("'out'"))));
}

TEST(PipelineTest, GoesBackWhenErrorsAreIgnored) {
  Graph graph = SmallGraph().Build();
  const std::string before = graph.ToDef().DebugString();
  // Renaming the output takes it from the graph.
  const std::string step = "rename_node(old_node_name=out, new_node_name=other";
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph, step + ", ignore_errors=true)", "in", "out"));
  EXPECT_THAT(report.steps[0].ignored_error,
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("transform 'rename_node'")));
  EXPECT_EQ(report.steps[0].report.nodes_changed, 0);
  EXPECT_EQ(graph.ToDef().DebugString(), before);
  EXPECT_THAT(Apply(&graph, step + ")", "in", "out"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("'out'")));
}

TEST(PipelineTest, NeedsNoCopyWhereATransformFailsBeforeItChangesAnything) {
  GraphBuilder b = SmallGraph();
  b.Node("a", "Relu", {"b"}, FloatT());
  b.Node("b", "Relu", {"a"}, FloatT());
  Graph graph = b.Build();
  const std::string before = graph.ToDef().DebugString();
  PipelineOptions options;
  options.verify = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph, "fold_constants(ignore_errors=true)", "in", "out",
            options));
  EXPECT_FALSE(report.steps[0].ignored_error.ok());
  EXPECT_EQ(graph.ToDef().DebugString(), before);
}

TEST(PipelineTest, BlamesTheStepThatMakesTheGraphInvalid) {
  Graph graph = SmallGraph().Build();
  EXPECT_THAT(
      Apply(&graph,
            "remove_device rename_op(old_op_name=Relu, new_op_name=Add)", "in",
            "out"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("transform 'rename_op'"), HasSubstr("relu"))));
}

TEST(PipelineTest, MayRepairAGraphThatIsInvalid) {
  GraphBuilder b = SmallGraph();
  b.Node("bad", "Add", {"in"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "remove_device strip_unused_nodes", "in", "out");
  EXPECT_EQ(graph.Find("bad"), graph::kNoNode);
}

TEST(PipelineTest, StopsWhenToldTo) {
  Graph graph = SmallGraph().Build();
  PipelineOptions options;
  options.before_step = [](absl::string_view step) {
    return step == "remove_device" ? absl::CancelledError("stop")
                                   : absl::OkStatus();
  };
  EXPECT_THAT(Apply(&graph, "remove_control_dependencies remove_device", "in",
                    "out", options),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stop")));
}

TEST(PipelineTest, KeepsFilesInsideTheBaseFolder) {
  Graph graph = SmallGraph().Build();
  PipelineOptions options;
  options.base_folder = "/nowhere";
  for (const char* path : {"/etc/passwd", "../x", "a/../../x"}) {
    EXPECT_THAT(
        Apply(&graph,
              std::string("freeze_requantization_ranges("
                          "min_max_log_file=\"") +
                  path + "\")",
              "in", "out", options),
        StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("outside")));
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
