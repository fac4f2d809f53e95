// Small models as graphs: what their operators compute, what is kept of their
// quantization and their names, and what is refused.

#include "engine/formats/tflite/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/verify.h"
#include "engine/runtime/session/session.h"
#include "flatbuffers/flexbuffers.h"
#include "tests/engine/formats/tflite/test_model.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

using runtime::Tensor;
using tflite::BuiltinOperator;
using tflite::TensorType;
using tflite::TestModel;

// A model in a session, by its declared inputs and outputs.
class Runner {
 public:
  static absl::StatusOr<Runner> Make(const TestModel& model) {
    auto def = ReadTflite(model.Bytes(), "the test's model");
    if (!def.ok()) return def.status();
    auto graph = graph::Graph::FromDef(*std::move(def));
    if (!graph.ok()) return graph.status();
    const absl::Status verified = graph::Verify(*graph);
    if (!verified.ok()) return verified;
    Runner runner;
    const graph::ModelInterface io = graph::ReadModelInterface(*graph);
    std::vector<graph::TensorName> feeds, fetches;
    for (const auto& input : io.inputs) {
      feeds.push_back({graph->node(input.tensor.node).name(), 0});
    }
    for (const auto& output : io.outputs) {
      fetches.push_back({graph->node(output.tensor.node).name(), 0});
    }
    auto session = runtime::Session::Create(*graph, feeds, fetches);
    if (!session.ok()) return session.status();
    runner.session_ = *std::move(session);
    runner.graph_ = std::make_shared<graph::Graph>(*std::move(graph));
    return runner;
  }
  absl::StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> inputs) const {
    return session_->Run(inputs);
  }
  const graph::Graph& graph() const { return *graph_; }
  int Count(absl::string_view op) const {
    int count = 0;
    for (const graph::NodeId id : graph_->Ids()) {
      count += graph_->node(id).op() == op;
    }
    return count;
  }

 private:
  std::unique_ptr<runtime::Session> session_;
  std::shared_ptr<graph::Graph> graph_;
};

Tensor Floats(const runtime::Shape& shape, std::vector<float> values) {
  return Tensor::FromValues<float>(shape, values);
}
Tensor Bytes(const runtime::Shape& shape, std::vector<int8_t> values) {
  return Tensor::FromValues<int8_t>(shape, values);
}
template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  return {tensor.flat<T>().begin(), tensor.flat<T>().end()};
}

TEST(TfliteReaderTest, KeepsNamesOrderAndSignature) {
  TestModel model;
  const int b = model.Tensor("serving_default_b:0", {2});
  const int a = model.Tensor("serving_default_a:0", {2});
  const int sum = model.Tensor("sum;of both", {2});
  model.Operator(BuiltinOperator::ADD, {a, b}, {sum}, tflite::AddOptionsT());
  model.Interface({b, a}, {sum});
  auto signature = std::make_unique<tflite::SignatureDefT>();
  signature->signature_key = "serving_default";
  auto entry = std::make_unique<tflite::TensorMapT>();
  entry->name = "a";
  entry->tensor_index = static_cast<uint32_t>(a);
  signature->inputs.push_back(std::move(entry));
  model.model().signature_defs.push_back(std::move(signature));
  model.model().description = "adds";
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  const auto io = graph::ReadModelInterface(runner.graph());
  EXPECT_EQ(io.format, "tflite");
  ASSERT_EQ(io.inputs.size(), 2u);
  EXPECT_EQ(io.inputs[0].name, "serving_default_b:0");
  EXPECT_EQ(io.inputs[1].name, "serving_default_a:0");
  ASSERT_EQ(io.outputs.size(), 1u);
  EXPECT_EQ(io.outputs[0].name, "sum;of both");
  const auto* signed_as =
      runner.graph().node(io.inputs[1].tensor.node).FindAttr(kSignatureAttr);
  ASSERT_NE(signed_as, nullptr);
  EXPECT_THAT(signed_as->list().s(), ElementsAre("serving_default", "a"));
  EXPECT_EQ(runner.graph()
                .node(io.outputs[0].tensor.node)
                .FindAttr(kDescriptionAttr)
                ->s(),
            "adds");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out, runner.Run({Floats({2}, {1, 2}), Floats({2}, {3, 5})}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(4, 7));
}

