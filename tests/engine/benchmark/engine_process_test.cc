// Runtimes that a user ships: a fake TensorFlow Lite that does what its model's
// one word says, and ONNX Runtime itself where OPTFARM_ONNXRUNTIME names its
// shared library.

#include "engine/benchmark/engine_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/benchmark/benchmark.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::benchmark {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::ProgramPath;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// y = x + x.
constexpr char kDouble[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 4 } } } } }
node { name: "y" op: "Add" input: "x" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

EngineOptions Fake() {
  EngineOptions options;
  options.name = "tflite";
  options.library = OPTFARM_FAKE_TFLITE;
  options.program = ProgramPath("optfarm-engine");
  return options;
}

class EngineProcessTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& content) {
    const std::string path = JoinPath(folder_, name);
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return path;
  }

  // Our y = x + x beside what the fake does with `word`.
  absl::StatusOr<std::vector<v1::Measurement>> Measure(
      const std::string& word, const EngineOptions& options = Fake()) {
    BenchmarkRequest request;
    request.variants = {{"float", File("double.pbtxt", kDouble), {}, {}}};
    BenchmarkVariant theirs;
    theirs.name = "float@tflite";
    theirs.graph_path = File("model.tflite", word);
    theirs.same_as = "float";
    absl::StatusOr<std::unique_ptr<EngineProcess>> engine =
        EngineProcess::Start(options);
    if (!engine.ok()) return engine.status();
    theirs.engine = *std::move(engine);
    request.variants.push_back(theirs);
    request.threads = {1, 2};
    request.min_runs = 12;
    request.min_time = absl::ZeroDuration();
    outcomes_.clear();
    return RunBenchmark(request, nullptr, &outcomes_);
  }

  // What is said of an engine that does not run the model, beside the
  // measurements of Optfarm's runtime.
  void ExpectFailure(const std::string& word, const std::string& reason,
                     const EngineOptions& options = Fake()) {
    SCOPED_TRACE(word);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<v1::Measurement> all,
                                 Measure(word, options));
    ASSERT_EQ(all.size(), 2u);
    for (const v1::Measurement& m : all) {
      EXPECT_EQ(m.variant(), "float");
      EXPECT_EQ(m.runs(), 12);
    }
    ASSERT_EQ(outcomes_.size(), 2u);
    for (const EngineOutcome& outcome : outcomes_) {
      EXPECT_EQ(outcome.variant, "float@tflite");
      EXPECT_THAT(outcome.failure,
                  AllOf(HasSubstr("tflite: "), HasSubstr(reason)));
    }
  }

  const std::string folder_ = FreshFolder();
  std::vector<EngineOutcome> outcomes_;
};

TEST_F(EngineProcessTest, MeasuresInTurnsAndComparesAnswers) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<v1::Measurement> all,
                               Measure("double"));
  ASSERT_EQ(all.size(), 4u);
  for (const size_t i : {1u, 3u}) {
    const v1::Measurement& m = all[i];
    EXPECT_EQ(m.variant(), "float@tflite");
    EXPECT_EQ(m.threads(), i == 1 ? 1 : 2);
    EXPECT_EQ(m.runs(), 12);
    EXPECT_GT(m.load_us(), 0);
    EXPECT_GT(m.peak_memory_bytes(), 0);
    EXPECT_EQ(m.inputs_fed(), all[i - 1].inputs_fed());
    EXPECT_EQ(m.file_size_bytes(), 6);
    EXPECT_TRUE(m.numeric_check().passed());
    EXPECT_EQ(m.numeric_check().max_abs_error(), 0);
    EXPECT_GT(m.numeric_check().max_abs_value(), 0);
    EXPECT_EQ(m.numeric_check().outputs(), 1);
  }
  ASSERT_EQ(outcomes_.size(), 2u);
  for (const EngineOutcome& outcome : outcomes_) {
    EXPECT_EQ(outcome.engine, "tflite");
    EXPECT_EQ(outcome.version, "9.9.9 -fake");
    EXPECT_EQ(outcome.failure, "");
  }
  EXPECT_EQ(outcomes_[1].threads, 2);
}

