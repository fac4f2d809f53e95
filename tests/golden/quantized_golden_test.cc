// The graphs that TensorFlow's own quantize_nodes wrote, run here, against what
// TensorFlow answers for them and the ranges that it logged inside them.
//
// The unit is a step: what one 8-bit code is worth in the tensor that the
// output was dequantized from; where float ops (Softmax) follow, 1/255 of the
// range of the values that TensorFlow answers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/graph/graph.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/freezing/range_log.h"
#include "tests/golden/golden_case.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorName;
using runtime::Tensor;

struct QuantizedCase {
  std::string name;
  std::string variant;
};

void PrintTo(const QuantizedCase& c, std::ostream* out) {
  *out << c.name << " " << c.variant;
}

// The minimum and maximum of the 8-bit tensor that `output` shows, looking
// through ops that only change the shape. Empty when float ops lie between.
std::vector<TensorName> RangeBehind(const Graph& graph,
                                    const TensorName& output) {
  NodeId id = graph.Find(output.node);
  while (true) {
    const graph::Node& node = graph.node(id);
    if (node.op() == "Dequantize") {
      const auto& min = node.inputs()[1];
      const auto& max = node.inputs()[2];
      return {{graph.node(min.node).name(), min.port},
              {graph.node(max.node).name(), max.port}};
    }
    if (node.op() != "Identity" && node.op() != "Reshape" &&
        node.op() != "Squeeze") {
      return {};
    }
    id = node.inputs()[0].node;
  }
}

double ValueRange(const Tensor& tensor) {
  const absl::Span<const float> values = tensor.flat<float>();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return std::max(double{*high} - double{*low}, 1e-30);
}

// `answer`: what TensorFlow answers for the sample.
double StepOf(const Tensor& answer, const std::vector<Tensor>& range) {
  if (range.empty()) return ValueRange(answer) / 255.0;
  return (double{range[1].flat<float>()[0]} - range[0].flat<float>()[0]) /
         255.0;
}

double LargestDifference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.num_elements(), b.num_elements());
  if (a.num_elements() != b.num_elements()) return 1e30;
  double worst = 0.0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double error =
        std::abs(double{a.flat<float>()[i]} - b.flat<float>()[i]);
    // Written so that NaN counts as a difference.
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

// What is fed: the case's inputs and, where the graph draws random numbers (the
// dropout of mnist_lstm), its draws.
//
// keep_prob is 1 there, yet the quantized graph may drop a unit: 1 plus a draw
// is stored as a code, and a draw below half a step can come back as just below
// 1, whose floor is 0. TensorFlow's generator had no seed and its draws are not
// on record. Its answers for int8 show that it dropped one unit in one sample;
// dropping that one gives its answer exactly, dropping any other does not.
class Feeding {
 public:
  Feeding(const GoldenCase& golden, const Graph& graph)
      : golden_(golden), inputs_(golden.Inputs()) {
    has_draws_ = graph.Find(kDraws) != graph::kNoNode;
    if (has_draws_) inputs_.push_back({kDraws, 0});
  }

  const std::vector<TensorName>& inputs() const { return inputs_; }

  // `dropped_unit`: -1 for none.
  std::vector<Tensor> Feeds(int sample, int dropped_unit = -1) const {
    std::vector<Tensor> feeds = golden_.Feeds(sample);
    if (has_draws_) {
      std::vector<float> draws(128, 0.5f);
      // With this largest draw the code of 0 comes back below 1.
      draws[0] = 0.992f;
      if (dropped_unit >= 0) draws[dropped_unit] = 0.0f;
      feeds.push_back(Tensor::FromValues<float>({1, 128}, draws));
    }
    return feeds;
  }

 private:
  static constexpr char kDraws[] = "model/dropout/random_uniform/RandomUniform";
  const GoldenCase& golden_;
  std::vector<TensorName> inputs_;
  bool has_draws_ = false;
};

int DroppedUnit(const QuantizedCase& c, int sample) {
  const bool drops = c.name == "mnist_lstm" && c.variant == "int8";
  return drops && sample == 4 ? 29 : -1;
}

class QuantizedGoldenTest : public ::testing::TestWithParam<QuantizedCase> {};

