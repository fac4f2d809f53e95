// The real optctl program: exit codes and messages, without a server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "client_cli/command_table.h"
#include "tests/support/test_data.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::ProgramPath;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kModel[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } } } } }
  node { name: "w" op: "Const"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT
      tensor_shape { dim { size: 2 } dim { size: 2 } }
      float_val: 1 float_val: 2 float_val: 3 float_val: 4 } } } }
  node { name: "a/y" op: "MatMul" input: "x" input: "w"
    attr { key: "T" value { type: DT_FLOAT } } }
)";

class OptctlTest : public ::testing::Test {
 protected:
  OptctlTest() : folder_(FreshFolder()) {
    if (!Exists(ProgramPath("optctl"))) return;
    model_ = Write("model.pbtxt", kModel);
  }
  void SetUp() override {
    if (!Exists(ProgramPath("optctl"))) GTEST_SKIP() << "optctl is not built";
  }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = JoinPath(folder_, name);
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return path;
  }

  // Runs optctl; returns its exit code and fills output_ with stdout and
  // stderr.
  int Run(std::vector<std::string> words) {
    const std::string log = JoinPath(folder_, absl::StrCat("log", ++runs_));
    SubprocessOptions options;
    options.argv = std::move(words);
    options.argv.insert(options.argv.begin(), ProgramPath("optctl"));
    options.output_file = log;
    options.environment = environment_;
    absl::StatusOr<Subprocess> child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok()) return -1;
    const auto exit = child->Wait(absl::Minutes(1));
    EXPECT_TRUE(exit.has_value());
    output_ = ReadFile(log).value_or("");
    return exit ? exit->exit_code : -1;
  }

  const std::string folder_;
  // Nobody listens on the discard port.
  std::vector<std::pair<std::string, std::string>> environment_ = {
      {"OPTFARM_SERVER", "127.0.0.1:9"}};
  std::string model_;
  int runs_ = 0;
  std::string output_;
};

TEST_F(OptctlTest, HelpAndVersionSucceed) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("submit"), HasSubstr("graph benchmark"),
                             HasSubstr("Exit codes:")));
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_THAT(output_, StartsWith("optctl "));
}

#ifdef OPTFARM_FAST_KERNELS
TEST_F(OptctlTest, VersionPrintsTheMicroKernelsAndWhichAreUsed) {
  const std::string portable =
      "int8_gemm_portable,portable,12,32,4,indirect,int32,";
  EXPECT_EQ(Run({"version", "--kernels", "--format=csv"}), 0);
  EXPECT_THAT(output_, StartsWith("kernel,instruction_sets,mr,nr,kr,"));
  EXPECT_THAT(output_, HasSubstr(absl::StrCat("\n", portable)));
  environment_.push_back({"OPTFARM_CPU", "portable"});
  EXPECT_EQ(Run({"version", "--kernels", "--format=csv"}), 0);
  EXPECT_THAT(output_, HasSubstr(absl::StrCat("\n", portable, "used\n")));
  const std::vector<std::string> lines = absl::StrSplit(output_, '\n');
  for (const std::string& line : lines) {
    if (absl::StrContains(line, "_portable,")) continue;
    EXPECT_FALSE(absl::EndsWith(line, ",used")) << line;
  }
}
#endif