// Weights [1, 1, 1, 2], input and bias quantized: 0.5 * q, and so on.
TEST(TfliteReaderTest, QuantizedConvolutionKeepsItsScales) {
  TestModel model;
  const int x = model.Quantize(
      model.Tensor("x", {1, 1, 1, 2}, TensorType::INT8), {0.5f}, {1});
  const int w = model.Quantize(
      model.Constant<int8_t>("w", {2, 1, 1, 2}, TensorType::INT8, {2, 4, 6, 8}),
      {0.25f, 2.0f}, {0, 0}, 0);
  const int bias = model.Quantize(
      model.Constant<int32_t>("bias", {2}, TensorType::INT32, {8, -1}),
      {0.125f, 1.0f}, {0, 0}, 0);
  const int y = model.Quantize(
      model.Tensor("y", {1, 1, 1, 2}, TensorType::INT8), {1.0f}, {-3});
  tflite::Conv2DOptionsT options;
  options.stride_h = options.stride_w = 1;
  options.fused_activation_function = tflite::ActivationFunctionType::RELU;
  model.Operator(BuiltinOperator::CONV_2D, {x, w, bias}, {y}, options);
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  EXPECT_EQ(runner.Count("QuantizeLinear"), 1);
  EXPECT_EQ(runner.Count("DequantizeLinear"), 3);
  EXPECT_EQ(runner.Count("Transpose"), 0);
  // x = (1, 2); 0.25 * (2 * 1 + 4 * 2) + 1 = 3.5; 2 * (6 + 16) - 1 = 43.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               runner.Run({Bytes({1, 1, 1, 2}, {3, 5})}));
  EXPECT_THAT(Values<int8_t>(out[0]), ElementsAre(1, 40));
}

// As XNNPACK computes it: 200 * 0.498 is 99.6, but 0.498 is rounded to 127 /
// 256.
TEST(TfliteReaderTest, QuantizeBetweenScalesHasARatioOfEightBits) {
  TestModel model;
  const int x = model.Quantize(model.Tensor("x", {3}, TensorType::INT8),
                               {0.498f}, {-100});
  const int y =
      model.Quantize(model.Tensor("y", {3}, TensorType::INT8), {1}, {0});
  model.Operator(BuiltinOperator::QUANTIZE, {x}, {y});
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               runner.Run({Bytes({3}, {100, -99, -101})}));
  EXPECT_THAT(Values<int8_t>(out[0]), ElementsAre(99, 0, 0));
}

// Of two and of six values: halves leave the value zero. Sums go up.
TEST(TfliteReaderTest, MeansAndSumsRoundAsTheInterpreter) {
  TestModel model;
  const auto tensor = [&](const char* name, std::vector<int32_t> shape,
                          float scale) {
    return model.Quantize(
        model.Tensor(name, std::move(shape), TensorType::INT8), {scale}, {0});
  };
  const int x = tensor("x", {1, 1, 2, 2}, 0.25f);
  const int mean = tensor("mean", {1, 1, 1, 2}, 0.25f);
  const int sum = tensor("sum", {1, 1, 2, 2}, 1);
  tflite::Pool2DOptionsT pool;
  pool.padding = tflite::Padding::VALID;
  pool.filter_width = 2;
  pool.filter_height = pool.stride_h = pool.stride_w = 1;
  model.Operator(BuiltinOperator::AVERAGE_POOL_2D, {x}, {mean}, pool);
  const int other = tensor("other", {1, 1, 2, 2}, 0.25f);
  model.Operator(BuiltinOperator::ADD, {x, other}, {sum},
                 tflite::AddOptionsT());
  model.Interface({x, other}, {mean, sum});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out, runner.Run({Bytes({1, 1, 2, 2}, {3, -3, 4, -4}),
                                  Bytes({1, 1, 2, 2}, {3, -3, 6, -6})}));
  EXPECT_THAT(Values<int8_t>(out[0]), ElementsAre(4, -4));
  EXPECT_THAT(Values<int8_t>(out[1]), ElementsAre(2, -1, 3, -2));
}

