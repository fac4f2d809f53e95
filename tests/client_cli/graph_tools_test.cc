// The small tools for graphs through their links: what they print, write and
// end with.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "engine/formats/tensorflow/graph_file.h"
#include "tests/client_cli/tool_test.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::TestDataPath;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr char kModel[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } } } } }
  node { name: "c" op: "CheckNumerics" input: "x"
    attr { key: "T" value { type: DT_FLOAT } }
    attr { key: "message" value { s: "bad" } } }
  node { name: "y" op: "Relu" input: "c"
    attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "z" op: "Neg" input: "y"
    attr { key: "T" value { type: DT_FLOAT } } }
)";

class GraphToolsTest : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    model_ = Write("model.pbtxt", kModel);
  }

  std::string model_;
};

TEST_F(GraphToolsTest, CompareGraphsEndsWithOneForDifferentAnd255ForErrors) {
  EXPECT_EQ(Run("compare_graphs", {model_, model_}), 0);
  EXPECT_EQ(output_, "Graphs are equal.\n");
  const std::string other =
      Write("other.pbtxt", R"(node { name: "x" op: "Placeholder" })");
  EXPECT_EQ(Run("compare_graphs", {model_, other}), 1);
  EXPECT_THAT(output_, HasSubstr("Node 'x' has attribute 'dtype'"));
  EXPECT_EQ(Run("compare_graphs", {model_}), 255);
  EXPECT_EQ(Run("compare_graphs", {model_, model_, model_}), 255);
  EXPECT_EQ(Run("compare_graphs", {model_, "/does/not/exist"}), 255);
  EXPECT_EQ(Run("optctl", {"graph", "compare", model_, other, "-o", "json"}),
            1);
  const auto json = nlohmann::json::parse(output_);
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["differences"].size(), 4u);
}

TEST_F(GraphToolsTest, SummarizeGraphEndsWith255ForInvalidInputs) {
  EXPECT_EQ(Run("summarize_graph", {"--in_graph", model_}), 0);
  EXPECT_THAT(output_, HasSubstr("\nbenchmark_model --graph="));
  const std::string broken =
      Write("broken.pbtxt", R"(node { name: "y" op: "Relu" input: "gone" })");
  EXPECT_EQ(Run("summarize_graph", {"--in_graph=" + broken}), 255);
  EXPECT_THAT(output_, HasSubstr("Invalid input gone for node y\n"));
  EXPECT_EQ(Run("optctl", {"graph", "summarize", "--in_graph=" + model_,
                           "--print_structure", "-o", "json"}),
            0);
  EXPECT_EQ(nlohmann::json::parse(output_)["structure"].size(), 4u);
  EXPECT_EQ(Run("optctl",
                {"graph", "summarize", "--in_graph=" + model_, "-o", "csv"}),
            2);
}

TEST_F(GraphToolsTest, TransformGraphIsSilentAndEndsWith255) {
  EXPECT_EQ(Run("transform_graph",
                {"--in_graph=" + model_, "--out_graph", "out.pb", "--inputs=x",
                 "--outputs=y", "--transforms=strip_unused_nodes"}),
            0);
  EXPECT_EQ(output_, "");
  EXPECT_TRUE(Exists(Path("out.pb")));
  EXPECT_EQ(Run("transform_graph", {"--in_graph=" + model_}), 255);
  EXPECT_EQ(Run("transform_graph",
                {"--in_graph=" + model_, "--out_graph=o.pb", "--inputs=x",
                 "--outputs=y", "--transforms=no_such_transform"}),
            255);
  EXPECT_EQ(Run("transform_graph", {"--in_graph=" + model_, "leftover"}), 255);
  EXPECT_THAT(output_, HasSubstr("'leftover'"));
}

TEST_F(GraphToolsTest, GraphToDotWritesAndTells) {
  EXPECT_EQ(Run("graph_to_dot", {"--graph", model_, "--input_binary=False",
                                 "--dot_output", "m.dot"}),
            0);
  EXPECT_EQ(output_, "Created DOT file 'm.dot'.\n");
  EXPECT_THAT(ReadFile(Path("m.dot")).value_or(""),
              AllOf(StartsWith("digraph graphname {\n"),
                    HasSubstr("  \"x\" -> \"c\";\n")));
  EXPECT_EQ(
      Run("graph_to_dot", {"--graph=/does/not/exist", "--dot_output=m.dot"}),
      255);
  EXPECT_EQ(Run("graph_to_dot", {"--graph", model_}), 1);
}

