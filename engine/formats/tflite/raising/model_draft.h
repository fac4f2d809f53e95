// A TensorFlow Lite model before it is bytes: tensors, operators in the order
// in which they run, and what names them. Rows of the raising table write it;
// model_packer.h makes the file.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_DRAFT_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_DRAFT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/formats/tflite/raising/constant.h"
#include "engine/graph/partial_shape.h"

// The enumerations of the file format, which only .cc files include whole.
namespace optfarm::tflite {
enum class TensorType : int8_t;
enum class BuiltinOperator : int32_t;
}  // namespace optfarm::tflite

namespace optfarm::formats::tflite_raising {

// real = (quantized value - zero_point) * scale; empty for plain tensors.
struct Quantization {
  std::vector<float> scale;
  std::vector<int64_t> zero_point;
  // The dimension that several scales belong to.
  int axis = 0;

  bool empty() const { return scale.empty(); }
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

// Number of a tensor of the draft; kNoTensor stands for an optional input that
// is not there.
using TensorId = int;
inline constexpr TensorId kNoTensor = -1;

struct DraftTensor {
  std::string name;
  tflite::TensorType type{};
  graph::PartialShape shape;
  Quantization quantization;
  bool is_constant = false;
  std::string data;
};

enum class Activation : uint8_t { kNone, kRelu, kReluN1To1, kRelu6 };

// What an operator is configured with. Each operator reads the fields that it
// knows and leaves the others.
struct OperatorOptions {
  Activation activation = Activation::kNone;
  bool same_padding = false;
  int stride_h = 1;
  int stride_w = 1;
  int dilation_h = 1;
  int dilation_w = 1;
  int window_h = 1;
  int window_w = 1;
  int depth_multiplier = 1;
  int axis = 0;
  int batch_dims = 0;
  // Parts of a split, an unpacking or a packing; bits of a FAKE_QUANT.
  int count = 0;
  int block_size = 0;
  bool keep_dims = false;
  bool adjoint_x = false;
  bool adjoint_y = false;
  bool align_corners = false;
  bool half_pixel_centers = false;
  bool exclusive = false;
  bool reverse = false;
  bool approximate = false;
  bool symmetric = false;
  bool time_major = false;
  // Weights alone are quantized; activations are when the model runs.
  bool asymmetric_inputs = false;
  float alpha = 0;
  float beta = 0;
  float bias = 0;
  float low = 0;
  float high = 0;
  bool narrow_range = false;
  int radius = 0;
  int begin_mask = 0;
  int end_mask = 0;
  int shrink_axis_mask = 0;
  std::vector<int32_t> dims;
};

struct DraftOperator {
  tflite::BuiltinOperator op{};
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  OperatorOptions options;
  // A node that cannot be written stands here: its number in the list of
  // reasons.
  int refusal = -1;
};

class ModelDraft {
 public:
  TensorId AddTensor(DraftTensor tensor);
  // The elements with their scales. Equal elements share their bytes.
  // REQUIRES: the dtype has a tensor type.
  TensorId AddConstant(std::string name, Constant constant);
  TensorId AddInt32s(std::string name, const std::vector<int64_t>& values);
  void AddOperator(tflite::BuiltinOperator op, std::vector<TensorId> inputs,
                   std::vector<TensorId> outputs, OperatorOptions options = {});
  void AddRefusal(int refusal, std::vector<TensorId> inputs,
                  std::vector<TensorId> outputs);

  // Drops operators whose results nobody reads, and tensors that are then
  // unused. `inputs` and `outputs` stay.
  void RemoveUnused();

  const DraftTensor& tensor(TensorId id) const { return tensors[id]; }

  std::vector<DraftTensor> tensors;
  std::vector<DraftOperator> operators;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  // The signature's names, in the order of inputs and outputs.
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::string description;
};

// The file's type of a graph's dtype; false where it has none.
bool FindTensorType(tensorflow::DataType dtype, tflite::TensorType* type);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_DRAFT_H_
