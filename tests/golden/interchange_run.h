// Runs models of other formats on the samples of their golden answers.

#ifndef OPTFARM_TESTS_GOLDEN_INTERCHANGE_RUN_H_
#define OPTFARM_TESTS_GOLDEN_INTERCHANGE_RUN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/runtime/session/session.h"
#include "tests/golden/interchange_case.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {

// The models of a folder of interchange/golden: "onnx" or "tflite".
inline std::vector<std::string> InterchangeModels(const std::string& format) {
  std::vector<std::string> names;
  if (TestDataFolder().empty()) return {"none"};
  for (const auto& entry : std::filesystem::directory_iterator(
           TestDataPath(absl::StrCat("interchange/golden/", format)))) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A model's name as the name of a test.
inline std::string ModelTestName(
    const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  for (char& c : name) {
    if (!absl::ascii_isalnum(c)) c = '_';
  }
  return name;
}

// A file of interchange/refuse and what its refusal says.
struct RefusedFile {
  const char* file;
  const char* reason;
};

inline std::string RefusedTestName(
    const ::testing::TestParamInfo<RefusedFile>& test) {
  const std::string file = test.param.file;
  return file.substr(0, file.find('.'));
}

// Where the graph has a tensor of the file.
inline absl::StatusOr<graph::TensorName> TensorNameOf(const graph::Graph& graph,
                                                      const std::string& name) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::Endpoint tensor,
                           graph::ResolveTensor(graph, name));
  return graph::TensorName{graph.node(tensor.node).name(), tensor.port};
}

// The answers to one sample, by a session of its own, so that state starts
// from its first values.
inline absl::StatusOr<std::vector<runtime::Tensor>> RunSample(
    const graph::Graph& graph, const InterchangeCase& golden, int sample) {
  std::vector<graph::TensorName> feeds, fetches;
  std::vector<runtime::Tensor> values;
  for (int i = 0; i < golden.inputs(sample); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(feeds.emplace_back(),
                             TensorNameOf(graph, golden.InputName(sample, i)));
    values.push_back(golden.Feed(sample, i));
  }
  for (int i = 0; i < golden.outputs(sample); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(fetches.emplace_back(),
                             TensorNameOf(graph, golden.OutputName(sample, i)));
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           runtime::Session::Create(graph, feeds, fetches));
  return session->Run(values);
}

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_INTERCHANGE_RUN_H_
