#include "engine/optimize/optimize_job.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_notes.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::SourcePath;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TestDataPath;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Property;
using testing::SmallModel;
using testing::WriteModel;
using testing::WriteSamples;

OptimizeRequest Request(const std::string& recipe) {
  OptimizeRequest request;
  request.model_path = WriteModel(SmallModel(), FreshFolder());
  request.recipe = *BuiltInRecipe(recipe);
  const std::string data = WriteSamples(12, FreshFolder());
  request.data.AddInput("input", JoinPath(data, "x.npy"));
  request.data.AddLabels(JoinPath(data, "labels.npy"));
  request.out_folder = FreshFolder();
  request.tool_version = "test";
  return request;
}

absl::StatusOr<v1::Report> RunJob(const OptimizeRequest& request) {
  return RunOptimize(request, nullptr);
}

TEST(OptimizeJobTest, EveryBuiltInRecipeSucceedsOnASmallModel) {
  for (const std::string& name : BuiltInRecipeNames()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                                 RunJob(Request(name)));
    EXPECT_TRUE(report.passed()) << name << "\n" << report.DebugString();
    EXPECT_EQ(report.recipe_name(), name);
    EXPECT_EQ(report.float_accuracy().top1(), 100) << name;
    EXPECT_EQ(report.optimized_accuracy().samples(), 12) << name;
    ASSERT_EQ(report.outputs_compared_size(), 1);
    EXPECT_EQ(report.outputs_compared(0).top1_agreement(), 1) << name;
    EXPECT_GT(report.layers_compared_size(), 0);
    EXPECT_EQ(report.inputs(0).name(), "input");
    EXPECT_EQ(report.outputs(0).name(), "softmax");
  }
}

TEST(OptimizeJobTest, Int8CalibratesAndFreezes) {
  const OptimizeRequest request = Request("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_EQ(report.calibration().samples(), 12);
  EXPECT_GT(report.calibration().ranges(), 0);
  EXPECT_THAT(report.calibration().method(), HasSubstr("12 samples"));
  EXPECT_THAT(report.transform_string(),
              HasSubstr("freeze_requantization_ranges(min_max_log_file="));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string log,
      ReadFile(JoinPath(request.out_folder, "calibration.log")));
  EXPECT_THAT(log, HasSubstr("__print__;__requant_min_max:["));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      tensorflow::GraphDef def,
      formats::LoadGraphDef(JoinPath(request.out_folder, "optimized.pb")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               graph::Graph::FromDef(std::move(def)));
  EXPECT_NE(graph.Find("relu/eightbit"), graph::kNoNode);
  for (const graph::NodeId id : graph.Ids()) {
    EXPECT_NE(graph.node(id).op(), "RequantizationRange");
  }
}

TEST(OptimizeJobTest, ClassesAreComparedOnEnoughSamplesToTellTheirShare) {
  OptimizeRequest request = Request("int8");
  const std::string data = WriteSamples(320, FreshFolder());
  request.data = {};
  request.data.AddInput("input", JoinPath(data, "x.npy"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  ASSERT_EQ(report.outputs_compared_size(), 1);
  EXPECT_EQ(report.outputs_compared(0).samples(), 200);
  request.recipe.mutable_verification()->set_samples(30);
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report less, RunJob(request));
  EXPECT_EQ(less.outputs_compared(0).samples(), 30);
}

TEST(OptimizeJobTest, WritesItsArtifactsAndNamesThem) {
  const OptimizeRequest request = Request("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_EQ(report.artifacts_size(), 7);
  for (const v1::Artifact& artifact : report.artifacts()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::string digest,
        Sha256OfFile(JoinPath(request.out_folder, artifact.name())));
    EXPECT_EQ(digest, artifact.digest().sha256()) << artifact.name();
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string json,
      ReadFile(JoinPath(request.out_folder, "report.json")));
  v1::Report read;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &read).ok());
  EXPECT_EQ(read.transform_string(), report.transform_string());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string command,
      ReadFile(JoinPath(request.out_folder, "transforms.txt")));
  EXPECT_THAT(command, AllOf(HasSubstr("--inputs='input'"),
                             HasSubstr("--outputs='softmax'"),
                             HasSubstr("quantize_layers")));
}