TEST_F(EngineProcessTest, SaysHowFarAnswersAreApart) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<v1::Measurement> all,
                               Measure("wrong"));
  ASSERT_EQ(all.size(), 4u);
  const v1::NumericCheck& check = all[1].numeric_check();
  EXPECT_FALSE(check.passed());
  EXPECT_NEAR(check.max_abs_error(), 1, 1e-5);
  EXPECT_THAT(check.message(), AllOf(HasSubstr("tflite 9.9.9 -fake differs"),
                                     HasSubstr(" dB)")));
}

TEST_F(EngineProcessTest, ARuntimeMayPrintAndReadWhatItLikes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<v1::Measurement> all,
                               Measure("print"));
  EXPECT_EQ(all.size(), 4u);
}

TEST_F(EngineProcessTest, SaysWhichInputDoesNotFit) {
  ExpectFailure("three", "input 'x' is float [1,3] in the file");
}

TEST_F(EngineProcessTest, AnEnginesTroubleIsItsOwn) {
  ExpectFailure("refuse", "does not read");
  ExpectFailure("fail", "fails to run");
  ExpectFailure("crash", "killed by signal 11");
  ExpectFailure("exit", "exit code 7");
  ExpectFailure("many", "too many tensors");
}

TEST_F(EngineProcessTest, AHangEnds) {
  EngineOptions options = Fake();
  options.patience = absl::Seconds(1);
  ExpectFailure("hang", "did not answer in time", options);
}

TEST_F(EngineProcessTest, SaysWhatALibraryLacks) {
  EngineOptions options = Fake();
  options.library = "/nowhere/libtensorflowlite_c.so";
  ExpectFailure("double", "/nowhere/libtensorflowlite_c.so", options);
  options = Fake();
  options.name = "onnxruntime";
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto engine,
                               EngineProcess::Start(options));
  EXPECT_THAT(engine->Version(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no function OrtGetApiBase")));
  options.program = "/nowhere/optfarm-engine";
  EXPECT_THAT(EngineProcess::Start(options),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/nowhere/optfarm-engine")));
}

TEST_F(EngineProcessTest, SandboxedEnginesRead) {
  EngineOptions options = Fake();
  options.sandbox = true;
  // The model's folder is not among what it may read.
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto engine, EngineProcess::Start(options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string version, engine->Version());
  EXPECT_EQ(version, "9.9.9 -fake");
  options.readable = {folder_};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<v1::Measurement> all,
                               Measure("double", options));
  EXPECT_EQ(all.size(), 4u);
}

TEST_F(EngineProcessTest, ReadsFlags) {
  const std::string library = File("lib.so", "");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const EngineOptions options,
                               ParseEngine("onnxruntime:" + library));
  EXPECT_EQ(options.name, "onnxruntime");
  EXPECT_THAT(options.library, HasSubstr("lib.so"));
  EXPECT_THAT(ParseEngine("tensorrt:" + library),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'tensorrt'"),
                             HasSubstr("onnxruntime and tflite"))));
  EXPECT_THAT(
      ParseEngine("tflite"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not given")));
  EXPECT_THAT(ParseEngine("tflite:/nowhere/x.so"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'/nowhere/x.so'")));
  EXPECT_FALSE(ParseEngine("tflite:" + folder_).ok());
}

TEST_F(EngineProcessTest, RefusesToCompareWithNothing) {
  BenchmarkRequest request;
  BenchmarkVariant theirs;
  theirs.name = "float@tflite";
  theirs.graph_path = File("model.tflite", "double");
  theirs.same_as = "float";
  OPTFARM_ASSERT_OK_AND_ASSIGN(theirs.engine, EngineProcess::Start(Fake()));
  request.variants = {theirs};
  EXPECT_THAT(RunBenchmark(request, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'float', which is no earlier variant")));
}

TEST_F(EngineProcessTest, OnnxRuntimeSaysItsVersion) {
  const char* library = std::getenv("OPTFARM_ONNXRUNTIME");
  if (library == nullptr) {
    GTEST_SKIP() << "OPTFARM_ONNXRUNTIME does not name libonnxruntime.so";
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      EngineOptions options,
      ParseEngine(absl::StrCat("onnxruntime:", library)));
  options.program = ProgramPath("optfarm-engine");
  options.sandbox = true;
  options.readable = {folder_};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto engine,
                               EngineProcess::Start(options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string version, engine->Version());
  EXPECT_THAT(version, HasSubstr("1."));
  EXPECT_THAT(engine->Load(File("model.onnx", "this is no model"), 1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("onnxruntime: ")));
}

}  // namespace
}  // namespace optfarm::benchmark