TEST_P(QuantizedGoldenTest, AgreesWithTensorFlow) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GoldenCase golden(GetParam().name);
  const Graph graph = golden.Expected(GetParam().variant);
  const TensorName output = golden.Outputs()[0];
  std::vector<TensorName> fetches = RangeBehind(graph, output);
  fetches.insert(fetches.begin(), output);
  const Feeding feeding(golden, graph);
  runtime::SessionOptions options;
  options.threads = 2;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session,
      runtime::Session::Create(graph, feeding.inputs(), fetches, options));
  double worst = 0.0;
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        std::vector<Tensor> got,
        session->Run(feeding.Feeds(sample, DroppedUnit(GetParam(), sample))));
    const Tensor answer = golden.Answer(GetParam().variant, 0, sample);
    const double difference = LargestDifference(got[0], answer);
    got.erase(got.begin());
    const double steps = difference / StepOf(answer, got);
    EXPECT_LE(steps, 2.0) << "sample " << sample;
    worst = std::max(worst, steps);
  }
  RecordProperty("largest_difference_in_steps", absl::StrCat(worst));
}

// All graphs that TensorFlow itself could run.
std::vector<QuantizedCase> AllCases() {
  std::vector<QuantizedCase> cases;
  for (const char* name :
       {"charrnn", "cifar", "conv_actions", "customvision", "fakequant_mnist",
        "flowers", "kws_dnn_s", "kws_ds_cnn_s", "mnist_fc", "mnist_lstm",
        "mnist_softmax", "mobilenet_v1_0.25_128", "poets_retrained",
        "squeezenet_160"}) {
    cases.push_back({name, "int8"});
    cases.push_back({name, "int8_calibrated"});
  }
  return cases;
}

std::string CaseName(const ::testing::TestParamInfo<QuantizedCase>& test) {
  return std::regex_replace(
      absl::StrCat(test.param.name, "_", test.param.variant),
      std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Models, QuantizedGoldenTest,
                         ::testing::ValuesIn(AllCases()), CaseName);

// --- Ranges ------------------------------------------------------------------

// Whether `id` is computed from random draws, up to the Floor that decides what
// they drop.
bool IsDrawn(const Graph& graph, NodeId id) {
  const std::vector<bool> needed = graph::ReachableFrom(graph, {id});
  bool drawn = false;
  for (NodeId other : graph.Ids()) {
    if (!needed[other]) continue;
    if (graph.node(other).op() == "Floor") return false;
    if (graph.node(other).op() == "RandomUniform") drawn = true;
  }
  return drawn;
}

// The RequantizationRange nodes of the log.
std::vector<std::string> NodesToCompare(const Graph& graph,
                                        const transforms::RangeLog& log) {
  std::vector<std::string> names;
  for (NodeId id : graph.Ids()) {
    const std::string& name = graph.node(id).name();
    if (log.contains(name) && !IsDrawn(graph, id)) names.push_back(name);
  }
  return names;
}

class RangesGoldenTest : public ::testing::TestWithParam<QuantizedCase> {};

// The ranges of 32-bit results, which TensorFlow logged while the graph of
// variant int8 ran on all samples. Equal to the last bit: QuantizedBiasAdd
// turns one bit into 1.6 % of the values.
TEST_P(RangesGoldenTest, AreThoseTensorFlowObserved) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GoldenCase golden(GetParam().name);
  const Graph graph = golden.Expected("int8");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      ReadFile(golden.Path("int8_calibrated/min_max_log.txt")));
  const transforms::RangeLog log = transforms::ParseRangeLog(text);
  const std::vector<std::string> names = NodesToCompare(graph, log);
  ASSERT_FALSE(names.empty());
  std::vector<TensorName> fetches;
  for (const std::string& name : names) {
    fetches.push_back({name, 0});
    fetches.push_back({name, 1});
  }
  const Feeding feeding(golden, graph);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session,
      runtime::Session::Create(graph, feeding.inputs(), fetches));
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                                 session->Run(feeding.Feeds(sample)));
    for (size_t i = 0; i < names.size(); ++i) {
      const auto& observed = log.at(names[i]);
      ASSERT_EQ(observed.size(), static_cast<size_t>(golden.samples()));
      const transforms::ObservedRange& want = observed[sample];
      EXPECT_EQ(got[2 * i].flat<float>()[0], want.min) << names[i];
      EXPECT_EQ(got[2 * i + 1].flat<float>()[0], want.max) << names[i];
    }
  }
}

std::vector<QuantizedCase> Int8Cases() {
  std::vector<QuantizedCase> cases;
  for (const QuantizedCase& c : AllCases()) {
    if (c.variant == "int8") cases.push_back(c);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, RangesGoldenTest,
                         ::testing::ValuesIn(Int8Cases()), CaseName);

}  // namespace
}  // namespace optfarm::testing