TEST(OptimizeJobTest, KeepsTheNamesThatATransformHid) {
  OptimizeRequest request = Request("int8");
  request.recipe.add_transforms()->set_name("obfuscate_names");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_TRUE(report.passed()) << report.DebugString();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string map,
      ReadFile(JoinPath(request.out_folder, "name_map.tsv")));
  EXPECT_THAT(map, HasSubstr("\trelu/eightbit\n"));
  EXPECT_THAT(report.artifacts(),
              Contains(Property(&v1::Artifact::name, "name_map.tsv")));
  // The layers are still found.
  EXPECT_THAT(report.layers_compared(),
              Contains(Property(&v1::TensorComparison::name, "relu")));
  EXPECT_THAT(report.transforms(),
              Contains(Property(&v1::TransformStats::op_changes_size,
                                ::testing::Gt(0))));
}

// What the file is to be, over what it was, where `less` bytes of `of` are to
// go.
void AimAtLess(const v1::Report& of, int64_t less, OptimizeRequest* request) {
  v1::FileSize* wanted = request->recipe.mutable_file_size();
  wanted->set_from_bytes(0);
  wanted->set_shorten_names(true);
  wanted->set_aim_ratio(
      static_cast<double>(of.size_after().file_bytes() - less) /
      static_cast<double>(of.size_before().file_bytes()));
}

TEST(OptimizeJobTest, PutsConstantsTogetherWhenTheFileIsTooLarge) {
  OptimizeRequest request = Request("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report large, RunJob(request));
  EXPECT_THAT(large.transform_string(), Not(HasSubstr("pool_constants")));
  AimAtLess(large, 10, &request);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_LE(report.size_after().file_bytes(),
            large.size_after().file_bytes() - 10);
  EXPECT_THAT(report.transform_string(),
              AllOf(HasSubstr("pool_constants(as_half=false)"),
                    Not(HasSubstr("obfuscate_names"))));
  EXPECT_THAT(report.warnings(), Contains(HasSubstr("put together")));
  AimAtLess(report, 1, &request);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report halves, RunJob(request));
  EXPECT_THAT(halves.transform_string(),
              AllOf(HasSubstr("pool_constants(as_half=true)"),
                    Not(HasSubstr("obfuscate_names"))));
  EXPECT_THAT(halves.warnings(), Contains(HasSubstr("16-bit floats")));
}

TEST(OptimizeJobTest, NamesGoLastAndLayersKeepTheirs) {
  OptimizeRequest request = Request("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report large, RunJob(request));
  // Twice: pools come first, exact ones and those of 16-bit floats.
  AimAtLess(large, 10, &request);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report exact, RunJob(request));
  AimAtLess(exact, 1, &request);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report pooled, RunJob(request));
  AimAtLess(pooled, 1, &request);
  request.recipe.mutable_verification()->set_sensitivity(true);
  request.recipe.mutable_verification()->add_histograms("relu");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_THAT(report.transform_string(), HasSubstr("obfuscate_names"));
  EXPECT_THAT(report.warnings(), Contains(HasSubstr("name_map.tsv")));
  EXPECT_LT(report.size_after().file_bytes(), pooled.size_after().file_bytes());
  EXPECT_THAT(report.layers_compared(),
              Contains(Property(&v1::TensorComparison::name, "relu")));
  EXPECT_THAT(report.sensitivity(),
              Contains(Property(&v1::LayerSensitivity::name, "relu")));
  EXPECT_EQ(report.histograms_size(), 1);
  EXPECT_EQ(report.outputs_compared(0).name(), "softmax");
}

TEST(OptimizeJobTest, NothingIsDoneForASizeThatCannotBeReached) {
  OptimizeRequest request = Request("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report large, RunJob(request));
  request.out_folder = FreshFolder();
  request.recipe.mutable_file_size()->set_from_bytes(0);
  request.recipe.mutable_file_size()->set_aim_ratio(0.01);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_EQ(report.optimized_model().sha256(),
            large.optimized_model().sha256());
  // Nor for originals that are small anyway.
  AimAtLess(large, 10, &request);
  request.recipe.mutable_file_size()->set_from_bytes(1 << 20);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report small, RunJob(request));
  EXPECT_EQ(small.optimized_model().sha256(), large.optimized_model().sha256());
}