TEST_F(GraphToolsTest, StripUnusedCountsWhatIsLeft) {
  EXPECT_EQ(Run("strip_unused",
                {"--input_graph", model_, "--output_graph", "out.pbtxt",
                 "--output_binary=False", "--input_node_names=c",
                 "--output_node_names=y", "--placeholder_type_enum=4"}),
            0);
  EXPECT_EQ(output_, "2 ops in the final graph.\n");
  EXPECT_THAT(ReadFile(Path("out.pbtxt")).value_or(""),
              AllOf(HasSubstr("name: \"c\""), HasSubstr("DT_UINT8")));
  EXPECT_EQ(Run("strip_unused",
                {"--input_graph", model_, "--output_graph", "out.pb",
                 "--input_node_names=c", "--output_node_names=nothing"}),
            1);
  EXPECT_THAT(output_, HasSubstr("nothing"));
  EXPECT_EQ(Run("strip_unused", {"--input_graph", model_}), 2);
}

TEST_F(GraphToolsTest, ImportPbToTensorboardWritesAnEventFile) {
  EXPECT_EQ(Run("import_pb_to_tensorboard",
                {"--model_dir", model_, "--log_dir", "logs/run"}),
            0);
  EXPECT_THAT(output_, HasSubstr("tensorboard --logdir=logs/run\n"));
  const auto files = ListFolder(Path("logs/run"));
  OPTFARM_ASSERT_OK(files);
  ASSERT_EQ(files->size(), 1u);
  EXPECT_THAT((*files)[0],
              MatchesRegex("events\\.out\\.tfevents\\.[0-9]+\\..+"));
  EXPECT_THAT(ReadFile(Path("logs/run/" + (*files)[0])).value_or(""),
              AllOf(HasSubstr("brain.Event:2"), HasSubstr("import/x")));
}

TEST_F(GraphToolsTest, DotDrawsWithGraphvizWhereItIs) {
  // A stand-in that notes what it was called with.
  const std::string program =
      Write("dot", "#!/bin/sh\necho \"$1 $2\" >> " + Path("called") +
                       "\nprintf '<svg/>' > \"$3\"\n");
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  environment_ = {{"PATH", folder_}};
  EXPECT_EQ(
      Run("optctl", {"graph", "dot", "--graph=" + model_, "--svg=a b.svg"}), 0)
      << output_;
  EXPECT_EQ(output_, "Created SVG file 'a b.svg'.\n");
  EXPECT_EQ(ReadFile(Path("called")).value_or(""), "-Tsvg -o\n");
  EXPECT_EQ(ReadFile(Path("a b.svg")).value_or(""), "<svg/>");
}

TEST_F(GraphToolsTest, DotSaysWhenGraphvizIsMissingOrFails) {
  environment_ = {{"PATH", folder_}};
  const std::vector<std::string> words = {"graph", "dot", "--graph=" + model_,
                                          "--svg=m.svg"};
  EXPECT_EQ(Run("optctl", words), 2);
  EXPECT_THAT(output_, HasSubstr("apt install graphviz"));
  const std::string program = Write("dot", "#!/bin/sh\necho no luck\nexit 3\n");
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  EXPECT_EQ(Run("optctl", words), 1);
  EXPECT_THAT(output_, AllOf(HasSubstr("exit code 3"), HasSubstr("no luck")));
  EXPECT_FALSE(Exists(Path("m.svg")));
}

std::vector<std::string> LabelImageWords(const std::string& labels) {
  return {"--graph",
          TestDataPath("models/mobilenet_v1_0.25_128/frozen_graph.pb"),
          "--labels",
          labels,
          "--image",
          TestDataPath("misc/grace_hopper.jpg"),
          "--input_width=128",
          "--input_height=128",
          "--input_mean=127.5",
          "--input_std=127.5",
          "--output_layer=MobilenetV1/Predictions/Reshape_1"};
}

TEST_F(GraphToolsTest, LabelImageNamesTheBestFive) {
  OPTFARM_REQUIRE_TEST_DATA();
  const std::vector<std::string> words =
      LabelImageWords(TestDataPath("misc/labels_mobilenet_1001.txt"));
  EXPECT_EQ(Run("label_image", words), 0);
  EXPECT_THAT(output_,
              MatchesRegex("458:bow tie[^\n]* \\(458\\): 0\\.23[0-9]*\n"
                           "835:suit[^\n]* \\(835\\): 0\\.22[0-9]*\n"
                           "653:military uniform \\(653\\): 0\\.14[0-9]*\n"
                           "[^\n]*\n[^\n]*\n"));
  std::vector<std::string> test = words;
  test.push_back("--self_test");
  EXPECT_EQ(Run("label_image", test), 2);
  std::vector<std::string> json = words;
  json.insert(json.begin(), {"graph", "label-image", "-o", "json"});
  EXPECT_EQ(Run("optctl", json), 0);
  EXPECT_EQ(nlohmann::json::parse(output_)[0]["index"], 458);
}