TEST(TfliteReaderTest, DepthwiseWithMultiplierAndChannelScales) {
  TestModel model;
  const int x = model.Tensor("x", {1, 1, 1, 2});
  const int w = model.Quantize(
      model.Constant<int8_t>("w", {1, 1, 1, 4}, TensorType::INT8, {1, 2, 3, 4}),
      {1.0f, 10.0f, 1.0f, 10.0f}, {0, 0, 0, 0}, 3);
  const int y = model.Tensor("y", {1, 1, 1, 4});
  tflite::DepthwiseConv2DOptionsT options;
  options.stride_h = options.stride_w = 1;
  options.depth_multiplier = 2;
  model.Operator(BuiltinOperator::DEPTHWISE_CONV_2D, {x, w, -1}, {y}, options);
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               runner.Run({Floats({1, 1, 1, 2}, {1, 2})}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(1, 20, 6, 80));
}

// Two to a byte, the first in the low bits: 1, -1, 7, -8.
TEST(TfliteReaderTest, UnpacksFourBitWeights) {
  TestModel model;
  const int x = model.Tensor("x", {1, 2});
  const int w = model.Quantize(
      model.Constant<uint8_t>("w", {2, 2}, TensorType::INT4, {0xf1, 0x87}),
      {0.5f}, {0});
  const int y = model.Tensor("y", {1, 2});
  model.Operator(BuiltinOperator::FULLY_CONNECTED, {x, w, -1}, {y},
                 tflite::FullyConnectedOptionsT());
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               runner.Run({Floats({1, 2}, {2, 4})}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(-1, -9));
}

// A matrix of 2 by 4 with blocks of 1 by 2: one block in each row.
tflite::SparsityParametersT BlockSparsity() {
  tflite::SparsityParametersT sparsity;
  sparsity.traversal_order = {0, 1, 2};
  sparsity.block_map = {1};
  for (int i = 0; i < 3; ++i) {
    auto level = std::make_unique<tflite::DimensionMetadataT>();
    level->dense_size = 2;
    if (i == 1) {
      level->format = tflite::DimensionType::SPARSE_CSR;
      tflite::Uint8VectorT segments, indices;
      segments.values = {0, 1, 2};
      indices.values = {1, 0};
      level->array_segments.Set(segments);
      level->array_indices.Set(indices);
    }
    sparsity.dim_metadata.push_back(std::move(level));
  }
  return sparsity;
}

TestModel SparseModel() {
  TestModel model;
  const int x = model.Tensor("x", {1, 4});
  const int sparse = model.Floats("sparse", {2, 4}, {1, 2, 3, 4});
  model.tensor(sparse).sparsity =
      std::make_unique<tflite::SparsityParametersT>(BlockSparsity());
  const int w = model.Tensor("w", {2, 4});
  const int y = model.Tensor("y", {1, 2});
  model.Operator(BuiltinOperator::DENSIFY, {sparse}, {w});
  model.Operator(BuiltinOperator::FULLY_CONNECTED, {x, w, -1}, {y},
                 tflite::FullyConnectedOptionsT());
  model.Interface({x}, {y});
  return model;
}

TEST(TfliteReaderTest, ExpandsSparseWeights) {
  const TestModel model = SparseModel();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  // Rows (0, 0, 1, 2) and (3, 4, 0, 0).
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out, runner.Run({Floats({1, 4}, {1, 10, 100, 1000})}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(2100, 43));
}