TEST(OptimizeJobTest, TheSameWorkGivesTheSameBytes) {
  OptimizeRequest request = Request("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report first, RunJob(request));
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report second, RunJob(request));
  EXPECT_EQ(first.optimized_model().sha256(),
            second.optimized_model().sha256());
}

TEST(OptimizeJobTest, DataThatCannotBeQuantizedAreNamed) {
  OptimizeRequest request = Request("int8-fast");
  std::vector<float> pixels(12 * 64, 0.5f);
  pixels[70] = std::numeric_limits<float>::quiet_NaN();
  const std::string path = JoinPath(FreshFolder(), "x.npy");
  OPTFARM_ASSERT_OK(
      formats::SaveNpy(runtime::Tensor::FromValues<float>(
                           runtime::Shape({12, 1, 8, 8, 1}), pixels)
                           .ToProto(),
                       path));
  request.data = {};
  request.data.AddInput("input", path);
  EXPECT_THAT(RunOptimize(request, nullptr).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("samples for 'input' hold NaN")));
}

TEST(OptimizeJobTest, LayersOfInputsStayInFloatWherePayingForThemHelps) {
  OptimizeRequest request = Request("int8");
  request.recipe.mutable_keep_float()->clear_attempts();
  request.recipe.mutable_keep_float()->set_aim_snr_db(1000);
  // Nothing gains so much.
  request.recipe.mutable_keep_float()->set_input_layers_gain_db(1000);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report all, RunJob(request));
  EXPECT_EQ(all.kept_float_size(), 0);
  ASSERT_EQ(all.search_size(), 2);
  EXPECT_TRUE(all.search(0).taken());
  // Anything does.
  request.recipe.mutable_keep_float()->set_input_layers_gain_db(0);
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report spared, RunJob(request));
  EXPECT_THAT(spared.kept_float(), ::testing::ElementsAre("relu"));
  EXPECT_TRUE(spared.search(1).taken());
  EXPECT_GT(spared.search(1).snr_db(), spared.search(0).snr_db());
}

TEST(OptimizeJobTest, NothingIsPaidForLayersOfInputsWhereThereIsLittleNoise) {
  OptimizeRequest request = Request("int8");
  request.recipe.mutable_keep_float()->set_input_layers_gain_db(0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  ASSERT_EQ(report.search_size(), 1);
  EXPECT_GT(report.search(0).snr_db(), 30);
  EXPECT_EQ(report.kept_float_size(), 0);
}

TEST(OptimizeJobTest, TriesOtherRangesWhenTheAimsAreMissed) {
  OptimizeRequest request = Request("int8");
  v1::KeepFloat* keep = request.recipe.mutable_keep_float();
  keep->clear_input_layers_gain_db();
  keep->clear_aim_agreement();
  keep->set_aim_snr_db(1000);
  request.recipe.mutable_bounds()->clear_classes_decide();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  ASSERT_GE(report.search_size(), 3);
  EXPECT_THAT(report.search(1).description(),
              HasSubstr("ranges by percentile 10 and 10"));
  EXPECT_THAT(report.search(2).description(), HasSubstr("ranges by mse"));
}

TEST(OptimizeJobTest, LabelsHaveNoPartInTheSearch) {
  OptimizeRequest request = Request("int8");
  request.recipe.mutable_bounds()->clear_labels_decide();
  request.recipe.mutable_keep_float()->set_aim_agreement(1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report right, RunJob(request));
  // Everything is labelled wrongly.
  const std::string labels = JoinPath(FreshFolder(), "labels.txt");
  std::string text;
  for (int i = 0; i < 12; ++i) text += "0\n";
  OPTFARM_ASSERT_OK(WriteFileAtomically(labels, text));
  request.data.dataset.mutable_sources()->RemoveLast();
  request.data.folders.pop_back();
  request.data.AddLabels(labels);
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report wrong, RunJob(request));
  EXPECT_EQ(right.optimized_model().sha256(), wrong.optimized_model().sha256());
  EXPECT_EQ(right.attempts_size(), wrong.attempts_size());
  EXPECT_NE(right.optimized_accuracy().top1(),
            wrong.optimized_accuracy().top1());
}

