// The tensors of a draft by what they are in the graph: plain values, and the
// quantized values behind floats.
//
// A tensor that a DequantizeLinear gives has a twin: the tensor of quantized
// values behind it. An operator works on twins where all of its inputs have one
// and its result is only ever quantized again; its output is then a twin too,
// and the QuantizeLinear behind it costs nothing, or one QUANTIZE where it asks
// for other scales. Everything else is computed in float, with DEQUANTIZE where
// a float is wanted of a twin.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_RAISED_TENSORS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_RAISED_TENSORS_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/formats/tflite/raising/constant.h"
#include "engine/formats/tflite/raising/graph_view.h"
#include "engine/formats/tflite/raising/model_draft.h"
#include "engine/formats/tflite/write_options.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats::tflite_raising {

// A QuantizeLinear's scales, and what readers of one tensor agree on.
struct Quantized {
  Quantization scales;
  tflite::TensorType type{};
  // The output of the QuantizeLinear that names the tensor; its node is
  // kNoNode where other nodes move the elements before.
  graph::Endpoint stored;
  // Whether all readers quantize alike.
  bool alike = true;
};

class RaisedTensors {
 public:
  // OWNERSHIP: all outlive this.
  RaisedTensors(const GraphView& view, const TfliteWriteOptions& options,
                ModelDraft* draft);

  // The tensor that holds what the graph has there; a constant, or a
  // DEQUANTIZE of the twin, is added where there is none yet.
  TensorId Tensor(graph::Endpoint tensor);
  // The quantized values behind a float tensor; nullopt when there are none.
  std::optional<TensorId> Twin(graph::Endpoint tensor);
  void SetTensor(graph::Endpoint tensor, TensorId id) {
    tensors_[view_.Source(tensor)] = id;
  }
  void SetTwin(graph::Endpoint tensor, TensorId id) {
    twins_[view_.Source(tensor)] = id;
  }
  bool HasTensor(graph::Endpoint tensor) const {
    return tensors_.contains(view_.Source(tensor));
  }
  // A new tensor with type, shape, name and scales of the graph's.
  TensorId NewTensor(graph::Endpoint tensor);
  // A new tensor of another type or with other scales.
  TensorId NewTensor(graph::Endpoint tensor, tflite::TensorType type,
                     Quantization scales);
  // A constant as operators read it: widened from half precision, in the
  // number format that the options ask for. REQUIRES: its dtype has a tensor
  // type, its scales belong to one dimension.
  TensorId ConstantTensor(const std::string& name, Constant constant);

  // Whether uint8 quantized values become int8, their zero points less 128.
  bool shifts_to_signed() const { return shifts_to_signed_; }
  // Scales and type as the model stores them.
  Quantization StoredScales(const Quantization& scales,
                            tensorflow::DataType dtype) const;
  tflite::TensorType StoredType(tensorflow::DataType dtype) const;
  // What the readers of a tensor make of it, when all of them quantize it, at
  // once or behind nodes that do nothing but rearrange its elements.
  std::optional<Quantized> QuantizedReaders(graph::Endpoint tensor) const {
    return QuantizedReaders(tensor, kMostMovements);
  }

  const GraphView& view() const { return view_; }
  ModelDraft& draft() { return *draft_; }
  const TfliteWriteOptions& options() const { return options_; }

 private:
  // Nodes that rearrange, one behind the other.
  static constexpr int kMostMovements = 4;

  std::optional<Quantized> QuantizedReaders(graph::Endpoint tensor,
                                            int moves_left) const;
  std::optional<Quantized> QuantizedReader(const Reader& reader,
                                           int moves_left) const;
  // Whether int8 can hold all quantized values of the graph.
  bool CanShiftToSigned() const;
  TensorId RaiseConstant(graph::Endpoint tensor, Constant constant);
  TensorId Dequantized(graph::Endpoint tensor, TensorId twin);
  // The twin of a constant that is moved or reshaped behind its
  // DequantizeLinear: the stored values, moved alike.
  std::optional<TensorId> MovedTwin(graph::Endpoint tensor);

  const GraphView& view_;
  const TfliteWriteOptions& options_;
  ModelDraft* draft_;
  bool shifts_to_signed_ = false;
  absl::flat_hash_map<graph::Endpoint, TensorId> tensors_;
  absl::flat_hash_map<graph::Endpoint, TensorId> twins_;
};

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_RAISED_TENSORS_H_