TEST_F(OptctlTest, EveryHelpPageFitsIntoEightyCharactersAndSaysThingsOnce) {
  std::vector<std::string> pages = {"", "graph"};
  for (const CommandInfo& info : AllCommands()) pages.push_back(info.name);
  for (const std::string& page : pages) {
    std::vector<std::string> words =
        absl::StrSplit(page, ' ', absl::SkipEmpty());
    words.push_back("--help");
    EXPECT_EQ(Run(words), 0) << page;
    if (!page.empty()) {
      EXPECT_THAT(output_, StartsWith(absl::StrCat("Usage: optctl ", page)));
    }
    // Said by the flag's kind, not by its text too.
    EXPECT_THAT(absl::StrReplaceAll(output_, {{" ", ""}, {"\n", ""}}),
                Not(HasSubstr("severaltimes.Maybegivenseveraltimes.")))
        << page;
    for (absl::string_view line : absl::StrSplit(output_, '\n')) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

TEST_F(OptctlTest, WrongUsageIsOneLineAndCodeTwo) {
  EXPECT_EQ(Run({"submit"}), 2);
  EXPECT_EQ(output_, "optctl: MODEL is missing (see optctl submit --help)\n");
  EXPECT_EQ(Run({"sumbit", "x"}), 2);
  EXPECT_THAT(output_, HasSubstr("'submit'"));
  EXPECT_EQ(Run({"get", "j1", "--server=nonsense"}), 2);
  EXPECT_EQ(Run({"get", "j1", "--token_file=/does/not/exist"}), 2);
  EXPECT_THAT(output_, HasSubstr("/does/not/exist"));
}

TEST_F(OptctlTest, UnreachableServerIsCodeFive) {
  EXPECT_EQ(Run({"list"}), 5);
  EXPECT_THAT(output_, AllOf(StartsWith("optctl: cannot reach the server at "
                                        "127.0.0.1:9: "),
                             HasSubstr("is optfarm-server running there?")));
  EXPECT_EQ(Run({"submit", model_, "--recipe=fp32"}), 5);
  EXPECT_EQ(Run({"watch", "j1"}), 5);
  EXPECT_EQ(Run({"logs", "j1", "-f"}), 5);
}

TEST_F(OptctlTest, WrongModelsAreNamedForWhatTheyAre) {
  EXPECT_EQ(Run({"submit", "/does/not/exist.pb", "--recipe=fp32"}), 2);
  EXPECT_THAT(output_, HasSubstr("/does/not/exist.pb"));
  const std::string text = Write("notes.pb", "hello, this is no graph at all");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"submit", text, "--recipe=fp32"},
        {"run", text, "--recipe=fp32"},
        {"graph", "summarize", "--in_graph=" + text},
        {"graph", "run", "--in_graph=" + text, "--output=y",
         "--out_dir=" + folder_}}) {
    EXPECT_EQ(Run(words), 2) << output_;
    EXPECT_THAT(output_, HasSubstr("notes.pb"));
  }
  EXPECT_EQ(Run({"graph", "summarize", "--in_graph=" + folder_}), 2);
}

TEST_F(OptctlTest, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_EQ(Run({"recipes", "int9"}), 2);
  EXPECT_THAT(output_, HasSubstr("'int8'"));
  EXPECT_EQ(Run({"transforms", "fold_constant"}), 2);
  EXPECT_THAT(output_, HasSubstr("'fold_constants'"));
  EXPECT_EQ(Run({"transforms", "zzz"}), 2);
  EXPECT_THAT(output_, HasSubstr("'zzz' not recognized; optctl transforms "
                                 "lists them"));
  EXPECT_EQ(Run({"graph", "transform", "--in_graph=" + model_,
                 "--out_graph=" + folder_ + "/o.pb", "--outputs=a/y",
                 "--transforms=fold_constant"}),
            2);
  EXPECT_THAT(output_, AllOf(StartsWith("optctl: --transforms: "),
                             HasSubstr("'fold_constants'")));
  EXPECT_EQ(Run({"graph", "run", "--in_graph=" + model_, "--output=a/z",
                 "--out_dir=" + folder_}),
            2);
  EXPECT_THAT(output_, HasSubstr("a/y"));
}

TEST_F(OptctlTest, RecipesAndTransformsDescribeThemselves) {
  EXPECT_EQ(Run({"recipes"}), 0);
  for (const char* name : {"fp32", "int8", "weights8", "round"}) {
    EXPECT_THAT(output_, HasSubstr(name));
    EXPECT_EQ(Run({"recipes", name}), 0);
    EXPECT_THAT(output_, HasSubstr("transforms:"));
    const std::string copy = Write("copy.yaml", output_);
    EXPECT_EQ(Run({"recipes", copy}), 0) << output_;
    EXPECT_EQ(Run({"recipes"}), 0);
  }
  EXPECT_EQ(Run({"transforms", "-o", "csv"}), 0);
  EXPECT_THAT(output_, AllOf(StartsWith("name,summary\n"),
                             HasSubstr("\nquantize_weights,")));
  EXPECT_EQ(Run({"transforms", "quantize_weights"}), 0);
  EXPECT_THAT(output_, HasSubstr("minimum_size"));
}