TEST(OptimizeJobTest, TheResultIsJudgedOnSamplesThatWereNotCalibratedOn) {
  OptimizeRequest request = Request("int8");
  request.recipe.mutable_calibration()->set_max_samples(5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_EQ(report.calibration().samples(), 5);
  EXPECT_EQ(report.outputs_compared(0).samples(), 7);
  EXPECT_EQ(report.optimized_accuracy().samples(), 7);
  EXPECT_EQ(report.paired_accuracy().samples(), 7);
  EXPECT_THAT(report.warnings(), Not(Contains(HasSubstr("calibrated on"))));
  request.recipe.mutable_calibration()->set_max_samples(12);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report all, RunJob(request));
  EXPECT_EQ(all.outputs_compared(0).samples(), 12);
  EXPECT_THAT(all.warnings(), Contains(HasSubstr("calibrated on")));
}

TEST(OptimizeJobTest, PartsJudgeTheSameGraphOnDifferentSamples) {
  OptimizeRequest request = Request("int8");
  const std::string data = WriteSamples(40, FreshFolder());
  request.data = {};
  request.data.AddInput("input", JoinPath(data, "x.npy"));
  request.recipe.mutable_calibration()->set_max_samples(10);
  v1::SamplePart& part = *request.recipe.mutable_verification()->mutable_part();
  part.set_number(1);
  part.set_of(2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report first, RunJob(request));
  part.set_number(2);
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report second, RunJob(request));
  EXPECT_EQ(first.optimized_model().sha256(),
            second.optimized_model().sha256());
  EXPECT_EQ(first.outputs_compared(0).samples(), 15);
  EXPECT_EQ(second.outputs_compared(0).samples(), 15);
  std::set<std::string> samples;
  for (const v1::Report& report : {first, second}) {
    for (const v1::SampleComparison& worst : report.worst_samples()) {
      EXPECT_TRUE(samples.insert(worst.sample()).second) << worst.sample();
    }
  }

  request.recipe.mutable_calibration()->set_max_samples(40);
  request.out_folder = FreshFolder();
  EXPECT_THAT(RunJob(request), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("part 2 of 2")));
  part.set_number(3);
  EXPECT_THAT(RunJob(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("verification.part.number")));
}

TEST(OptimizeJobTest, ThreadsDoNotChangeTheBytes) {
  OptimizeRequest request = Request("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report one, RunJob(request));
  request.threads = 4;
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report four, RunJob(request));
  EXPECT_EQ(one.optimized_model().sha256(), four.optimized_model().sha256());
}

TEST(OptimizeJobTest, ReportsTheWorstSamplesAndPackedSizes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunJob(Request("int8")));
  ASSERT_EQ(report.worst_samples_size(), 10);
  EXPECT_LE(report.worst_samples(0).snr_db(), report.worst_samples(9).snr_db());
  EXPECT_THAT(report.worst_samples(0).sample(), HasSubstr("sample"));
  EXPECT_GE(report.worst_samples(0).label(), 0);
  EXPECT_EQ(report.worst_samples(0).label_name(), "");
  EXPECT_GT(report.size_before().gzip_bytes(), 0);
  EXPECT_LT(report.size_after().gzip_bytes(), report.size_after().file_bytes());
}

// A model whose file names the three classes.
std::string WriteNamedModel(const std::vector<std::string>& names) {
  tensorflow::GraphDef model = SmallModel();
  graph::ModelNotes notes;
  notes.labels = names;
  graph::SetModelNotes(notes, model.mutable_node(model.node_size() - 1));
  return WriteModel(model, FreshFolder());
}

TEST(OptimizeJobTest, WorstSamplesNameTheClassesThatTheModelsFileNames) {
  OptimizeRequest request = Request("int8");
  request.model_path = WriteNamedModel({"left", "mid\xff", "right"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(v1::Report report, RunJob(request));
  const std::string names[] = {"left", "mid\xEF\xBF\xBD", "right"};
  for (const v1::SampleComparison& sample : report.worst_samples()) {
    EXPECT_EQ(sample.float_class_name(), names[sample.float_class()]);
    EXPECT_EQ(sample.optimized_class_name(), names[sample.optimized_class()]);
    EXPECT_EQ(sample.label_name(), names[sample.label()]);
  }
  // Too long for people, and too few for the model's classes.
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>(3, std::string(101, 'n')),
        std::vector<std::string>{"left", "right"}}) {
    request.model_path = WriteNamedModel(bad);
    request.out_folder = FreshFolder();
    OPTFARM_ASSERT_OK_AND_ASSIGN(report, RunJob(request));
    EXPECT_EQ(report.worst_samples(0).label_name(), "");
  }
}

