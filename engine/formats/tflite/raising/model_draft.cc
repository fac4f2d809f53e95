// Adding to a draft, and taking out of it what nobody reads.

#include "engine/formats/tflite/raising/model_draft.h"

#include <tflite/schema_generated.h>

#include <cstring>
#include <utility>

#include "base/check.h"

namespace optfarm::formats::tflite_raising {

using tflite::TensorType;

bool FindTensorType(tensorflow::DataType dtype, TensorType* type) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      *type = TensorType::FLOAT32;
      return true;
    case tensorflow::DT_HALF:
      *type = TensorType::FLOAT16;
      return true;
    case tensorflow::DT_BFLOAT16:
      *type = TensorType::BFLOAT16;
      return true;
    case tensorflow::DT_DOUBLE:
      *type = TensorType::FLOAT64;
      return true;
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      *type = TensorType::INT32;
      return true;
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      *type = TensorType::UINT8;
      return true;
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      *type = TensorType::INT8;
      return true;
    case tensorflow::DT_INT16:
    case tensorflow::DT_QINT16:
      *type = TensorType::INT16;
      return true;
    case tensorflow::DT_UINT16:
    case tensorflow::DT_QUINT16:
      *type = TensorType::UINT16;
      return true;
    case tensorflow::DT_UINT32:
      *type = TensorType::UINT32;
      return true;
    case tensorflow::DT_INT64:
      *type = TensorType::INT64;
      return true;
    case tensorflow::DT_UINT64:
      *type = TensorType::UINT64;
      return true;
    case tensorflow::DT_BOOL:
      *type = TensorType::BOOL;
      return true;
    case tensorflow::DT_STRING:
      *type = TensorType::STRING;
      return true;
    case tensorflow::DT_COMPLEX64:
      *type = TensorType::COMPLEX64;
      return true;
    default:
      return false;
  }
}

TensorId ModelDraft::AddTensor(DraftTensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size()) - 1;
}

TensorId ModelDraft::AddConstant(std::string name, Constant constant) {
  DraftTensor tensor;
  tensor.name = std::move(name);
  OPTFARM_CHECK(FindTensorType(constant.dtype, &tensor.type));
  if (constant.is_quantized()) {
    tensor.quantization.axis = constant.channel_axis();
    OPTFARM_CHECK(tensor.quantization.axis >= 0);
    tensor.quantization.scale = std::move(constant.scale);
    tensor.quantization.zero_point = std::move(constant.zero_point);
  }
  tensor.shape = graph::PartialShape(std::move(constant.dims));
  tensor.is_constant = true;
  tensor.data = std::move(constant.bytes);
  return AddTensor(std::move(tensor));
}

TensorId ModelDraft::AddInt32s(std::string name,
                               const std::vector<int64_t>& values) {
  Constant constant;
  constant.dtype = tensorflow::DT_INT32;
  constant.dims = {static_cast<int64_t>(values.size())};
  for (int64_t value : values) {
    const int32_t narrow = static_cast<int32_t>(value);
    constant.bytes.append(reinterpret_cast<const char*>(&narrow),
                          sizeof(narrow));
  }
  return AddConstant(std::move(name), std::move(constant));
}

void ModelDraft::AddOperator(tflite::BuiltinOperator op,
                             std::vector<TensorId> op_inputs,
                             std::vector<TensorId> op_outputs,
                             OperatorOptions options) {
  operators.push_back(
      {op, std::move(op_inputs), std::move(op_outputs), std::move(options)});
}

void ModelDraft::AddRefusal(int refusal, std::vector<TensorId> op_inputs,
                            std::vector<TensorId> op_outputs) {
  DraftOperator placeholder;
  placeholder.inputs = std::move(op_inputs);
  placeholder.outputs = std::move(op_outputs);
  placeholder.refusal = refusal;
  operators.push_back(std::move(placeholder));
}

void ModelDraft::RemoveUnused() {
  std::vector<bool> used(tensors.size(), false);
  for (TensorId id : inputs) used[id] = true;
  for (TensorId id : outputs) used[id] = true;
  std::vector<DraftOperator> kept;
  for (size_t i = operators.size(); i-- > 0;) {
    DraftOperator& op = operators[i];
    bool needed = false;
    for (TensorId id : op.outputs) needed = needed || used[id];
    if (!needed) continue;
    for (TensorId id : op.inputs) {
      if (id != kNoTensor) used[id] = true;
    }
    for (TensorId id : op.outputs) used[id] = true;
    kept.push_back(std::move(op));
  }
  operators.assign(std::make_move_iterator(kept.rbegin()),
                   std::make_move_iterator(kept.rend()));
  std::vector<TensorId> renumbered(tensors.size(), kNoTensor);
  std::vector<DraftTensor> kept_tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = static_cast<TensorId>(kept_tensors.size());
    kept_tensors.push_back(std::move(tensors[i]));
  }
  tensors = std::move(kept_tensors);
  const auto renumber = [&](std::vector<TensorId>& ids) {
    for (TensorId& id : ids) {
      if (id != kNoTensor) id = renumbered[id];
    }
  };
  for (DraftOperator& op : operators) {
    renumber(op.inputs);
    renumber(op.outputs);
  }
  renumber(inputs);
  renumber(outputs);
}

}  // namespace optfarm::formats::tflite_raising