TEST_F(OptctlTest, GraphTransformWritesAndTells) {
  const std::string out = JoinPath(folder_, "out.pbtxt");
  EXPECT_EQ(Run({"graph", "transform", "--in_graph=" + model_, "--out_graph",
                 out, "--inputs=x", "--outputs=a/y",
                 "--transforms=strip_unused_nodes sort_by_execution_order",
                 "--output_as_text"}),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("strip_unused_nodes"));
  EXPECT_THAT(ReadFile(out).value_or(""), HasSubstr("name: \"a/y\""));
  for (const char* transforms : {" ", "foo(a=b", "fold_constants,round_weights",
                                 "strip_unused_nodes(typo=1)"}) {
    EXPECT_EQ(
        Run({"graph", "transform", "--in_graph=" + model_, "--out_graph=" + out,
             "--outputs=a/y", absl::StrCat("--transforms=", transforms)}),
        2)
        << transforms << ": " << output_;
  }
}

TEST_F(OptctlTest, GraphTransformExplains) {
  const std::string out = JoinPath(folder_, "small.pb");
  const auto explain = [&](const std::string& format) {
    return Run({"graph", "transform", "--in_graph=" + model_,
                "--out_graph=" + out, "--inputs=x", "--outputs=a/y",
                "--transforms=insert_logging obfuscate_names", "--explain",
                "-o", format});
  };
  EXPECT_EQ(explain("table"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("added: "));
  EXPECT_THAT(output_, HasSubstr("left a/y alone: nothing reads it"));
  EXPECT_EQ(explain("json"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("{\"node\":\"a/y\",\"reason\":"));
  EXPECT_THAT(output_, HasSubstr("\"to\":\"Print\""));
  EXPECT_EQ(explain("csv"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("insert_logging,a/y,nothing reads it"));
  // The names are kept beside the graph.
  EXPECT_THAT(ReadFile(out + ".name_map.tsv").value_or(""),
              HasSubstr("\tx__print__\n"));
}

TEST_F(OptctlTest, GraphRunFeedsAndFetchesAnyTensor) {
  // numpy.save of float32 [[1, 1]].
  std::string npy("\x93NUMPY\x01\x00\x76\x00", 10);
  npy += "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  npy.resize(127, ' ');
  npy += "\n";
  const float ones[] = {1, 1};
  npy.append(reinterpret_cast<const char*>(ones), sizeof(ones));
  const std::string input = Write("x.npy", npy);
  const std::string out = JoinPath(folder_, "answers");
  EXPECT_EQ(Run({"graph", "run", "--in_graph=" + model_, "--input=x=" + input,
                 "--output=a/y", "--output=a/y:0", "--out_dir=" + out}),
            0)
      << output_;
  const std::string answer = ReadFile(JoinPath(out, "a__y.npy")).value_or("");
  ASSERT_EQ(answer.size(), npy.size());
  EXPECT_EQ(reinterpret_cast<const float*>(answer.data() + 128)[0], 4);
  EXPECT_EQ(reinterpret_cast<const float*>(answer.data() + 128)[1], 6);
  EXPECT_TRUE(Exists(JoinPath(out, "a__y_0.npy")));
  // A tensor in the middle of the graph.
  EXPECT_EQ(Run({"graph", "run", "--in_graph=" + model_,
                 "--input=a/y:0=" + input, "--output=a/y", "--out_dir=" + out}),
            0)
      << output_;
  EXPECT_EQ(Run({"graph", "run", "--in_graph=" + model_, "--input=x",
                 "--output=a/y", "--out_dir=" + out}),
            2);
  EXPECT_THAT(output_, HasSubstr("NAME=FILE.npy"));
}

TEST_F(OptctlTest, GraphSummarizeSuggestsABenchmarkThatRuns) {
  EXPECT_EQ(
      Run({"graph", "summarize", "--in_graph=" + model_, "--print_structure"}),
      0);
  EXPECT_THAT(output_, AllOf(HasSubstr("Found 1 possible inputs: (name=x, "
                                       "type=float(1), shape=[1,2]) "),
                             HasSubstr("a/y (MatMul): [x, w]")));
  EXPECT_EQ(Run({"graph", "benchmark", "--graph=" + model_, "--show_flops",
                 "--input_layer=x", "--input_layer_type=float",
                 "--input_layer_shape=1,2", "--output_layer=a/y",
                 "--num_runs=5", "--min_secs=0.01", "--max_secs=5"}),
            0)
      << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("MEDIAN"), HasSubstr("MatMul"),
                             HasSubstr("FLOPs estimate: 8")));
}

TEST_F(OptctlTest, RunDoesTheWholeJobHere) {
  const std::string out = JoinPath(folder_, "kept");
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--threads=1", "--min_runs=5",
                 "--max_time=5s", "--out_graph=" + folder_ + "/opt.pb",
                 "--out_dir=" + out}),
            0)
      << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("VERDICT"), HasSubstr("baseline"),
                             HasSubstr("\nSUCCEEDED\n")));
  EXPECT_TRUE(Exists(folder_ + "/opt.pb"));
  EXPECT_TRUE(Exists(JoinPath(out, "report.json")));
}