TEST(OptimizeJobTest, ProgressNeverFalls) {
  double last = 0;
  OPTFARM_ASSERT_OK(
      RunOptimize(Request("int8"), [&last](const OptimizeProgress& p) {
        EXPECT_GE(p.fraction, last) << p.stage;
        last = p.fraction;
      }));
  EXPECT_EQ(last, 1);
}

TEST(OptimizeJobTest, AMissedBoundFailsTheReportAndKeepsTheFiles) {
  OptimizeRequest request = Request("int8");
  request.recipe.mutable_bounds()->set_max_size_ratio(0.01);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(report.gates(),
              Contains(AllOf(Property(&v1::GateResult::name, "max_size_ratio"),
                             Property(&v1::GateResult::passed, false))));
  EXPECT_GT(report.attempts_size(), 1);
  EXPECT_TRUE(Exists(JoinPath(request.out_folder, "optimized.pb")));
}

TEST(OptimizeJobTest, GentlerChainsAreTriedUntilTheBoundsHold) {
  OptimizeRequest request = Request("int8");
  // Only float arithmetic is that exact here.
  request.recipe.mutable_bounds()->set_min_snr_db(90);
  request.recipe.mutable_bounds()->clear_classes_decide();
  request.recipe.mutable_bounds()->clear_max_size_ratio();
  request.recipe.mutable_keep_float()->clear_attempts();
  request.recipe.mutable_keep_float()->add_attempts()->add_keep_ops("Conv2D");
  v1::ChainChange* all = request.recipe.mutable_keep_float()->add_attempts();
  for (const char* op : {"Conv2D", "BiasAdd", "Relu", "Reshape", "MatMul"}) {
    all->add_keep_ops(op);
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.attempts_size(), 2);
  EXPECT_THAT(report.kept_float(), Contains("MatMul"));
}

TEST(OptimizeJobTest, WithoutDataItWarnsAndKeepsRangesDynamic) {
  OptimizeRequest request = Request("int8");
  request.data = {};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_FALSE(report.has_calibration());
  EXPECT_THAT(report.warnings(),
              Contains(HasSubstr("No calibration data was given")));
  EXPECT_THAT(report.fed(0), HasSubstr("made-up"));
  EXPECT_THAT(report.transform_string(),
              ::testing::Not(HasSubstr("freeze_requantization_ranges")));
}

TEST(OptimizeJobTest, MistakesSayWhatToChange) {
  const auto expect = [](const OptimizeRequest& request, absl::StatusCode code,
                         const std::string& says) {
    EXPECT_THAT(RunJob(request), StatusIs(code, HasSubstr(says)));
  };
  OptimizeRequest request = Request("int8");
  request.outputs = {"softmacks"};
  expect(request, absl::StatusCode::kNotFound, "softmax");

  request = Request("int8");
  request.data.dataset.mutable_sources(0)->set_input("imput");
  expect(request, absl::StatusCode::kInvalidArgument, "'input'");

  request = Request("int8");
  request.data = {};
  request.data.AddLabels("labels.npy");
  expect(request, absl::StatusCode::kInvalidArgument, "--calibration");

  request = Request("int8");
  request.recipe.mutable_calibration()->set_required(true);
  request.data = {};
  expect(request, absl::StatusCode::kFailedPrecondition, "calibration data");

  request = Request("int8");
  request.recipe.add_transforms()->set_name("quantise");
  expect(request, absl::StatusCode::kInvalidArgument, "quantise");

  request = Request("int8");
  request.model_path = JoinPath(FreshFolder(), "none.pb");
  expect(request, absl::StatusCode::kNotFound, "none.pb");
}

