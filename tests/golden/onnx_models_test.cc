// Real ONNX models against the answers of ONNX Runtime, and files that must be
// refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/formats/models/load_model.h"
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
           TestDataPath("interchange/golden/onnx"))) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class OnnxModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OnnxModelTest, AnswersAsOnnxRuntime) {
  OPTFARM_REQUIRE_TEST_DATA();
  const InterchangeCase golden("onnx/" + GetParam());
  OPTFARM_ASSERT_OK_AND_ASSIGN(formats::LoadedGraph file,
                               formats::LoadModel(golden.ModelPath()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               graph::Graph::FromDef(std::move(file.def)));
  OPTFARM_ASSERT_OK(graph::Verify(graph));
  EXPECT_EQ(graph::ReadModelInterface(graph).format, "onnx");
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
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto session, runtime::Session::Create(graph, feeds, fetches));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<runtime::Tensor> answers,
                                 session->Run(values));
    for (int i = 0; i < golden.outputs(sample); ++i) {
      EXPECT_EQ(golden.Disagreement(sample, i, answers[static_cast<size_t>(i)]),
                "")
          << "sample " << sample << ", output " << golden.OutputName(sample, i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxModelTest, ::testing::ValuesIn(Models()),
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

class RefusedOnnxTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedOnnxTest, SaysWhy) {
  OPTFARM_REQUIRE_TEST_DATA();
  const auto loaded = formats::LoadModel(
      TestDataPath(absl::StrCat("interchange/refuse/", GetParam().file)));
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Files, RefusedOnnxTest,
    ::testing::Values(
        Refused{"nanoGPT.onnx", "(Equal)"},
        Refused{"espcn_quant.onnx", "operator onnx.brevitas.Quant"},
        Refused{"super_resolution_op18.onnx",
                "operator com.microsoft.extensions.DecodeImage"},
        Refused{"svc_har.onnx", "operator ai.onnx.ml.SVMClassifier"}),
    [](const ::testing::TestParamInfo<Refused>& test) {
      const std::string file = test.param.file;
      return file.substr(0, file.find('.'));
    });

}  // namespace
}  // namespace optfarm::testing