TEST(TfliteReaderTest, RefusesDamagedSparsity) {
  TestModel model = SparseModel();
  auto& levels = model.tensor(1).sparsity->dim_metadata;
  levels[1]->array_indices.AsUint8Vector()->values = {1, 9};
  EXPECT_THAT(Runner::Make(model).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'sparse'"), HasSubstr("index 9"))));
  levels[1]->array_indices.AsUint8Vector()->values = {1, 0};
  levels[1]->array_segments.AsUint8Vector()->values = {0, 2, 1};
  EXPECT_THAT(
      Runner::Make(model).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sparsity")));
}

// Half precision 1.5 and -2 behind DEQUANTIZE.
TEST(TfliteReaderTest, ReadsHalfWeights) {
  TestModel model;
  const int x = model.Tensor("x", {1, 2});
  const int half = model.Constant<uint16_t>("half", {1, 2}, TensorType::FLOAT16,
                                            {0x3e00, 0xc000});
  const int w = model.Tensor("w", {1, 2});
  const int y = model.Tensor("y", {1, 1});
  model.Operator(BuiltinOperator::DEQUANTIZE, {half}, {w});
  model.Operator(BuiltinOperator::FULLY_CONNECTED, {x, w}, {y},
                 tflite::FullyConnectedOptionsT());
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               runner.Run({Floats({1, 2}, {2, 1})}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(1));
}

TEST(TfliteReaderTest, PadsWithTheZeroPoint) {
  TestModel model;
  const int x =
      model.Quantize(model.Tensor("x", {2}, TensorType::INT8), {1.0f}, {-7});
  const int paddings =
      model.Constant<int32_t>("paddings", {1, 2}, TensorType::INT32, {1, 0});
  const int y =
      model.Quantize(model.Tensor("y", {3}, TensorType::INT8), {1.0f}, {-7});
  model.Operator(BuiltinOperator::PAD, {x, paddings}, {y});
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               runner.Run({Bytes({2}, {1, 2})}));
  EXPECT_THAT(Values<int8_t>(out[0]), ElementsAre(-7, 1, 2));
}

// A variable that starts at 10 and adds each input.
TEST(TfliteReaderTest, VariablesLastFromRunToRun) {
  TestModel model;
  const int x = model.Tensor("x", {1});
  const int handle = model.Tensor("handle", {}, TensorType::RESOURCE);
  const int before = model.Tensor("before", {1});
  const int after = model.Tensor("after", {1});
  tflite::VarHandleOptionsT variable;
  variable.shared_name = "total";
  tflite::CallOnceOptionsT once;
  once.init_subgraph_index = 1;
  model.Operator(BuiltinOperator::CALL_ONCE, {}, {}, once);
  model.Operator(BuiltinOperator::VAR_HANDLE, {}, {handle}, variable);
  model.Operator(BuiltinOperator::READ_VARIABLE, {handle}, {before});
  model.Operator(BuiltinOperator::ADD, {before, x}, {after},
                 tflite::AddOptionsT());
  model.Operator(BuiltinOperator::ASSIGN_VARIABLE, {handle, after}, {});
  model.Interface({x}, {after});
  model.AddSubgraph();
  const int inner = model.Tensor("inner", {}, TensorType::RESOURCE);
  const int ten = model.Floats("ten", {1}, {10});
  model.Operator(BuiltinOperator::VAR_HANDLE, {}, {inner}, variable);
  model.Operator(BuiltinOperator::ASSIGN_VARIABLE, {inner, ten}, {});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  for (const float expected : {11.0f, 12.0f, 13.0f}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 runner.Run({Floats({1}, {1})}));
    EXPECT_THAT(Values<float>(out[0]), ElementsAre(expected));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner fresh, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, fresh.Run({Floats({1}, {5})}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(15));
}

TEST(TfliteReaderTest, BranchesAndLoops) {
  TestModel model;
  const int x = model.Tensor("x", {1});
  const int is_big = model.Tensor("is_big", {1}, TensorType::BOOL);
  const int ten = model.Floats("ten", {1}, {10});
  const int chosen = model.Tensor("chosen", {1});
  const int grown = model.Tensor("grown", {1});
  model.Operator(BuiltinOperator::GREATER, {x, ten}, {is_big});
  tflite::IfOptionsT branches;
  branches.then_subgraph_index = 1;
  branches.else_subgraph_index = 2;
  model.Operator(BuiltinOperator::IF, {is_big, x}, {chosen}, branches);
  tflite::WhileOptionsT loop;
  loop.cond_subgraph_index = 3;
  loop.body_subgraph_index = 2;
  model.Operator(BuiltinOperator::WHILE, {chosen}, {grown}, loop);
  model.Interface({x}, {chosen, grown});
  // Negates.
  model.AddSubgraph();
  const int a = model.Tensor("a", {1});
  const int negative = model.Tensor("negative", {1});
  model.Operator(BuiltinOperator::NEG, {a}, {negative});
  model.Interface({a}, {negative});
  // Doubles.
  model.AddSubgraph();
  const int b = model.Tensor("b", {1});
  const int twice = model.Tensor("twice", {1});
  model.Operator(BuiltinOperator::ADD, {b, b}, {twice}, tflite::AddOptionsT());
  model.Interface({b}, {twice});
  // Below 100, and not negative.
  model.AddSubgraph();
  const int c = model.Tensor("c", {1});
  const int square = model.Tensor("square", {1});
  const int limit = model.Floats("limit", {1}, {10000});
  const int goes_on = model.Tensor("goes_on", {1}, TensorType::BOOL);
  const int shape =
      model.Constant<int32_t>("shape", {0}, TensorType::INT32, {});
  const int condition = model.Tensor("condition", {}, TensorType::BOOL);
  model.Operator(BuiltinOperator::MUL, {c, c}, {square}, tflite::MulOptionsT());
  model.Operator(BuiltinOperator::LESS, {square, limit}, {goes_on});
  model.Operator(BuiltinOperator::RESHAPE, {goes_on, shape}, {condition});
  model.Interface({c}, {condition});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto small,
                               runner.Run({Floats({1}, {7})}));
  EXPECT_THAT(Values<float>(small[0]), ElementsAre(14));
  EXPECT_THAT(Values<float>(small[1]), ElementsAre(112));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto big, runner.Run({Floats({1}, {60})}));
  EXPECT_THAT(Values<float>(big[0]), ElementsAre(-60));
  EXPECT_THAT(Values<float>(big[1]), ElementsAre(-120));
}