TEST(OptimizeJobTest, RefusesNanWeights) {
  tensorflow::GraphDef graph = SmallModel();
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.name() != "bias") continue;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    *(*node.mutable_attr())["value"].mutable_tensor() =
        runtime::Tensor::FromValues<float>(runtime::Shape({4}),
                                           {nan, nan, nan, nan})
            .ToProto();
  }
  OptimizeRequest request = Request("int8");
  request.model_path = WriteModel(graph, FreshFolder());
  EXPECT_THAT(RunJob(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bias")));
}

TEST(OptimizeJobTest, RefusesHostileGraphs) {
  const auto expect = [](const tensorflow::GraphDef& graph,
                         const std::string& says) {
    OptimizeRequest request = Request("int8");
    request.model_path = WriteModel(graph, FreshFolder());
    EXPECT_THAT(RunJob(request),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
  };
  tensorflow::GraphDef twice = SmallModel();
  *twice.add_node() = twice.node(0);
  expect(twice, "input");

  tensorflow::GraphDef cycle = SmallModel();
  for (tensorflow::NodeDef& node : *cycle.mutable_node()) {
    if (node.name() == "conv") node.set_input(0, "relu");
  }
  expect(cycle, "cycle");

  tensorflow::GraphDef dangling = SmallModel();
  dangling.mutable_node(2)->set_input(0, "inptu");
  expect(dangling, "'input'");

  tensorflow::GraphDef huge = SmallModel();
  for (tensorflow::NodeDef& node : *huge.mutable_node()) {
    if (node.name() != "bias") continue;
    auto* tensor = (*node.mutable_attr())["value"].mutable_tensor();
    tensor->mutable_tensor_shape()->mutable_dim(0)->set_size(int64_t{1} << 40);
    tensor->set_tensor_content("0123456789");
  }
  expect(huge, "bias");
}

// 16,384 of its 16,624 weights are multiplied as a matrix.
TEST(OptimizeJobTest, Weights4MakesProductsASeventhOfTheirSize) {
  const OptimizeRequest request = Request("weights4");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_TRUE(report.passed()) << report.DebugString();
  constexpr double kProductBytes = 16384 * sizeof(float);
  EXPECT_GT(static_cast<double>(report.size_before().file_bytes() -
                                report.size_after().file_bytes()),
            0.84 * kProductBytes);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const tensorflow::GraphDef optimized,
      formats::LoadGraphDef(JoinPath(request.out_folder, "optimized.pb")));
  const auto& nodes = optimized.node();
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [](const auto& node) {
                            return node.op() == "DequantizeBlocks";
                          }),
            1);
}

TEST(OptimizeJobTest, NamesTheOpItCannotRun) {
  tensorflow::GraphDef graph = SmallModel();
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.name() == "relu") node.set_op("FancyRelu");
  }
  OptimizeRequest request = Request("fp32");
  request.outputs = {"softmax"};
  request.model_path = WriteModel(graph, FreshFolder());
  EXPECT_THAT(RunJob(request),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("FancyRelu"), HasSubstr("relu"))));
}

TEST(OptimizeJobTest, CorruptPicturesAreCountedAndNamed) {
  OptimizeRequest request;
  request.model_path = SourcePath("examples/digits/digits.pb");
  request.recipe = *BuiltInRecipe("weights8");
  request.out_folder = FreshFolder();
  const std::string folder = FreshFolder();
  const std::string from = SourcePath("examples/digits/images/7");
  const std::vector<std::string> names = *ListFolder(from);
  for (const std::string& name : names) {
    OPTFARM_ASSERT_OK(WriteFileAtomically(JoinPath(folder, name),
                                          *ReadFile(JoinPath(from, name))));
  }
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(folder, "0.png"), "no picture"));
  OPTFARM_ASSERT_OK(request.data.AddFolder(folder));
  request.recipe.mutable_verification()->set_samples(100);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_THAT(report.warnings(),
              Contains(AllOf(HasSubstr("1 samples could not be used"),
                             HasSubstr("0.png"))));
}

TEST(OptimizeJobTest, OptimizesTheDigitsExample) {
  OptimizeRequest request;
  request.model_path = SourcePath("examples/digits/digits.pb");
  request.recipe = *BuiltInRecipe("int8");
  OPTFARM_ASSERT_OK(
      request.data.AddFolder(SourcePath("examples/digits/images")));
  request.data.AddLabels(SourcePath("examples/digits/labels.txt"));
  request.data.SetMeanAndStd(127.5, 127.5);
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_TRUE(report.passed()) << report.DebugString();
  EXPECT_GT(report.float_accuracy().top1(), 97);
  EXPECT_GT(report.optimized_accuracy().top1(), 96);
  EXPECT_LT(report.size_after().file_bytes(),
            0.30 * static_cast<double>(report.size_before().file_bytes()));
}