TEST_F(OptctlTest, RunKeepsTheJobsFilesAndNotItsOwn) {
  const std::string out = JoinPath(folder_, "kept");
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--measure=false",
                 "--out_dir=" + out}),
            0)
      << output_;
  EXPECT_THAT(ListFolder(out).value_or(std::vector<std::string>()),
              AllOf(Contains("optimized.pb"), Contains("report.json"),
                    Not(Contains("outcome.pb"))));
}

TEST_F(OptctlTest, RunWritesAReport) {
  const std::string path = JoinPath(folder_, "report.md");
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--threads=1", "--min_runs=5",
                 "--max_time=5s", "--out_report=" + path}),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("Report: " + path));
  EXPECT_THAT(ReadFile(path).value_or(""),
              AllOf(StartsWith("### "), HasSubstr("\\(fp32\\)"),
                    HasSubstr("| float |"), HasSubstr("| fp32 |")));
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--out_report=/gone/r.html"}),
            2);
  EXPECT_THAT(output_, StartsWith("optctl: --out_report: creating '/gone/r"));
}

TEST_F(OptctlTest, RunWritesEachFormat) {
  const std::string out = JoinPath(folder_, "kept");
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"run", model_, "--recipe=fp32", "--measure=false"});
    return Run(std::move(flags));
  };
  EXPECT_EQ(run({"--out_dir=" + out, "--out_format=onnx,tflite",
                 "--out_graph=" + folder_ + "/it.tflite"}),
            0)
      << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("\nFormats:\n  optimized.onnx: onnx"),
                             HasSubstr("read back: all"),
                             HasSubstr("it.tflite: tflite, ")));
  EXPECT_EQ(ReadFile(out + "/optimized.tflite").value_or("none"),
            ReadFile(folder_ + "/it.tflite").value_or("missing"));
  for (const char* name : {"kept/optimized.onnx", "it.tflite"}) {
    EXPECT_EQ(Run({"graph", "summarize", "--in_graph=" + folder_ + "/" + name}),
              0)
        << output_;
  }
  // A name that says nothing is of the one format asked for.
  EXPECT_EQ(run({"--out_graph=" + folder_ + "/bare", "--out_format=onnx"}), 0)
      << output_;
  EXPECT_EQ(ReadFile(folder_ + "/bare").value_or("none"),
            ReadFile(out + "/optimized.onnx").value_or("missing"));
  EXPECT_EQ(run({"--out_graph=" + folder_ + "/text.pbtxt"}), 0) << output_;
  EXPECT_THAT(ReadFile(folder_ + "/text.pbtxt").value_or(""),
              HasSubstr("name: \"a/y\""));
  EXPECT_EQ(run({"--out_format=onnx"}), 2);
  EXPECT_THAT(output_, HasSubstr("needs --out_dir or --out_graph"));
  EXPECT_EQ(run({"--out_dir=" + out, "--out_format=pt"}), 2);
  EXPECT_THAT(output_, HasSubstr("'pt' is not pb, onnx or tflite"));
  EXPECT_EQ(run({"--out_graph=" + out + "/x.onnx", "--out_format=tflite"}), 2);
  EXPECT_THAT(output_, HasSubstr("asks for onnx, which --out_format does not"));
  EXPECT_EQ(run({"--out_graph=" + out + "/x", "--out_format=pb,tflite"}), 2);
  EXPECT_THAT(output_, HasSubstr("does not say which"));
}

