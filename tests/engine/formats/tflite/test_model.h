// Small TensorFlow Lite models for tests, written with FlatBuffers' object API.

#ifndef OPTFARM_TESTS_ENGINE_FORMATS_TFLITE_TEST_MODEL_H_
#define OPTFARM_TESTS_ENGINE_FORMATS_TFLITE_TEST_MODEL_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tflite/schema_generated.h"

namespace optfarm::tflite {

// Adds tensors and operators to a subgraph of a model.
class TestModel {
 public:
  TestModel() {
    model_.version = 3;
    model_.buffers.push_back(std::make_unique<BufferT>());
    AddSubgraph();
  }

  // Later calls add to this one.
  int AddSubgraph() {
    model_.subgraphs.push_back(std::make_unique<SubGraphT>());
    current_ = static_cast<int>(model_.subgraphs.size()) - 1;
    return current_;
  }
  void Select(int subgraph) { current_ = subgraph; }
  SubGraphT& subgraph() { return *model_.subgraphs[current_]; }
  TensorT& tensor(int index) { return *subgraph().tensors[index]; }
  ModelT& model() { return model_; }

  int Tensor(const std::string& name, std::vector<int32_t> shape,
             TensorType type = TensorType::FLOAT32) {
    auto tensor = std::make_unique<TensorT>();
    tensor->name = name;
    tensor->shape = std::move(shape);
    tensor->type = type;
    subgraph().tensors.push_back(std::move(tensor));
    return static_cast<int>(subgraph().tensors.size()) - 1;
  }

  template <typename T>
  int Constant(const std::string& name, std::vector<int32_t> shape,
               TensorType type, const std::vector<T>& values) {
    const int index = Tensor(name, std::move(shape), type);
    auto buffer = std::make_unique<BufferT>();
    buffer->data.resize(values.size() * sizeof(T));
    std::memcpy(buffer->data.data(), values.data(), buffer->data.size());
    tensor(index).buffer = static_cast<uint32_t>(model_.buffers.size());
    model_.buffers.push_back(std::move(buffer));
    return index;
  }
  int Floats(const std::string& name, std::vector<int32_t> shape,
             const std::vector<float>& values) {
    return Constant(name, std::move(shape), TensorType::FLOAT32, values);
  }
  int Ints(const std::string& name, const std::vector<int32_t>& values) {
    return Constant(name, {static_cast<int32_t>(values.size())},
                    TensorType::INT32, values);
  }

  // Gives a tensor a scale and a zero point, or several along `axis`.
  int Quantize(int index, std::vector<float> scale,
               std::vector<int64_t> zero_point, int axis = 0) {
    auto quantization = std::make_unique<QuantizationParametersT>();
    quantization->scale = std::move(scale);
    quantization->zero_point = std::move(zero_point);
    quantization->quantized_dimension = axis;
    tensor(index).quantization = std::move(quantization);
    return index;
  }

  OperatorT& Operator(BuiltinOperator code, std::vector<int32_t> inputs,
                      std::vector<int32_t> outputs) {
    auto kind = std::make_unique<OperatorCodeT>();
    kind->builtin_code = code;
    kind->deprecated_builtin_code =
        static_cast<int8_t>(std::min(static_cast<int>(code), 127));
    kind->version = 1;
    auto op = std::make_unique<OperatorT>();
    op->opcode_index = static_cast<uint32_t>(model_.operator_codes.size());
    op->inputs = std::move(inputs);
    op->outputs = std::move(outputs);
    model_.operator_codes.push_back(std::move(kind));
    subgraph().operators.push_back(std::move(op));
    return *subgraph().operators.back();
  }
  template <typename Options>
  OperatorT& Operator(BuiltinOperator code, std::vector<int32_t> inputs,
                      std::vector<int32_t> outputs, Options options) {
    OperatorT& op = Operator(code, std::move(inputs), std::move(outputs));
    op.builtin_options.Set(std::move(options));
    return op;
  }

  void Interface(std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    subgraph().inputs = std::move(inputs);
    subgraph().outputs = std::move(outputs);
  }

  TestModel Copy() const {
    const std::string bytes = Bytes();
    TestModel copy;
    GetModel(bytes.data())->UnPackTo(&copy.model_);
    copy.current_ = current_;
    return copy;
  }

  // The file's bytes.
  std::string Bytes() const {
    flatbuffers::FlatBufferBuilder builder;
    FinishModelBuffer(builder, Model::Pack(builder, &model_));
    return std::string(
        reinterpret_cast<const char*>(builder.GetBufferPointer()),
        builder.GetSize());
  }

 private:
  ModelT model_;
  int current_ = 0;
};

}  // namespace optfarm::tflite

#endif  // OPTFARM_TESTS_ENGINE_FORMATS_TFLITE_TEST_MODEL_H_