TEST(OptimizeJobTest, OptimizesARealSpeechModelFromWavFiles) {
  OPTFARM_REQUIRE_TEST_DATA();
  OptimizeRequest request;
  request.model_path =
      TestDataPath("models/conv_actions_frozen/conv_actions_frozen.pb");
  request.recipe = *BuiltInRecipe("int8");
  request.recipe.mutable_calibration()->set_max_samples(20);
  // One answer of 30 is more than the recipe's 2 points.
  request.recipe.mutable_bounds()->set_max_accuracy_drop(10);
  request.recipe.mutable_verification()->set_max_labelled_samples(30);
  OPTFARM_ASSERT_OK(request.data.AddFolder(TestDataPath("speech_commands")));
  request.data.AddLabels(TestDataPath("misc/conv_actions_labels.txt"));
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_TRUE(report.passed()) << report.DebugString();
  EXPECT_LT(report.size_after().file_bytes(),
            0.30 * static_cast<double>(report.size_before().file_bytes()));
  EXPECT_EQ(report.float_accuracy().samples(), 30);
  // Folders are words, and those that the labels do not have are unknown.
  for (const v1::SampleComparison& sample : report.worst_samples()) {
    EXPECT_THAT(sample.label_name(),
                AnyOf(sample.sample().substr(0, sample.sample().find('/')),
                      "_unknown_"));
  }
}

// TensorFlow's chain leaves 0.3 % top-1 of this network's 47.7 %.
TEST(OptimizeJobTest, MobileNetNeverLooksLikeASuccessWhenItIsNot) {
  OPTFARM_REQUIRE_TEST_DATA();
  OptimizeRequest request;
  request.model_path =
      TestDataPath("models/mobilenet_v1_0.25_128/frozen_graph.pb");
  request.recipe = *BuiltInRecipe("int8-tf14");
  *request.recipe.mutable_bounds() = BuiltInRecipe("int8")->bounds();
  request.recipe.mutable_calibration()->set_max_samples(8);
  request.recipe.mutable_verification()->set_max_labelled_samples(60);
  request.data.AddInput("input",
                        TestDataPath("images/imagenet_300_crop_128_u8.npy"));
  request.data.AddLabels(TestDataPath("images/imagenet_300_index1001.npy"));
  request.data.SetMeanAndStd(127.5, 127.5);
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_FALSE(report.passed());
  EXPECT_GT(report.float_accuracy().top1(), 35);
  EXPECT_LT(report.optimized_accuracy().top1(), 20);
  EXPECT_THAT(report.gates(0).name(), "max_accuracy_drop");
}

// The small model with an op that neither ONNX nor TensorFlow Lite has a form
// for, twice.
std::string WriteUnexportable() {
  tensorflow::GraphDef def = SmallModel();
  for (const char* name : {"first", "second"}) {
    tensorflow::NodeDef* node =
        testing::AddNode(&def, name, "Lgamma", {"input"});
    graph::SetType(node, "T", tensorflow::DT_FLOAT);
  }
  tensorflow::NodeDef* sum =
      testing::AddNode(&def, "sum", "Add", {"first", "second"});
  graph::SetType(sum, "T", tensorflow::DT_FLOAT);
  return WriteModel(def, FreshFolder());
}

TEST(OptimizeJobTest, WritesTheFormatsThatAreAskedFor) {
  OptimizeRequest request = Request("int8");
  request.out_formats = {v1::TFLITE, v1::ONNX};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunJob(request));
  EXPECT_TRUE(report.passed());
  ASSERT_EQ(report.exports_size(), 2);
  EXPECT_EQ(report.exports(0).format(), v1::ONNX);
  for (const v1::ExportedModel& made : report.exports()) {
    EXPECT_EQ(made.problems_size(), 0) << made.DebugString();
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::string bytes,
        ReadFile(JoinPath(request.out_folder, made.artifact())));
    EXPECT_EQ(made.size_bytes(), bytes.size());
    // Read back and compared.
    EXPECT_TRUE(made.has_relative_difference());
    EXPECT_LE(made.relative_difference(), 0.02);
    EXPECT_THAT(made.summary(), HasSubstr("read back: "));
    EXPECT_THAT(report.artifacts(),
                Contains(Property(&v1::Artifact::name, made.artifact())));
  }
  EXPECT_EQ(report.artifacts(0).name(), "optimized.pb");
  EXPECT_EQ(report.exports(1).artifact(), "optimized.tflite");
}

