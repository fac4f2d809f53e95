// Recurrent operators: state from run to run, both directions, linked inputs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/tflite/reader.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/runtime/session/session.h"
#include "tests/engine/formats/tflite/test_model.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using runtime::Tensor;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using tflite::ActivationFunctionType;
using tflite::BuiltinOperator;
using tflite::TestModel;

// Sessions keep the state of a model.
class Recurrent {
 public:
  static absl::StatusOr<Recurrent> Make(const TestModel& model) {
    auto def = ReadTflite(model.Bytes(), "the test's model");
    if (!def.ok()) return def.status();
    auto graph = graph::Graph::FromDef(*std::move(def));
    if (!graph.ok()) return graph.status();
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
    Recurrent made;
    made.session_ = *std::move(session);
    return made;
  }

  // The first output for inputs of one shape.
  std::vector<float> Run(const runtime::Shape& shape,
                         const std::vector<std::vector<float>>& inputs) const {
    std::vector<Tensor> tensors;
    for (const auto& values : inputs) {
      tensors.push_back(Tensor::FromValues<float>(shape, values));
    }
    const auto outputs = session_->Run(tensors);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return {};
    return {(*outputs)[0].flat<float>().begin(),
            (*outputs)[0].flat<float>().end()};
  }

 private:
  std::unique_ptr<runtime::Session> session_;
};

int State(const std::string& name, TestModel* model) {
  const int state = model->Tensor(name, {1, 1});
  model->tensor(state).is_variable = true;
  return state;
}

// Weights of a plain layer of one unit: h = f(x + h / 2).
std::vector<int32_t> PlainLayer(const std::string& prefix, TestModel* model) {
  return {model->Floats(prefix + "w", {1, 1}, {1}),
          model->Floats(prefix + "r", {1, 1}, {0.5f}),
          model->Floats(prefix + "b", {1}, {0}), State(prefix + "h", model)};
}

TEST(TfliteRecurrentTest, APlainLayerKeepsItsState) {
  TestModel model;
  const int x = model.Tensor("x", {1, 2, 1});
  const int y = model.Tensor("y", {1, 2, 1});
  std::vector<int32_t> inputs = PlainLayer("", &model);
  inputs.insert(inputs.begin(), x);
  tflite::SequenceRNNOptionsT options;
  options.fused_activation_function = ActivationFunctionType::RELU6;
  model.Operator(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_RNN, inputs, {y},
                 options);
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Recurrent layer, Recurrent::Make(model));
  EXPECT_THAT(layer.Run({1, 2, 1}, {{4, 5}}), ElementsAre(4, 6));
  EXPECT_THAT(layer.Run({1, 2, 1}, {{-2, -2}}), ElementsAre(1, 0));
}

TEST(TfliteRecurrentTest, ACellTakesOneStep) {
  TestModel model;
  const int x = model.Tensor("x", {1, 1});
  const int y = model.Tensor("y", {1, 1});
  std::vector<int32_t> inputs = PlainLayer("", &model);
  inputs.insert(inputs.begin(), x);
  model.Operator(BuiltinOperator::RNN, inputs, {y}, tflite::RNNOptionsT());
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Recurrent layer, Recurrent::Make(model));
  EXPECT_THAT(layer.Run({1, 1}, {{4}}), ElementsAre(4));
  EXPECT_THAT(layer.Run({1, 1}, {{1}}), ElementsAre(3));
}