TEST_F(OptctlTest, AFormatThatCannotBeWrittenEndsWithAllReasons) {
  const std::string model = Write("beta.pbtxt", absl::StrCat(kModel, R"(
        node { name: "b" op: "Digamma" input: "a/y"
          attr { key: "T" value { type: DT_FLOAT } } }
        node { name: "c" op: "Lgamma" input: "b"
          attr { key: "T" value { type: DT_FLOAT } } })"));
  const std::string file = folder_ + "/it.tflite";
  const std::vector<std::string> words = {
      "run", model, "--recipe=fp32", "--measure=false", "--out_graph=" + file};
  EXPECT_EQ(Run(words), 6) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("not tflite, which cannot hold"),
                             HasSubstr("    Digamma: "),
                             HasSubstr("    Lgamma: "), HasSubstr("FAILED")));
  EXPECT_FALSE(Exists(file));
  // Where the graph is asked for too, the job is done and the file is missed.
  std::vector<std::string> both = words;
  both.push_back("--out_format=pb,tflite");
  EXPECT_EQ(Run(both), 6) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("SUCCEEDED"),
                             HasSubstr("cannot be written as tflite:\n")));
  both[4] = "--out_dir=" + folder_ + "/kept";
  EXPECT_EQ(Run(both), 0) << output_;
  EXPECT_TRUE(Exists(folder_ + "/kept/optimized.pb"));
}

TEST_F(OptctlTest, RunLooksBeforeItWorks) {
  const std::string empty = JoinPath(folder_, "empty");
  ASSERT_TRUE(MakeFolders(empty).ok());
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--calibration=" + empty}), 2);
  EXPECT_THAT(output_, StartsWith("optctl: --calibration: '" + empty));
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--out_graph=/gone/o.pb"}), 2);
  EXPECT_THAT(output_, StartsWith("optctl: --out_graph: creating '/gone/o.pb"));
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--out_graph=" + empty}), 2);
  EXPECT_THAT(output_, HasSubstr("is a folder; give a file's name"));
  EXPECT_EQ(Run({"run", model_, "--recipe=fp32", "--out_dir=" + model_}), 2);
  EXPECT_THAT(output_, StartsWith("optctl: --out_dir: "));
}

TEST_F(OptctlTest, RunWithAFailedGateIsFailed) {
  const std::string recipe =
      Write("strict.yaml",
            "name: strict\ntransforms:\n  - sort_by_execution_order\n"
            "verification:\n  allow_random_inputs: true\n"
            "bounds:\n  max_size_ratio: 0.1\n");
  EXPECT_EQ(Run({"run", model_, "--recipe=" + recipe, "--measure=false"}), 6)
      << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("FAILED"), HasSubstr("max_size_ratio"),
                             Not(HasSubstr("SUCCEEDED"))));
}