// Ranges that are found at each run lose less than coarse weights, and no other
// format has them.
TEST(OptimizeJobTest, AChainThatTheFormatsCannotHoldIsNotTaken) {
  OptimizeRequest request = Request("fp32");
  v1::TransformStep* coarse = request.recipe.add_transforms();
  coarse->set_name("round_weights");
  v1::TransformParam* steps = coarse->add_params();
  steps->set_key("num_steps");
  steps->set_value("8");
  v1::KeepFloat* keep_float = request.recipe.mutable_keep_float();
  keep_float->set_aim_snr_db(200);
  keep_float->add_attempts()->set_transform_string(
      "fold_constants(ignore_errors=true) quantize_weights(minimum_size=8) "
      "quantize_nodes");
  request.recipe.mutable_bounds()->set_min_snr_db(1);
  const auto taken = [&]() -> std::string {
    const absl::StatusOr<v1::Report> report = RunJob(request);
    if (!report.ok()) return report.status().ToString();
    for (const v1::SearchStep& step : report->search()) {
      if (step.taken()) return step.description();
    }
    return "none";
  };
  EXPECT_THAT(taken(), HasSubstr("another chain"));
  request.out_formats = {v1::TFLITE, v1::PB};
  EXPECT_THAT(taken(), HasSubstr("another chain"));
  request.out_formats = {v1::TFLITE};
  EXPECT_EQ(taken(), "everything quantized");
  EXPECT_TRUE(Exists(JoinPath(request.out_folder, "optimized.tflite")));
  // A model that the format cannot hold anyway is optimized as ever.
  tensorflow::GraphDef def = SmallModel();
  for (const char* name : {"gamma", "end"}) {
    tensorflow::NodeDef* node =
        testing::AddNode(&def, name, "Lgamma", {"softmax"});
    graph::SetType(node, "T", tensorflow::DT_FLOAT);
  }
  request.model_path = WriteModel(def, FreshFolder());
  request.outputs = {"softmax", "end"};
  EXPECT_THAT(taken(), HasSubstr("another chain"));
}

TEST(OptimizeJobTest, AFormatThatCannotHoldTheResultIsToldWithAllReasons) {
  OptimizeRequest request;
  request.model_path = WriteUnexportable();
  request.outputs = {"softmax", "sum"};
  request.recipe = *BuiltInRecipe("fp32");
  request.recipe.mutable_verification()->set_allow_random_inputs(true);
  request.out_folder = FreshFolder();
  request.out_formats = {v1::ONNX};
  // Alone, it fails the job, whose other files are there.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report alone, RunJob(request));
  EXPECT_FALSE(alone.passed());
  ASSERT_EQ(alone.exports_size(), 1);
  EXPECT_EQ(alone.exports(0).artifact(), "");
  ASSERT_EQ(alone.exports(0).problems_size(), 1);
  EXPECT_THAT(alone.exports(0).problems(0),
              AllOf(HasSubstr("Lgamma: "), HasSubstr("2 nodes, as 'first'")));
  ASSERT_GT(alone.gates_size(), 0);
  const v1::GateResult& gate = alone.gates(alone.gates_size() - 1);
  EXPECT_EQ(gate.name(), "out_formats");
  EXPECT_FALSE(gate.passed());
  EXPECT_THAT(gate.message(), HasSubstr("cannot be written as onnx: Lgamma"));
  EXPECT_TRUE(Exists(JoinPath(request.out_folder, "optimized.pb")));
  EXPECT_FALSE(Exists(JoinPath(request.out_folder, "optimized.onnx")));
  // Beside the graph, it is a warning.
  request.out_formats = {v1::ONNX, v1::PB};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report both, RunJob(request));
  EXPECT_TRUE(both.passed());
  EXPECT_EQ(both.exports_size(), 1);
  EXPECT_THAT(both.warnings(), Contains(HasSubstr("One format less: ")));
  request.out_formats = {static_cast<v1::ModelFormat>(99)};
  EXPECT_THAT(RunJob(request), StatusIs(absl::StatusCode::kUnimplemented,
                                        HasSubstr("format 99")));
}

}  // namespace
}  // namespace optfarm::optimize