// Both directions, side by side; with an input of its own for the second, and
// with one that both read through weights.
TEST(TfliteRecurrentTest, PlainLayersGoBothWays) {
  enum Auxiliary { kNone, kOfBackward, kLinked };
  for (const Auxiliary kind : {kNone, kOfBackward, kLinked}) {
    TestModel model;
    const int x = model.Tensor("x", {2, 1, 1});
    const int other = model.Tensor("other", {2, 1, 1});
    const int y = model.Tensor("y", {2, 1, 2});
    std::vector<int32_t> inputs = {x};
    for (const char* prefix : {"forward", "backward"}) {
      for (const int32_t input : PlainLayer(prefix, &model)) {
        inputs.push_back(input);
      }
    }
    inputs.push_back(kind == kNone ? -1 : other);
    for (const char* name : {"of_forward", "of_backward"}) {
      inputs.push_back(kind == kLinked ? model.Floats(name, {1, 1}, {10}) : -1);
    }
    tflite::BidirectionalSequenceRNNOptionsT options;
    options.fused_activation_function = ActivationFunctionType::RELU;
    options.merge_outputs = true;
    options.time_major = true;
    model.Operator(BuiltinOperator::BIDIRECTIONAL_SEQUENCE_RNN, inputs, {y},
                   options);
    model.Interface({x, other}, {y});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Recurrent layer, Recurrent::Make(model));
    const std::vector<float> answer = layer.Run({2, 1, 1}, {{1, 2}, {3, 4}});
    if (kind == kNone) {
      EXPECT_THAT(answer, ElementsAre(1, 2, 2.5f, 2));
    } else if (kind == kOfBackward) {
      EXPECT_THAT(answer, ElementsAre(1, 5, 2.5f, 4));
    } else {
      EXPECT_THAT(answer, ElementsAre(31, 52, 57.5f, 42));
    }
  }
}

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Inputs of one direction of an LSTM of one cell: all weights of its input 1,
// of its state 0.5, peepholes 0.25, biases 0.1.
void AppendLstm(const std::string& prefix, TestModel* model,
                std::vector<int32_t>* inputs) {
  const auto constants = [&](const char* name, int count, float value,
                             bool is_matrix) {
    for (int i = 0; i < count; ++i) {
      inputs->push_back(model->Floats(
          absl::StrCat(prefix, name, i),
          is_matrix ? std::vector<int32_t>{1, 1} : std::vector<int32_t>{1},
          {value}));
    }
  };
  constants("w", 4, 1, true);
  constants("r", 4, 0.5f, true);
  constants("p", 3, 0.25f, false);
  constants("b", 4, 0.1f, false);
  inputs->insert(inputs->end(), {-1, -1});
}

// A step of that cell.
struct Cell {
  float h = 0, c = 0;
  float Step(float x) {
    const float sum = x + 0.5f * h + 0.1f;
    const float input = Sigmoid(sum + 0.25f * c);
    const float forget = Sigmoid(sum + 0.25f * c);
    c = forget * c + input * std::tanh(sum);
    h = Sigmoid(sum + 0.25f * c) * std::tanh(c);
    return h;
  }
};

TEST(TfliteRecurrentTest, LstmsGoBothWaysAndKeepTheirStates) {
  TestModel model;
  const int x = model.Tensor("x", {1, 2, 1});
  const int y = model.Tensor("y", {1, 2, 2});
  std::vector<int32_t> inputs = {x};
  AppendLstm("f", &model, &inputs);
  AppendLstm("b", &model, &inputs);
  for (const char* name : {"fh", "fc", "bh", "bc"}) {
    inputs.push_back(State(name, &model));
  }
  inputs.resize(48, -1);
  tflite::BidirectionalSequenceLSTMOptionsT options;
  options.fused_activation_function = ActivationFunctionType::TANH;
  options.merge_outputs = true;
  options.time_major = false;
  model.Operator(BuiltinOperator::BIDIRECTIONAL_SEQUENCE_LSTM, inputs, {y},
                 options);
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Recurrent layer, Recurrent::Make(model));
  Cell forward, backward;
  for (const std::vector<float>& values :
       std::vector<std::vector<float>>{{0.5f, -1}, {2, 0.25f}}) {
    const float f0 = forward.Step(values[0]), f1 = forward.Step(values[1]);
    const float b1 = backward.Step(values[1]), b0 = backward.Step(values[0]);
    EXPECT_THAT(layer.Run({1, 2, 1}, {values}),
                Pointwise(FloatNear(1e-6f), {f0, b0, f1, b1}));
  }
}

// The cell with all weights in one matrix: rows input, cell, forget, output.
TEST(TfliteRecurrentTest, ReadsTheBasicLstmCell) {
  TestModel model;
  const int x = model.Tensor("x", {1, 1});
  const int h = State("h", &model);
  const int w = model.Floats("w", {4, 2}, {1, 0.5f, 2, 0, 3, 0, 4, 0});
  const int b = model.Floats("b", {4}, {0, 0.1f, 0.2f, 0.3f});
  const int c = State("c", &model);
  const int y = model.Tensor("y", {1, 1}), cell = model.Tensor("cell", {1, 1});
  const int scratch = model.Tensor("scratch", {1, 2});
  const int gates = model.Tensor("gates", {1, 4});
  tflite::LSTMOptionsT options;
  options.kernel_type = tflite::LSTMKernelType::BASIC;
  options.fused_activation_function = ActivationFunctionType::TANH;
  model.Operator(BuiltinOperator::LSTM, {x, h, w, b, c},
                 {y, cell, scratch, gates}, options);
  model.Interface({x}, {y});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Recurrent layer, Recurrent::Make(model));
  float state = 0, before = 0;
  for (const float value : {0.5f, -0.25f}) {
    state = Sigmoid(3 * value + 0.2f) * state +
            Sigmoid(value + 0.5f * before) * std::tanh(2 * value + 0.1f);
    before = Sigmoid(4 * value + 0.3f) * std::tanh(state);
    EXPECT_THAT(layer.Run({1, 1}, {{value}}),
                ElementsAre(FloatNear(before, 1e-6f)));
  }
}

