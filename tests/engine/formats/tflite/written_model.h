// A written .tflite file, taken apart for tests.

#ifndef OPTFARM_TESTS_ENGINE_FORMATS_TFLITE_WRITTEN_MODEL_H_
#define OPTFARM_TESTS_ENGINE_FORMATS_TFLITE_WRITTEN_MODEL_H_

#include <gtest/gtest.h>
#include <tflite/schema_generated.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace optfarm::formats {

class WrittenModel {
 public:
  explicit WrittenModel(const std::string& bytes) {
    flatbuffers::Verifier verifier(
        reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    EXPECT_TRUE(tflite::VerifyModelBuffer(verifier));
    model_.reset(tflite::GetModel(bytes.data())->UnPack());
  }

  const tflite::ModelT& model() const { return *model_; }
  const tflite::SubGraphT& graph() const { return *model_->subgraphs[0]; }
  const tflite::OperatorT& op(int i) const { return *graph().operators[i]; }
  const tflite::OperatorCodeT& code(int i) const {
    return *model_->operator_codes[op(i).opcode_index];
  }
  // Operators in order, "CONV_2D SOFTMAX".
  std::string Operators() const {
    std::string names;
    for (const auto& op : graph().operators) {
      if (!names.empty()) names += ' ';
      names += tflite::EnumNameBuiltinOperator(
          model_->operator_codes[op->opcode_index]->builtin_code);
    }
    return names;
  }
  const tflite::TensorT& input(int op_index, int i) const {
    return *graph().tensors[op(op_index).inputs[i]];
  }
  const tflite::TensorT& output(int op_index, int i = 0) const {
    return *graph().tensors[op(op_index).outputs[i]];
  }
  const tflite::TensorT& model_input(int i) const {
    return *graph().tensors[graph().inputs[i]];
  }
  const tflite::TensorT& model_output(int i) const {
    return *graph().tensors[graph().outputs[i]];
  }
  template <typename T>
  std::vector<T> Data(const tflite::TensorT& tensor) const {
    const std::vector<uint8_t>& bytes = model_->buffers[tensor.buffer]->data;
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  std::unique_ptr<tflite::ModelT> model_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_TESTS_ENGINE_FORMATS_TFLITE_WRITTEN_MODEL_H_