TEST_F(OptctlTest, StandardInputAndOutputStandForFiles) {
  const std::string out = JoinPath(folder_, "out.pb");
  const std::string optctl = ProgramPath("optctl");
  const auto shell = [&](const std::string& line) {
    SubprocessOptions options;
    options.argv = {"/bin/sh", "-c", line};
    options.output_file = JoinPath(folder_, "shell.log");
    auto child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok());
    const auto exit = child->Wait(absl::Minutes(1));
    output_ = ReadFile(options.output_file).value_or("");
    return exit ? exit->exit_code : -1;
  };
  EXPECT_EQ(shell(absl::StrCat("cat ", model_, " | ", optctl,
                               " graph transform --in_graph=- --out_graph=- "
                               "--outputs=a/y --transforms=strip_unused_nodes"
                               " > ",
                               out)),
            0)
      << output_;
  EXPECT_EQ(Run({"graph", "summarize", "--in_graph=" + out}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("MatMul"));
  EXPECT_EQ(shell(absl::StrCat("cat ", model_, " | ", optctl,
                               " run - --recipe=fp32 --measure=false "
                               "--out_graph=- > ",
                               out)),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("SUCCEEDED"));
  EXPECT_EQ(Run({"graph", "summarize", "--in_graph=" + out}), 0) << output_;
}

TEST_F(OptctlTest, ErrorsAreJsonWhereJsonWasAskedFor) {
  EXPECT_EQ(Run({"get", "j1", "-o", "json", "--server=nonsense"}), 2);
  const auto json = nlohmann::json::parse(output_)["error"];
  EXPECT_EQ(json["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(json["exit_code"], 2);
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("nonsense"));
  EXPECT_EQ(Run({"sumbit", "--format=json"}), 2);
  EXPECT_THAT(output_, StartsWith("{\"error\": "));
}

TEST_F(OptctlTest, YamlIsWhatJsonSays) {
  EXPECT_EQ(Run({"recipes", "-o", "yaml"}), 0);
  EXPECT_THAT(output_, StartsWith("- "));
  EXPECT_THAT(output_, HasSubstr("name: int8\n"));
}

TEST_F(OptctlTest, ManualPagesAreMadeForEveryCommand) {
  EXPECT_EQ(Run({"__man", folder_}), 0) << output_;
  for (const CommandInfo& info : AllCommands()) {
    const std::string path = JoinPath(
        folder_,
        absl::StrCat("optctl-", absl::StrReplaceAll(info.name, {{" ", "-"}}),
                     ".1"));
    const std::string page = ReadFile(path).value_or("");
    EXPECT_THAT(page, StartsWith(".TH \"OPTCTL-")) << path;
    EXPECT_THAT(page, HasSubstr("\n.SH SYNOPSIS\noptctl "));
    // A line that begins with a dot is a request that troff knows.
    for (const absl::string_view line : absl::StrSplit(page, '\n')) {
      if (!absl::StartsWith(line, ".")) continue;
      const std::vector<std::string> words =
          absl::StrSplit(line, absl::MaxSplits(' ', 1));
      EXPECT_THAT(words[0], ::testing::AnyOf(".TH", ".SH", ".SS", ".TP", ".PP",
                                             ".nf", ".fi", ".BR"))
          << line;
    }
  }
  EXPECT_THAT(ReadFile(JoinPath(folder_, "optctl.1")).value_or(""),
              AllOf(HasSubstr(".SS Jobs\n"), HasSubstr("OPTFARM_CONTEXT"),
                    HasSubstr("missed a gate")));
}

TEST_F(OptctlTest, CompletionScriptsAreForThreeShells) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(Run({"completion", shell}), 0);
    EXPECT_THAT(output_, HasSubstr("__complete"));
  }
  EXPECT_EQ(Run({"completion"}), 2);
  EXPECT_EQ(Run({"__complete", "--t", "graph", "transform"}), 0);
  EXPECT_THAT(output_, AllOf(StartsWith(":words\n"), HasSubstr("--transforms="),
                             HasSubstr("--tls_ca=")));
  EXPECT_EQ(Run({"__complete", "", "graph", "transform", "--in_graph"}), 0);
  EXPECT_EQ(output_, ":files\n");
  // Nobody answers there; the list has what needs no server.
  EXPECT_EQ(Run({"__complete", "la", "get"}), 0);
  EXPECT_EQ(output_, ":words\nlatest\n");
}

}  // namespace
}  // namespace optfarm::client_cli
