// Real TensorFlow Lite models against the interpreter's answers, and files that
// must be refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/formats/tflite/reader.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/verify.h"
#include "engine/runtime/session/session.h"
#include "tests/golden/interchange_case.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<graph::Graph> Load(const std::string& path) {
  const auto bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  auto def = formats::ReadTflite(*bytes, absl::StrCat("'", path, "'"));
  if (!def.ok()) return def.status();
  return graph::Graph::FromDef(*std::move(def));
}

graph::TensorName NameOf(const graph::Graph& graph, const std::string& name) {
  const auto tensor = graph::ResolveTensor(graph, name);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  if (!tensor.ok()) return {};
  return {graph.node(tensor->node).name(), tensor->port};
}

// All models of the folder.
std::vector<std::string> Models() {
  std::vector<std::string> names;
  if (TestDataFolder().empty()) return {"none"};
  for (const auto& entry : std::filesystem::directory_iterator(
           TestDataPath("interchange/golden/tflite"))) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Models whose answers do not agree yet, and why.
const char* ReasonToSkip(const std::string& model) {
  static const auto* const reasons = new std::map<std::string, const char*>{
      {"dbface_int8", "integer sums drift from the interpreter's"},
      {"deeplab_dm05_quant", "99 % of classes are to agree, 98.6 % do"},
      {"facemesh_int8", "XNNPACK rescales values by a multiplier of 8 bits"},
      {"hand_landmark_int8", "integer sums drift from the interpreter's"},
      {"resnet8_int8", "agrees in float kernels; fused additions differ"},
      {"yolov5n_int8", "XNNPACK rescales values by a multiplier of 8 bits"},
      {"yolox_nano_dyn", "the interpreter quantizes its activations"}};
  const auto it = reasons->find(model);
  return it == reasons->end() ? nullptr : it->second;
}

// Over all models of one run of the program.
StepCount& AllSteps() {
  static StepCount count;
  return count;
}

class TfliteModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() {
    const StepCount& all = AllSteps();
    if (all.elements == 0) return;
    std::cout << "quantized elements: " << all.elements << ", exact "
              << 100.0 * static_cast<double>(all.exact) /
                     static_cast<double>(all.elements)
              << " %, within a step "
              << 100.0 * static_cast<double>(all.near) /
                     static_cast<double>(all.elements)
              << " %\n";
  }
};

TEST_P(TfliteModelTest, AnswersAsTheInterpreter) {
  OPTFARM_REQUIRE_TEST_DATA();
  if (const char* reason = ReasonToSkip(GetParam())) GTEST_SKIP() << reason;
  const InterchangeCase golden("tflite/" + GetParam());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               Load(golden.ModelPath()));
  OPTFARM_ASSERT_OK(graph::Verify(graph));
  EXPECT_EQ(graph::ReadModelInterface(graph).format, "tflite");
  StepCount steps;
  for (int sample = 0; sample < golden.samples(); ++sample) {
    std::vector<graph::TensorName> feeds, fetches;
    std::vector<runtime::Tensor> values;
    for (int i = 0; i < golden.inputs(sample); ++i) {
      feeds.push_back(NameOf(graph, golden.InputName(sample, i)));
      values.push_back(golden.Feed(sample, i));
    }
    for (int i = 0; i < golden.outputs(sample); ++i) {
      fetches.push_back(NameOf(graph, golden.OutputName(sample, i)));
    }
    // A session of its own: state starts from its first values.
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto session, runtime::Session::Create(graph, feeds, fetches));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<runtime::Tensor> answers,
                                 session->Run(values));
    for (int i = 0; i < golden.outputs(sample); ++i) {
      const runtime::Tensor& answer = answers[static_cast<size_t>(i)];
      EXPECT_EQ(golden.Disagreement(sample, i, answer), "")
          << "sample " << sample << ", output " << golden.OutputName(sample, i);
      steps += golden.Steps(sample, i, answer);
    }
  }
  if (steps.elements == 0) return;
  std::cout << GetParam() << ": exact " << steps.exact << " of "
            << steps.elements << ", within a step " << steps.near << "\n";
  AllSteps() += steps;
}

INSTANTIATE_TEST_SUITE_P(Models, TfliteModelTest, ::testing::ValuesIn(Models()),
                         [](const ::testing::TestParamInfo<std::string>& test) {
                           std::string name = test.param;
                           for (char& c : name) {
                             if (!absl::ascii_isalnum(c)) c = '_';
                           }
                           return name;
                         });

struct Refused {
  const char* file;
  const char* reason;
};

class RefusedTfliteTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedTfliteTest, SaysWhy) {
  OPTFARM_REQUIRE_TEST_DATA();
  const auto loaded =
      Load(TestDataPath(absl::StrCat("interchange/refuse/", GetParam().file)));
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Files, RefusedTfliteTest,
    ::testing::Values(Refused{"audio_preprocessor_int8.tflite",
                              "custom operator SignalWindow (1)"},
                      Refused{"hair_seg.tflite",
                              "custom operator MaxUnpooling2D (3)"},
                      Refused{"segm_full.tflite",
                              "custom operator Convolution2DTransposeBias (1)"},
                      Refused{"mp_selfie.tflite",
                              "custom operator Convolution2DTransposeBias (1)"},
                      Refused{"mp_selfie_landscape.tflite",
                              "custom operator Convolution2DTransposeBias (1)"},
                      Refused{"mnv3_seg_int8.tflite", "has zero point"},
                      Refused{"person_detect.tflite", "scales for dimension 3"},
                      Refused{"litert_fc_blockwise.tflite",
                              "quantized by BlockwiseQuantization"}),
    [](const ::testing::TestParamInfo<Refused>& test) {
      const std::string file = test.param.file;
      return file.substr(0, file.find('.'));
    });

}  // namespace
}  // namespace optfarm::testing