// As converters of 2018 wrote it: bytes, and a cell of 16 bits.
TEST(TfliteRecurrentTest, ReadsTheBasicLstmCellInBytes) {
  using tflite::TensorType;
  TestModel model;
  const auto bytes = [&](const std::string& name, std::vector<int32_t> shape) {
    return model.Quantize(
        model.Tensor(name, std::move(shape), TensorType::UINT8), {1 / 128.0f},
        {128});
  };
  const int fed = model.Tensor("fed", {1, 1});
  const int x = bytes("x", {1, 1}), h = bytes("h", {1, 1});
  model.Operator(BuiltinOperator::QUANTIZE, {fed}, {x},
                 tflite::QuantizeOptionsT());
  // 1, 0.5, 2, 0 and so on in steps of 1/32.
  const int w = model.Quantize(
      model.Constant<uint8_t>("w", {4, 2}, TensorType::UINT8,
                              {132, 116, 164, 100, 196, 100, 228, 100}),
      {1 / 32.0f}, {100});
  const int b = model.Quantize(
      model.Constant<int32_t>("b", {4}, TensorType::INT32, {0, 410, 819, 1229}),
      {1 / 4096.0f}, {0});
  const int c = model.Quantize(model.Tensor("c", {1, 1}, TensorType::INT16),
                               {1 / 2048.0f}, {0});
  for (const int state : {h, c}) model.tensor(state).is_variable = true;
  const int y = bytes("y", {1, 1});
  const int cell = model.Quantize(
      model.Tensor("cell", {1, 1}, TensorType::INT16), {1 / 2048.0f}, {0});
  const int scratch = bytes("scratch", {1, 2});
  const int gates = model.Quantize(
      model.Tensor("gates", {1, 4}, TensorType::INT16), {1 / 4096.0f}, {0});
  tflite::LSTMOptionsT options;
  options.kernel_type = tflite::LSTMKernelType::BASIC;
  options.fused_activation_function = ActivationFunctionType::TANH;
  model.Operator(BuiltinOperator::LSTM, {x, h, w, b, c},
                 {y, cell, scratch, gates}, options);
  const int real = model.Tensor("real", {1, 1});
  model.Operator(BuiltinOperator::DEQUANTIZE, {y}, {real},
                 tflite::DequantizeOptionsT());
  model.Interface({fed}, {real});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Recurrent layer, Recurrent::Make(model));
  // Unsigned states begin as the byte 0, as in the interpreter: that is -1.
  float state = 0, before = -1;
  for (const float value : {0.5f, -0.25f}) {
    state = Sigmoid(3 * value + 0.2f) * state +
            Sigmoid(value + 0.5f * before) * std::tanh(2 * value + 0.1f);
    before = Sigmoid(4 * value + 0.3f) * std::tanh(state);
    EXPECT_THAT(layer.Run({1, 1}, {{value}}),
                ElementsAre(FloatNear(before, 0.01f)));
  }
}

// A kilobyte of file would make a gigabyte of zeros for each operator.
TEST(TfliteRecurrentTest, RefusesAStateThatIsLargerThanTheFileAllows) {
  TestModel model;
  const int x = model.Tensor("x", {1, 1});
  const int y = model.Tensor("y", {1, 1});
  std::vector<int32_t> inputs = PlainLayer("", &model);
  model.tensor(inputs.back()).shape = {1 << 14, 1 << 13};
  inputs.insert(inputs.begin(), x);
  model.Operator(BuiltinOperator::RNN, inputs, {y}, tflite::RNNOptionsT());
  model.Interface({x}, {y});
  EXPECT_THAT(Recurrent::Make(model).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("of shape [16384,8192] takes far more")));
}

TEST(TfliteRecurrentTest, RefusesFunctionsThatItLacks) {
  TestModel model;
  const int x = model.Tensor("x", {1, 1});
  const int y = model.Tensor("y", {1, 1});
  std::vector<int32_t> inputs = PlainLayer("", &model);
  inputs.insert(inputs.begin(), x);
  tflite::RNNOptionsT options;
  options.fused_activation_function = ActivationFunctionType::SIGN_BIT;
  model.Operator(BuiltinOperator::RNN, inputs, {y}, options);
  model.Interface({x}, {y});
  EXPECT_THAT(Recurrent::Make(model).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("activation function SIGN_BIT")));
}

}  // namespace
}  // namespace optfarm::formats
