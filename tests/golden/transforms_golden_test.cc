// Our transforms against TensorFlow's own on real models: the same transform
// string must give the same nodes, or differ only where this file says why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/graph.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/graph_comparison.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using graph::Graph;
using runtime::Tensor;

// Differences that are meant to be: nodes whose names match the pattern.
struct Expectation {
  std::string pattern;
  std::string reason;
};

struct Comparison {
  std::string name;
  std::string variant;
  std::vector<Expectation> differences;
};

void PrintTo(const Comparison& comparison, std::ostream* out) {
  *out << comparison.name << " " << comparison.variant;
}

Graph Transform(const GoldenCase& golden, const std::string& variant) {
  const bool is_calibrated = variant == "int8_calibrated";
  Graph graph = is_calibrated ? golden.Expected("int8") : golden.Original();
  transforms::PipelineOptions options;
  options.base_folder = golden.Path(variant);
  const absl::StatusOr<transforms::PipelineReport> report =
      transforms::RunTransforms(&graph, golden.Steps(variant), golden.Inputs(),
                                golden.Outputs(), options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (report.ok()) {
    for (const transforms::TransformStats& step : report->steps) {
      EXPECT_TRUE(step.ignored_error.ok()) << step.ignored_error;
    }
  }
  return graph;
}

class TransformsGoldenTest : public ::testing::TestWithParam<Comparison> {};
// Without reference results there are no cases, which the test below tells.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransformsGoldenTest);

TEST_P(TransformsGoldenTest, GivesTheNodesTensorFlowGives) {
  OPTFARM_REQUIRE_TEST_DATA();
  const Comparison& comparison = GetParam();
  const GoldenCase golden(comparison.name);
  const Graph ours = Transform(golden, comparison.variant);
  const std::vector<NodeDifference> found =
      GraphComparison(ours.ToDef(), golden.Expected(comparison.variant).ToDef(),
                      golden.IgnoredAttributes())
          .Run();
  std::vector<bool> is_used(comparison.differences.size(), false);
  for (const NodeDifference& difference : found) {
    bool is_expected = false;
    for (size_t i = 0; i < comparison.differences.size(); ++i) {
      if (std::regex_match(difference.node,
                           std::regex(comparison.differences[i].pattern))) {
        is_expected = is_used[i] = true;
      }
    }
    EXPECT_TRUE(is_expected) << difference.node << ": " << difference.what;
  }
  for (size_t i = 0; i < is_used.size(); ++i) {
    EXPECT_TRUE(is_used[i]) << "no node differs any more that matches '"
                            << comparison.differences[i].pattern
                            << "': " << comparison.differences[i].reason;
  }
}

// Where ours is meant to differ from TensorFlow 1.4.
std::vector<Expectation> ExpectedDifferences(const std::string& name,
                                             const std::string& variant) {
  if (name == "mobilenet_v1_0.25_128" || name == "poets_retrained") {
    if (variant == "int8_calibrated") return {};
    return {{"MobilenetV1/(MobilenetV1/)?Conv2d_[0-9]+_depthwise/.*",
             "batch norms fold into depthwise convolutions too, as since "
             "TensorFlow 2"}};
  }
  if (name == "ssd_mobilenet") {
    std::vector<Expectation> all = {
        {"FeatureExtractor/MobilenetV1/(MobilenetV1/)?"
         "Conv2d_[0-9]+_depthwise/.*",
         "batch norms fold into depthwise convolutions too, as since "
         "TensorFlow 2"}};
    if (variant == "weights8") {
      all.push_back({".*_quantized_(const|min|max)",
                     "what a constant waits for, its codes wait for too"});
    }
    return all;
  }
  const std::string strides =
      "strides that differ stay in float: QuantizedConv2D refuses them, and "
      "TensorFlow's graph does not load";
  if (name == "kws_cnn_s" && variant == "int8") {
    return {{"Conv2D_1(/.*)?", strides},
            {"add_1/eightbit", strides},
            {"add_1_eightbit/Conv2D_1/(min|max|reshape|quantize)", strides},
            {"Relu|Variable_2", strides}};
  }
  if (name == "kws_ds_cnn_m" && variant == "int8") {
    return {{"MobileNet/conv_1/Conv2D(/.*)?", strides},
            {"MobileNet/conv_1/BiasAdd/eightbit", strides},
            {"MobileNet/conv_1/BiasAdd_eightbit/MobileNet/conv_1/Conv2D/"
             "(min|max|reshape|quantize)",
             strides},
            {"Reshape_1|MobileNet/conv_1/weights", strides}};
  }
  return {};
}

std::vector<Comparison> Comparisons() {
  std::vector<Comparison> all;
  for (const std::string name : {"mobilenet_v1_0.25_128",
                                 "squeezenet_160",
                                 "poets_retrained",
                                 "customvision",
                                 "flowers",
                                 "cifar",
                                 "mnist_softmax",
                                 "mnist_fc",
                                 "mnist_lstm",
                                 "fakequant_mnist",
                                 "conv_actions",
                                 "kws_dnn_s",
                                 "kws_cnn_s",
                                 "kws_ds_cnn_s",
                                 "kws_ds_cnn_m",
                                 "charrnn",
                                 "alphazero19",
                                 "kws_crnn_s",
                                 "kws_lstm_s",
                                 "ssd_mobilenet"}) {
    for (const std::string variant :
         {"fp32", "int8", "weights8", "round", "int8_calibrated"}) {
      // What TensorFlow's tool wrote there does not load:
      // reference_failures_test.cc.
      if (variant == "int8" &&
          (name == "alphazero19" || name == "kws_crnn_s" ||
           name == "kws_lstm_s" || name == "ssd_mobilenet")) {
        continue;
      }
      const std::string path = TestDataPath(
          absl::StrCat("golden/", name, "/", variant, "/expected.pb"));
      if (!path.empty() && std::ifstream(path).good()) {
        all.push_back({name, variant, ExpectedDifferences(name, variant)});
      }
    }
  }
  return all;
}

// How far two answers are apart.
struct Distance {
  float worst = 0;
  float largest = 0;
  bool has_same_top = false;
  bool is_finite = true;
};

Distance Compare(const Tensor& ours, const Tensor& reference) {
  Distance distance;
  EXPECT_EQ(ours.shape().ToString(), reference.shape().ToString());
  if (!(ours.shape() == reference.shape())) return distance;
  const absl::Span<const float> a = ours.flat<float>();
  const absl::Span<const float> b = reference.flat<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    distance.is_finite = distance.is_finite && std::isfinite(a[i]);
    distance.worst = std::max(distance.worst, std::abs(a[i] - b[i]));
    distance.largest = std::max(distance.largest, std::abs(b[i]));
  }
  distance.has_same_top = std::max_element(a.begin(), a.end()) - a.begin() ==
                          std::max_element(b.begin(), b.end()) - b.begin();
  return distance;
}