TEST(TfliteReaderTest, SubgraphsThatCallThemselvesAreRefused) {
  TestModel model;
  const int x = model.Tensor("x", {1});
  const int y = model.Tensor("y", {1});
  model.Operator(BuiltinOperator::CALL, {x}, {y}, tflite::CallOptionsT());
  model.Interface({x}, {y});
  EXPECT_THAT(
      Runner::Make(model).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("calls itself")));
}

// An LSTM of one cell whose gates are all open: c grows by tanh(x).
TEST(TfliteReaderTest, SequenceLstmKeepsItsState) {
  TestModel model;
  const int x = model.Tensor("x", {1, 2, 1});
  std::vector<int32_t> inputs = {x};
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(
        model.Floats(absl::StrCat("w", i), {1, 1}, {i == 2 ? 1.0f : 0.0f}));
  }
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(model.Floats(absl::StrCat("r", i), {1, 1}, {0}));
  }
  for (int i = 0; i < 3; ++i) inputs.push_back(-1);
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(
        model.Floats(absl::StrCat("b", i), {1}, {i == 2 ? 0.0f : 50.0f}));
  }
  inputs.push_back(-1);
  inputs.push_back(-1);
  for (const char* name : {"h", "c"}) {
    inputs.push_back(model.Tensor(name, {1, 1}));
    model.tensor(inputs.back()).is_variable = true;
  }
  const int y = model.Tensor("y", {1, 2, 1});
  tflite::UnidirectionalSequenceLSTMOptionsT options;
  options.fused_activation_function = tflite::ActivationFunctionType::TANH;
  model.Operator(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, {y},
                 options);
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  const float step = std::tanh(0.5f);
  for (int run = 0; run < 2; ++run) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 runner.Run({Floats({1, 2, 1}, {0.5f, 0.5f})}));
    EXPECT_THAT(
        Values<float>(out[0]),
        ElementsAre(
            FloatNear(std::tanh(static_cast<float>(2 * run + 1) * step), 1e-5f),
            FloatNear(std::tanh(static_cast<float>(2 * run + 2) * step),
                      1e-5f)));
  }
}

