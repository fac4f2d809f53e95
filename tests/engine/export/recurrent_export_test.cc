// Recurrent layers in files of formats that have no such layer: what is written
// answers as the graph does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/export/convert_file.h"
#include "engine/formats/onnx/writer.h"
#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace optfarm::exporting {
namespace {

using ::testing::ElementsAre;
using ::testing::TestWithParam;
using ::testing::Values;

// Numbers of a fixed sequence, in -1..1.
std::string Floats(const std::string& name, const std::vector<int64_t>& dims) {
  std::string text =
      absl::StrCat("initializer { name: '", name, "' data_type: 1 ");
  int64_t count = 1;
  for (const int64_t dim : dims) {
    absl::StrAppend(&text, "dims: ", dim, " ");
    count *= dim;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t step =
        (i * 37 + 11 * static_cast<int64_t>(name.size()) + name[0]) % 101;
    absl::StrAppend(&text, "float_data: ", step / 50.5 - 1.0, " ");
  }
  return absl::StrCat(text, "} ");
}

struct LayerCase {
  std::string name, op;
  std::string direction = "forward";
  std::string attributes = "";
  bool has_lengths = false, has_peepholes = false, has_state = true;
};

std::string Layer(const LayerCase& layer) {
  constexpr int64_t kSteps = 4, kBatch = 2, kInputs = 3, kHidden = 2;
  const int64_t gates = layer.op == "LSTM" ? 4 : layer.op == "GRU" ? 3 : 1;
  const int64_t directions = layer.direction == "bidirectional" ? 2 : 1;
  const bool is_lstm = layer.op == "LSTM";
  const char* no_input = "input: '' ";
  std::string node = absl::StrCat(
      "node { op_type: '", layer.op, "' input: 'x' input: 'w' input: 'r' ",
      "input: 'b' ", layer.has_lengths ? "input: 'l' " : no_input,
      layer.has_state ? "input: 'h' " : no_input);
  if (is_lstm) {
    absl::StrAppend(&node, layer.has_state ? "input: 'c' " : no_input,
                    layer.has_peepholes ? "input: 'p' " : no_input);
  }
  absl::StrAppend(&node, "output: 'y' output: 'last' ",
                  is_lstm ? "output: 'cell' " : "",
                  "attribute { name: 'hidden_size' type: INT i: ", kHidden,
                  " } attribute { name: 'direction' type: STRING s: '",
                  layer.direction, "' } ", layer.attributes, " } ");
  const std::vector<int64_t> state = {directions, kBatch, kHidden};
  absl::StrAppend(
      &node, Floats("w", {directions, gates * kHidden, kInputs}),
      Floats("r", {directions, gates * kHidden, kHidden}),
      Floats("b", {directions, 2 * gates * kHidden}), Floats("h", state),
      Floats("c", state), Floats("p", {directions, 3 * kHidden}),
      "initializer { name: 'l' data_type: 6 dims: 2 int32_data: 4 ",
      "int32_data: 2 } ", "input { ",
      formats::FloatValue("x", {kSteps, kBatch, kInputs}), " } output { ",
      formats::FloatValue("y", {kSteps, directions, kBatch, kHidden}),
      " } output { ", formats::FloatValue("last", state), " }");
  if (is_lstm) {
    absl::StrAppend(&node, " output { ", formats::FloatValue("cell", state),
                    " }");
  }
  return formats::OnnxBytes(node);
}

std::string Functions(const std::vector<std::string>& names) {
  std::string text = "attribute { name: 'activations' type: STRINGS ";
  for (const std::string& name : names) {
    absl::StrAppend(&text, "strings: '", name, "' ");
  }
  return absl::StrCat(
      text,
      "} attribute { name: 'activation_alpha' type: FLOATS floats: 0.3 "
      "floats: 0.7 } attribute { name: 'activation_beta' type: FLOATS "
      "floats: 0.4 floats: 0.6 }");
}

constexpr char kClip[] = "attribute { name: 'clip' type: FLOAT f: 0.5 }";

class RecurrentExportTest : public TestWithParam<LayerCase> {};

absl::StatusOr<ConvertedModel> Converted(const std::string& bytes,
                                         ModelFormat format) {
  auto graph = formats::ReadOnnxGraph(bytes);
  if (!graph.ok()) return graph.status();
  ConvertOptions options;
  options.written.format = format;
  return ConvertGraph(*graph, options);
}

TEST_P(RecurrentExportTest, TfliteFilesAnswerAsTheGraphDoes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConvertedModel made,
      Converted(Layer(GetParam()), ModelFormat::kTflite));
  ASSERT_TRUE(made.difference.has_value()) << made.line;
  EXPECT_LT(made.difference->largest, 1e-5) << made.line;
}

TEST_P(RecurrentExportTest, OnnxFilesAnswerAsTheGraphDoes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConvertedModel made,
      Converted(Layer(GetParam()), ModelFormat::kOnnx));
  ASSERT_TRUE(made.difference.has_value()) << made.line;
  EXPECT_LT(made.difference->largest, 1e-6) << made.line;
}

INSTANTIATE_TEST_SUITE_P(
    Layers, RecurrentExportTest,
    Values(LayerCase{"lstm", "LSTM"},
           LayerCase{"lstm_both_ways", "LSTM", "bidirectional"},
           LayerCase{"lstm_peepholes", "LSTM", "reverse", kClip, false, true},
           LayerCase{"lstm_coupled", "LSTM", "forward",
                     "attribute { name: 'input_forget' type: INT i: 1 }", false,
                     true, false},
           LayerCase{"lstm_lengths", "LSTM", "bidirectional", "", true, true},
           LayerCase{"lstm_functions", "LSTM", "forward",
                     Functions({"HardSigmoid", "ScaledTanh", "Softsign"})},
           LayerCase{"gru", "GRU"},
           LayerCase{"gru_both_ways", "GRU", "bidirectional", "", true},
           LayerCase{
               "gru_resets_product", "GRU", "reverse",
               absl::StrCat("attribute { name: 'linear_before_reset' type: "
                            "INT i: 1 }",
                            kClip)},
           LayerCase{"gru_functions", "GRU", "forward",
                     Functions({"Affine", "LeakyRelu"})},
           LayerCase{"rnn", "RNN", "bidirectional", kClip},
           LayerCase{"rnn_lengths", "RNN", "reverse", "", true, false, false},
           LayerCase{"rnn_elu", "RNN", "forward", Functions({"Elu"})},
           LayerCase{"rnn_softplus", "RNN", "forward", Functions({"Softplus"})},
           LayerCase{"rnn_threshold", "RNN", "forward",
                     Functions({"ThresholdedRelu"})}),
    [](const auto& layer) { return layer.param.name; });

// Runtimes disagree on factors that are left out.
TEST(RecurrentOnnxTest, WritesTheFactorsOfFunctions) {
  const std::string bytes = Layer(
      {"rnn", "RNN", "forward",
       "attribute { name: 'activations' type: STRINGS strings: 'Affine' }"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                               Converted(bytes, ModelFormat::kOnnx));
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(made.bytes));
  std::vector<float> factors;
  for (const auto& node : model.graph().node()) {
    for (const auto& attribute : node.attribute()) {
      factors.insert(factors.end(), attribute.floats().begin(),
                     attribute.floats().end());
    }
  }
  EXPECT_THAT(factors, ElementsAre(1.0f, 0.0f));
}

}  // namespace
}  // namespace optfarm::exporting