// How many of the samples must have the reference's largest answer. Quantized
// MobileNets lose it, TensorFlow's as well as ours: depthwise weights have one
// range for all channels.
int LeastSameTop(const Comparison& comparison, int samples) {
  const bool is_mobilenet = comparison.name == "mobilenet_v1_0.25_128" ||
                            comparison.name == "poets_retrained" ||
                            comparison.name == "ssd_mobilenet";
  if (comparison.variant == "fp32") return samples;
  return is_mobilenet || comparison.differences.empty() ? 0 : samples - 1;
}

// Graphs that compute in float must answer what TensorFlow answers: for the
// same graph, or where ours differs, for the original. Graphs that compute in
// 8 bits are held to their nodes above, and to finite answers.
TEST_P(TransformsGoldenTest, GivesTheAnswersTensorFlowGives) {
  OPTFARM_REQUIRE_TEST_DATA();
  const Comparison& comparison = GetParam();
  const GoldenCase golden(comparison.name);
  const bool is_same_graph = comparison.differences.empty();
  const bool is_float = comparison.variant == "fp32" ||
                        (is_same_graph && (comparison.variant == "weights8" ||
                                           comparison.variant == "round"));
  const Graph ours = Transform(golden, comparison.variant);
  const auto session =
      runtime::Session::Create(ours, golden.Inputs(), golden.Outputs());
  // Detectors need ops that not every runtime has.
  if (absl::IsUnimplemented(session.status())) {
    GTEST_SKIP() << session.status();
  }
  OPTFARM_ASSERT_OK(session.status());
  int same_top = 0;
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> answers,
                                 (*session)->Run(golden.Feeds(sample)));
    const Tensor reference =
        golden.Answer(is_same_graph ? comparison.variant : "", 0, sample);
    const Distance distance = Compare(answers[0], reference);
    EXPECT_TRUE(distance.is_finite) << "sample " << sample;
    if (is_float) {
      EXPECT_LE(distance.worst, 1e-4f * distance.largest)
          << "sample " << sample;
    }
    same_top += distance.has_same_top ? 1 : 0;
  }
  EXPECT_GE(same_top, LeastSameTop(comparison, golden.samples()));
}

TEST(TransformsGoldenCases, AreAllThatTensorFlowTransformed) {
  OPTFARM_REQUIRE_TEST_DATA();
  EXPECT_GE(Comparisons().size(), 50u);
}

INSTANTIATE_TEST_SUITE_P(Cases, TransformsGoldenTest,
                         ::testing::ValuesIn(Comparisons()),
                         [](const ::testing::TestParamInfo<Comparison>& test) {
                           return std::regex_replace(
                               test.param.name + "_" + test.param.variant,
                               std::regex("[^A-Za-z0-9]"), "_");
                         });

}  // namespace
}  // namespace optfarm::testing