TEST_F(GraphToolsTest, LabelImageTellsThatLabelsAreNotThoseOfTheScores) {
  OPTFARM_REQUIRE_TEST_DATA();
  EXPECT_EQ(Run("label_image", LabelImageWords(Write("few", "yes\nno\n"))), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr(" (458): 0.23"), HasSubstr("2 labels"),
                             HasSubstr("1001 scores")));
}

// Type, size and scale of the input, names of tensors and classes are the
// file's.
TEST_F(GraphToolsTest, LabelImageTakesWhatATfliteFileSaysOfItself) {
  OPTFARM_REQUIRE_TEST_DATA();
  const std::vector<std::string> words = {
      "graph",
      "label-image",
      "--graph",
      TestDataPath("interchange/models/tflite/mobilenet_v2_quant.tflite"),
      "--image",
      TestDataPath("misc/grace_hopper.jpg")};
  EXPECT_EQ(Run("optctl", words), 0) << output_;
  EXPECT_THAT(output_, MatchesRegex("military uniform \\(653\\): [0-9]+\n"
                                    "([^\n]*\n){4}"));
}

TEST_F(GraphToolsTest, LabelImageErrorsAre255) {
  EXPECT_EQ(Run("label_image", {}), 255);
  EXPECT_THAT(output_, HasSubstr("inception_v3_2016_08_28_frozen.pb"));
  EXPECT_EQ(Run("label_image", {"--input_std=0"}), 255);
}

// Both were made by TensorFlow's own tool; the second kept no `shape`, which
// later ones do.
TEST_F(GraphToolsTest, OptimizeForInferenceMakesWhatTheOriginalMade) {
  OPTFARM_REQUIRE_TEST_DATA();
  EXPECT_EQ(Run("optimize_for_inference",
                {"--input",
                 TestDataPath("models/charrnn_lstm/frozen_model_mobile.pb"),
                 "--output=o.pb", "--input_names=input_data",
                 "--output_names=probs", "--placeholder_type_enum=3"}),
            0)
      << output_;
  EXPECT_EQ(Run("compare_graphs",
                {"o.pb", TestDataPath("models/charrnn_lstm/"
                                      "rnn_optimized_model_mobile.pb")}),
            0)
      << output_;
  EXPECT_EQ(Run("optimize_for_inference",
                {"--input",
                 TestDataPath("models/poets_flowerlike/"
                              "retrained_graph.pb"),
                 "--output=p.pb", "--input_names=input",
                 "--output_names=final_result", "--frozen_graph=True"}),
            0)
      << output_;
  EXPECT_EQ(Run("optctl", {"graph", "compare", "p.pb",
                           TestDataPath("models/poets_flowerlike/"
                                        "optimized_graph.pb"),
                           "-o", "json"}),
            1);
  const auto differences = nlohmann::json::parse(output_)["differences"];
  ASSERT_EQ(differences.size(), 1u) << output_;
  EXPECT_THAT(differences[0].get<std::string>(),
              StartsWith("Node 'input' has attribute 'shape' only in the first "
                         "graph"));
}

TEST_F(GraphToolsTest, OptimizeForInferenceFollowsItsFlags) {
  EXPECT_EQ(
      Run("optimize_for_inference",
          {"--input", model_, "--output", "o.pbtxt", "--frozen_graph=False",
           "--input_names=x", "--output_names=z"}),
      0)
      << output_;
  EXPECT_EQ(output_, "");
  const auto graph = formats::LoadGraphDef(Path("o.pbtxt"));
  OPTFARM_ASSERT_OK(graph);
  ASSERT_EQ(graph->node_size(), 3);
  EXPECT_EQ(graph->node(1).input(0), "x");
  EXPECT_EQ(
      Run("optimize_for_inference", {"--input=/does/not/exist", "--output=o.pb",
                                     "--input_names=x", "--output_names=z"}),
      255);
  EXPECT_EQ(
      Run("optimize_for_inference", {"--input", model_, "--output=o.pb",
                                     "--input_names=w", "--output_names=z"}),
      1);
}