// Two boxes on one place and one apart; anchors of size 1.
TEST(TfliteReaderTest, DetectionPostprocessing) {
  TestModel model;
  const int boxes = model.Tensor("boxes", {1, 3, 4});
  const int scores = model.Tensor("scores", {1, 3, 3});
  const int anchors =
      model.Floats("anchors", {3, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 1, 1});
  const int out_boxes = model.Tensor("out_boxes", {1, 2, 4});
  const int classes = model.Tensor("classes", {1, 2});
  const int out_scores = model.Tensor("out_scores", {1, 2});
  const int count = model.Tensor("count", {1});
  auto& op = model.Operator(BuiltinOperator::CUSTOM, {boxes, scores, anchors},
                            {out_boxes, classes, out_scores, count});
  model.model().operator_codes[0]->custom_code = "TFLite_Detection_PostProcess";
  flexbuffers::Builder options;
  options.Map([&]() {
    options.Int("max_detections", 2);
    options.Int("max_classes_per_detection", 1);
    options.Int("num_classes", 2);
    options.Float("nms_score_threshold", 0.1f);
    options.Float("nms_iou_threshold", 0.5f);
    options.Float("y_scale", 10);
    options.Float("x_scale", 10);
    options.Float("h_scale", 5);
    options.Float("w_scale", 5);
    options.Bool("use_regular_nms", false);
  });
  options.Finish();
  op.custom_options = options.GetBuffer();
  model.Interface({boxes, scores}, {out_boxes, classes, out_scores, count});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      runner.Run(
          {Floats({1, 3, 4}, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}),
           Floats({1, 3, 3}, {0, 0.2f, 0.6f, 0, 0.3f, 0.9f, 0, 0.8f, 0.1f})}));
  EXPECT_THAT(Values<float>(out[0]),
              ElementsAre(FloatEq(-0.4f), FloatEq(-0.5f), FloatEq(0.6f),
                          FloatEq(0.5f), 4.5f, 4.5f, 5.5f, 5.5f));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(1, 0));
  EXPECT_THAT(Values<float>(out[2]), ElementsAre(0.9f, 0.8f));
  EXPECT_THAT(Values<float>(out[3]), ElementsAre(2));
  // Options that lead out of themselves.
  for (size_t size = 0; size < op.custom_options.size(); ++size) {
    TestModel cut = model.Copy();
    cut.subgraph().operators[0]->custom_options.resize(size);
    (void)Runner::Make(cut);
  }
}

// Each pixel spreads over two of the result, and the bias is added to all.
TEST(TfliteReaderTest, TransposedConvolutionWithABias) {
  TestModel model;
  const int x = model.Tensor("x", {1, 1, 2, 1});
  const int w = model.Floats("w", {1, 1, 2, 1}, {10, 1});
  const int b = model.Floats("b", {1}, {0.5f});
  const int y = model.Tensor("y", {1, 1, 4, 1});
  auto& op = model.Operator(BuiltinOperator::CUSTOM, {x, w, b}, {y});
  model.model().operator_codes[0]->custom_code = "Convolution2DTransposeBias";
  // VALID; strides of width and height.
  op.custom_options = {2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0};
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Runner runner, Runner::Make(model));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               runner.Run({Floats({1, 1, 2, 1}, {1, 2})}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(10.5f, 1.5f, 20.5f, 2.5f));
  op.custom_options[0] = 3;
  EXPECT_THAT(
      Runner::Make(model).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("padding 3")));
  op.custom_options.resize(11);
  EXPECT_FALSE(Runner::Make(model).ok());
}

