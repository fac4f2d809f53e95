// The transforms that TensorFlow does not have, on real models: they must
// answer what TensorFlow answers for the original.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "tests/golden/golden_case.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using graph::Graph;
using runtime::Tensor;

// The model stripped to its inputs and outputs, constants folded, as all chains
// begin; then `transforms`.
absl::StatusOr<transforms::PipelineReport> Apply(
    const GoldenCase& golden, const std::string& transforms,
    const std::vector<graph::TensorName>& inputs, Graph* graph) {
  *graph = golden.Original();
  std::vector<transforms::TransformStep> steps = golden.Steps("fp32");
  steps.resize(2);
  OPTFARM_ASSIGN_OR_RETURN(const auto more,
                           transforms::ParseTransforms(transforms));
  steps.insert(steps.end(), more.begin(), more.end());
  return transforms::RunTransforms(graph, steps, inputs, golden.Outputs());
}

// The largest difference, relative to the largest expected value.
double Distance(absl::Span<const float> got, absl::Span<const float> expected) {
  EXPECT_EQ(got.size(), expected.size());
  double difference = 0, largest = 1e-30;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const double error = std::abs(double{got[i]} - expected[i]);
    // Written so that NaN counts as a difference.
    if (!(error <= difference)) difference = error;
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return difference / largest;
}

// openpose normalizes by the statistics of its own activations, which makes
// rounding differences grow.
double Tolerance(const std::string& name) {
  return name == "openpose_mnv2" ? 1e-3 : 1e-4;
}

class BeyondGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BeyondGoldenTest, RemovingTrainingNodesAndFoldingChangeNothing) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GoldenCase golden(GetParam());
  Graph graph;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const transforms::PipelineReport report,
      Apply(golden, "remove_training_nodes fold_scale_and_shift",
            golden.Inputs(), &graph));
  RecordProperty("nodes_changed",
                 absl::StrCat(report.steps[2].report.nodes_changed, ", ",
                              report.steps[3].report.nodes_changed));
  const auto session =
      runtime::Session::Create(graph, golden.Inputs(), golden.Outputs());
  if (absl::IsUnimplemented(session.status())) {
    GTEST_SKIP() << session.status();
  }
  OPTFARM_ASSERT_OK(session.status());
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> answers,
                                 (*session)->Run(golden.Feeds(sample)));
    for (size_t i = 0; i < answers.size(); ++i) {
      const Tensor expected = golden.Answer("", static_cast<int>(i), sample);
      EXPECT_LE(Distance(answers[i].flat<float>(), expected.flat<float>()),
                Tolerance(GetParam()))
          << "sample " << sample;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, BeyondGoldenTest,
    ::testing::Values("alphazero19", "cifar", "conv_actions", "customvision",
                      "flowers", "kws_cnn_s", "kws_crnn_s", "kws_dnn_s",
                      "kws_ds_cnn_m", "kws_ds_cnn_s", "kws_lstm_s", "mnist_fc",
                      "mnist_softmax", "mobilenet_v1_0.25_128", "openpose_mnv2",
                      "poets_retrained", "squeezenet_160", "ssd_mobilenet"),
    [](const ::testing::TestParamInfo<std::string>& test) {
      return std::regex_replace(test.param, std::regex("[^A-Za-z0-9]"), "_");
    });

// All samples side by side.
Tensor Batch(const GoldenCase& golden) {
  const Tensor first = golden.Feeds(0)[0];
  std::vector<int64_t> dims(first.shape().dims().begin(),
                            first.shape().dims().end());
  dims[0] = golden.samples();
  Tensor batch =
      Tensor::Allocate(first.dtype(), runtime::Shape::FromDims(dims).value())
          .value();
  const auto bytes = static_cast<size_t>(first.TotalBytes());
  for (int sample = 0; sample < golden.samples(); ++sample) {
    std::memcpy(
        static_cast<char*>(batch.raw()) + static_cast<size_t>(sample) * bytes,
        golden.Feeds(sample)[0].raw(), bytes);
  }
  return batch;
}

class BatchSamplesGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BatchSamplesGoldenTest, AnswersAllSamplesAtOnce) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GoldenCase golden(GetParam());
  Graph graph;
  OPTFARM_ASSERT_OK(
      Apply(golden,
            absl::StrCat("set_batch_size(batch_size=", golden.samples(), ")"),
            golden.Inputs(), &graph)
          .status());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session,
      runtime::Session::Create(graph, golden.Inputs(), golden.Outputs()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> answers,
                               session->Run({Batch(golden)}));
  const absl::Span<const float> all =
      static_cast<const Tensor&>(answers[0]).flat<float>();
  const size_t each = all.size() / static_cast<size_t>(golden.samples());
  for (int sample = 0; sample < golden.samples(); ++sample) {
    const Tensor expected = golden.Answer("", 0, sample);
    EXPECT_LE(Distance(all.subspan(static_cast<size_t>(sample) * each, each),
                       expected.flat<float>()),
              1e-4)
        << "sample " << sample;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, BatchSamplesGoldenTest,
    ::testing::Values("cifar", "customvision", "fakequant_mnist", "mnist_fc",
                      "mnist_softmax", "mobilenet_v1_0.25_128",
                      "poets_retrained", "squeezenet_160"),
    [](const ::testing::TestParamInfo<std::string>& test) {
      return std::regex_replace(test.param, std::regex("[^A-Za-z0-9]"), "_");
    });

TEST(BatchGoldenTest, SaysThatItemsWouldBeMixed) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GoldenCase golden("openpose_mnv2");
  Graph graph;
  EXPECT_THAT(std::string(Apply(golden, "set_batch_size(batch_size=3)",
                                golden.Inputs(), &graph)
                              .status()
                              .message()),
              ::testing::HasSubstr("by the statistics of all items together"));
}

// keep_prob was fed; with its value in the graph, dropout goes.
TEST(FoldPlaceholderGoldenTest, AnswersWithoutTheInputThatIsFixed) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GoldenCase golden("mnist_lstm");
  std::vector<graph::TensorName> inputs = golden.Inputs();
  const float keep_prob = golden.Feeds(0)[1].flat<float>()[0];
  inputs.resize(1);
  Graph graph = golden.Original();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto steps,
      transforms::ParseTransforms(absl::StrCat(
          "fold_placeholder(name=keep_prob, value=\"", keep_prob, "\") ",
          "strip_unused_nodes remove_training_nodes fold_constants")));
  OPTFARM_ASSERT_OK(
      transforms::RunTransforms(&graph, steps, inputs, golden.Outputs())
          .status());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session,
      runtime::Session::Create(graph, inputs, golden.Outputs()));
  for (graph::NodeId id : graph.Ids()) {
    EXPECT_NE(graph.node(id).op(), "RandomUniform");
  }
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> answers,
                                 session->Run({golden.Feeds(sample)[0]}));
    EXPECT_LE(Distance(static_cast<const Tensor&>(answers[0]).flat<float>(),
                       golden.Answer("", 0, sample).flat<float>()),
              1e-4)
        << "sample " << sample;
  }
}

}  // namespace
}  // namespace optfarm::testing