TEST_F(GraphToolsTest, PrintSelectiveRegistrationHeaderWarnsOfUnknownOps) {
  const std::string graph = Write("bias.pbtxt", R"(
    node { name: "a" op: "BiasAdd" input: "x" input: "b"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "n" op: "NobodysOp" }
    node { name: "x" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "b" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } } })");
  EXPECT_EQ(Run("print_selective_registration_header",
                {"--graphs=" + graph, "--default_ops="}),
            0);
  EXPECT_THAT(output_,
              AllOf(HasSubstr("Warning: no kernel found for op NobodysOp\n"),
                    HasSubstr("\"BiasOp<CPUDevice, float>\",\n"
                              "\"PlaceholderOp\",\n};\n"),
                    HasSubstr("#define OPS_TO_REGISTER\n")));
  EXPECT_EQ(
      Run("optctl", {"graph", "required-ops", "--graphs=" + graph, "--list"}),
      0);
  EXPECT_THAT(output_, HasSubstr("\nBiasAdd float\nPlaceholder float\n"));
  EXPECT_EQ(Run("optctl",
                {"graph", "required-ops", "--graphs=" + graph, "-o", "json"}),
            0);
  const auto json = nlohmann::json::parse(output_);
  EXPECT_EQ(json[0]["op"], "BiasAdd");
  EXPECT_EQ(json[0]["tensorflow_kernels"][0], "BiasOp<CPUDevice, float>");
  EXPECT_EQ(json[1]["in_runtime"], false);
  EXPECT_EQ(Run("print_selective_registration_header", {}), 2);
  EXPECT_EQ(Run("print_selective_registration_header",
                {"--graphs=" + graph, "--default_ops=NoOp"}),
            1);
}

TEST_F(GraphToolsTest, CompatTellsWhatIsMissingAndWhatTakesItAway) {
  EXPECT_EQ(Run("optctl", {"graph", "compat", "--in_graph=" + model_}), 0);
  EXPECT_EQ(output_, "Nothing is missing: all 4 nodes are known to runtime.\n");
  const std::string graph = Write("late.pbtxt", R"(
    node { name: "x" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "AddV2" input: "x" input: "x"
      attr { key: "T" value { type: DT_FLOAT } } })");
  EXPECT_EQ(Run("optctl", {"graph", "compat", "--in_graph=" + graph,
                           "--target=tensorflow-1.4", "-o", "json"}),
            1);
  const auto json = nlohmann::json::parse(output_);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["op"], "AddV2");
  EXPECT_EQ(json[0]["remedy"], "rename_op(old_op_name=AddV2, new_op_name=Add)");
}

TEST_F(GraphToolsTest, CompatTellsWhatOtherRuntimesCannotRun) {
  const std::string bad = Write("bad.pbtxt", R"(
    node { name: "x" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 4 } } } } }
    node { name: "y" op: "Relu" input: "x"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "z" op: "NobodysOp" input: "y" })");
  for (const std::string target : {"onnxruntime", "tflite"}) {
    EXPECT_EQ(Run("optctl", {"graph", "compat", "--in_graph=" + model_,
                             "--outputs=z", "--target=" + target}),
              0)
        << output_;
    EXPECT_THAT(output_, HasSubstr("known to " + target));
    EXPECT_THAT(output_, HasSubstr("graph convert makes the file"));
    EXPECT_EQ(
        Run("optctl", {"graph", "compat", "--in_graph=" + bad, "--outputs=z",
                       "--target=" + target, "-o", "json"}),
        1);
    const auto json = nlohmann::json::parse(output_);
    ASSERT_GE(json.size(), 1u) << output_;
    EXPECT_EQ(json[0]["op"], "NobodysOp");
    EXPECT_EQ(json[0]["example"], "z");
  }
  EXPECT_EQ(Run("optctl", {"graph", "compat", "--in_graph=" + model_,
                           "--target=optfarm"}),
            0);
  EXPECT_EQ(Run("optctl", {"graph", "compat", "--in_graph=" + model_,
                           "--target=pytorch"}),
            2);
}

TEST_F(GraphToolsTest, FilesThatDeclareTheirEndsNeedNoFlagsForThem) {
  const std::string float_model = Write("float.pbtxt", R"(
    node { name: "x" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "y" op: "Relu" input: "x"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "z" op: "Neg" input: "y"
      attr { key: "T" value { type: DT_FLOAT } } })");
  for (const std::string file : {"m.onnx", "m.tflite"}) {
    ASSERT_EQ(Run("optctl", {"graph", "convert", "--in_graph=" + float_model,
                             "--out_graph=" + file}),
              0)
        << output_;
    EXPECT_EQ(Run("optctl", {"graph", "compat", "--in_graph=" + file}), 0);
    // Without outputs this transform would refuse to work.
    EXPECT_EQ(Run("optctl",
                  {"graph", "transform", "--in_graph=" + file,
                   "--out_graph=out.pb", "--transforms=strip_unused_nodes"}),
              0)
        << output_;
    EXPECT_EQ(Run("optctl", {"graph", "transform", "--in_graph=" + file,
                             "--out_graph=out.pb", "--outputs=zz",
                             "--transforms=strip_unused_nodes"}),
              2);
    EXPECT_THAT(output_, AllOf(HasSubstr("--outputs: "), HasSubstr("'zz'"),
                               HasSubstr("the nearest is 'z'")));
  }
}

}  // namespace
}  // namespace optfarm::client_cli