TEST(TfliteReaderTest, NamesEveryOperatorThatItLacks) {
  TestModel model;
  const int x = model.Tensor("x", {1});
  const int y = model.Tensor("y", {1});
  const int z = model.Tensor("z", {1});
  model.Operator(BuiltinOperator::CUSTOM, {x}, {y});
  model.model().operator_codes[0]->custom_code = "MaxUnpooling2D";
  model.Operator(BuiltinOperator::LSH_PROJECTION, {y}, {z});
  model.Interface({x}, {z});
  EXPECT_THAT(Runner::Make(model).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("custom operator MaxUnpooling2D (1)"),
                             HasSubstr("operator LSH_PROJECTION (1)"))));
}

// --- Damage ------------------------------------------------------------------

TestModel Doubling() {
  TestModel model;
  const int x = model.Tensor("x", {2});
  const int two = model.Floats("two", {2}, {2, 2});
  const int y = model.Tensor("y", {2});
  model.Operator(BuiltinOperator::MUL, {x, two}, {y}, tflite::MulOptionsT());
  model.Interface({x}, {y});
  return model;
}

void ExpectRefused(const TestModel& model, absl::string_view reason) {
  EXPECT_THAT(
      ReadTflite(model.Bytes(), "'m.tflite'").status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'m.tflite'"), HasSubstr(std::string(reason)))));
}

TEST(TfliteReaderTest, ChecksEveryIndex) {
  TestModel model = Doubling();
  model.subgraph().inputs = {7};
  ExpectRefused(model, "input 0 is tensor 7");
  model = Doubling();
  model.subgraph().outputs = {-1};
  ExpectRefused(model, "output 0 is tensor -1");
  model = Doubling();
  model.subgraph().operators[0]->inputs = {0, 99};
  ExpectRefused(model, "operator 0 (MUL): input 1 is tensor 99");
  model = Doubling();
  model.subgraph().operators[0]->opcode_index = 5;
  ExpectRefused(model, "has code 5");
  model = Doubling();
  model.tensor(1).buffer = 12;
  ExpectRefused(model, "its buffer is number 12");
  model = Doubling();
  model.subgraph().operators[0]->inputs = {2, 1};
  ExpectRefused(model, "read before anything computes it");
}

TEST(TfliteReaderTest, ChecksConstantsAgainstTheirShapes) {
  TestModel model = Doubling();
  model.tensor(1).shape = {3};
  ExpectRefused(model, "8 bytes, which do not fit FLOAT32[3]");
  model.tensor(1).shape = {std::numeric_limits<int32_t>::max(),
                           std::numeric_limits<int32_t>::max(), 1 << 20};
  ExpectRefused(model, "too large");
  model.tensor(1).shape = {-2};
  ExpectRefused(model, "negative dimension");
}

TEST(TfliteReaderTest, RefusesQuantizationThatDoesNotFit) {
  TestModel model = Doubling();
  model.tensor(0).type = TensorType::INT8;
  model.Quantize(0, {1, 2, 3}, {0, 0, 0});
  ExpectRefused(model, "3 scales for dimension 0");
  model.Quantize(0, {std::numeric_limits<float>::infinity()}, {0});
  ExpectRefused(model, "its scale is inf");
  model.Quantize(0, {1}, {300});
  ExpectRefused(model, "zero point 300");
}

// Neither a crash nor a hang, whatever is missing at the end.
TEST(TfliteReaderTest, RefusesFilesThatAreCutOff) {
  const std::string bytes = SparseModel().Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ReadTflite(bytes.substr(0, size), "the file").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("file")))
        << size;
  }
}

TEST(TfliteReaderTest, SurvivesAnyChangedByte) {
  const std::string bytes = SparseModel().Bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      (void)ReadTflite(changed, "the file");
    }
  }
}

}  // namespace
}  // namespace optfarm::formats
