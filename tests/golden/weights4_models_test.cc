// Real models with products of 4-bit weights: how small, how close, and the
// same answers whether the product reads the weights or floats.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "tests/golden/golden_case.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"
#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/fusion/int4_products.h"
#endif

namespace optfarm::testing {
namespace {

struct Weights4Case {
  const char* name;
  // UNITS: decibel, of all answers together.
  double least_snr;
};

graph::Graph Quantized(const GoldenCase& golden) {
  graph::Graph graph = golden.Original();
  const auto steps = transforms::ParseTransforms(
      "fold_constants(ignore_errors=true) "
      "quantize_product_weights(tables=true)");
  EXPECT_TRUE(transforms::RunTransforms(&graph, *steps, golden.Inputs(),
                                        golden.Outputs())
                  .status()
                  .ok());
  return graph;
}

// The bytes that products' weights take, of those that they take as floats.
double ProductRatio(const graph::Graph& graph) {
  double bytes = 0, float_bytes = 0;
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (node.op() != "DequantizeBlocks") continue;
    double weights = 4;
    for (const auto& dim : node.FindAttr("shape")->shape().dim()) {
      weights *= static_cast<double>(dim.size());
    }
    float_bytes += weights;
    for (const graph::Endpoint& input : node.inputs()) {
      bytes += static_cast<double>(
          transforms::ConstValue(graph.node(input.node))->TotalBytes());
    }
  }
  EXPECT_GT(float_bytes, 0);
  return bytes / float_bytes;
}

// Output 0 for each sample, one behind the other.
std::vector<float> Answers(const GoldenCase& golden,
                           const graph::Graph& graph) {
  std::vector<float> answers;
  const auto session = runtime::Session::Create(graph, golden.Inputs(),
                                                {golden.Outputs()[0]}, {});
  EXPECT_TRUE(session.ok()) << session.status();
  for (int i = 0; session.ok() && i < golden.samples(); ++i) {
    const auto values = (*session)->Run(golden.Feeds(i));
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) continue;
    const absl::Span<const float> floats = (*values)[0].flat<float>();
    answers.insert(answers.end(), floats.begin(), floats.end());
  }
  return answers;
}

double SnrDb(const std::vector<float>& wanted, const std::vector<float>& got) {
  double signal = 0, noise = 1e-30;
  for (size_t i = 0; i < wanted.size(); ++i) {
    signal += wanted[i] * wanted[i];
    noise += (got[i] - wanted[i]) * (got[i] - wanted[i]);
  }
  return 10 * std::log10(signal / noise);
}

class Weights4ModelsTest : public ::testing::TestWithParam<Weights4Case> {};

TEST_P(Weights4ModelsTest, ProductsAreSmallAndAnswersClose) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GoldenCase golden(GetParam().name);
  const graph::Graph graph = Quantized(golden);
  EXPECT_LE(ProductRatio(graph), 0.16);
  const std::vector<float> wanted = Answers(golden, golden.Original());
  const std::vector<float> got = Answers(golden, graph);
  ASSERT_EQ(got.size(), wanted.size());
  RecordProperty("snr_db", std::to_string(SnrDb(wanted, got)));
  RecordProperty("ratio", std::to_string(ProductRatio(graph)));
  EXPECT_GE(SnrDb(wanted, got), GetParam().least_snr);
#ifdef OPTFARM_FAST_KERNELS
  const runtime::Int4ProductsLimit all(0);
  EXPECT_GE(SnrDb(got, Answers(golden, graph)), 90);
#endif
}

INSTANTIATE_TEST_SUITE_P(Models, Weights4ModelsTest,
                         ::testing::Values(Weights4Case{"mnist_fc", 22},
                                           Weights4Case{"mnist_lstm", 22},
                                           Weights4Case{"charrnn", 29},
                                           Weights4Case{"kws_dnn_s", 12},
                                           Weights4Case{"kws_lstm_s", 22}),
                         [](const auto& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace optfarm::testing
