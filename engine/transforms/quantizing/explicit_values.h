// The tensors of a graph whose quantization becomes explicit
// (make_quantization_explicit): what stands for the quantized values and their
// range in the new form, an int8 or uint8 tensor with a scale and a zero point,
// and what stands for accumulators, plain floats.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPLICIT_VALUES_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPLICIT_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::transforms {

// real = (value - zero_point) * scale. Zero points of 8 bits count from 0 to
// 255 here, whatever the type that the values are written as.
struct LinearQuantization {
  float scale = 1.0f;
  int32_t zero_point = 0;
  // The step of the graph's own 8 bits, which its biases are in.
  float stored_scale = 1.0f;

  friend bool operator==(const LinearQuantization&,
                         const LinearQuantization&) = default;
};

// The scale and zero point of a range of 8 bits; nullopt when the range is
// empty, not finite, or has its zero outside of the 256 values.
std::optional<LinearQuantization> QuantizationOfRange(runtime::Range range);

// What activations become.
enum class ActivationForm : uint8_t {
  kInt8,
  kUint8,
  kSymmetric,  // int8 with zero point 0: the range is widened to both sides.
  kInt16,      // With zero point 0.
};

struct ExplicitTensor {
  graph::Endpoint values;
  LinearQuantization quantization;
};

class ExplicitValues {
 public:
  // OWNERSHIP: the graph outlives this.
  ExplicitValues(ActivationForm form, graph::Graph* graph)
      : form_(form), type_(TypeOf(form)), graph_(graph) {}

  graph::Graph* graph() { return graph_; }
  ActivationForm form() const { return form_; }
  tensorflow::DataType type() const { return type_; }
  // The scale and zero point of activations of this range; nullopt where
  // QuantizationOfRange has none.
  std::optional<LinearQuantization> QuantizationFor(runtime::Range range) const;
  // How far values of the type are below those that count from 0.
  int32_t offset() const { return type_ == tensorflow::DT_INT8 ? 128 : 0; }

  // New nodes stand before this one and have its device.
  void Begin(graph::NodeId at) { at_ = at; }
  graph::NodeId Add(absl::string_view name, absl::string_view op,
                    absl::Span<const graph::Endpoint> inputs,
                    tensorflow::DataType t = tensorflow::DT_INVALID);
  graph::NodeId Add(tensorflow::NodeDef def,
                    absl::Span<const graph::Endpoint> inputs);
  graph::Endpoint AddConst(absl::string_view name,
                           const runtime::Tensor& value);

  // What stands for the old tensor from now on.
  void SetQuantized(graph::Endpoint old, ExplicitTensor tensor) {
    quantized_[old] = tensor;
  }
  void SetFloats(graph::Endpoint old, graph::Endpoint floats) {
    floats_[old] = floats;
  }
  // nullptr when it has no quantized values.
  const ExplicitTensor* QuantizedOf(graph::Endpoint old) const;
  // The real numbers: floats that were set, or dequantized values.
  std::optional<graph::Endpoint> FloatsOf(graph::Endpoint old);
  bool Has(graph::Endpoint old) const {
    return quantized_.contains(old) || floats_.contains(old);
  }

  // Quantizes floats.
  ExplicitTensor Quantize(graph::Endpoint floats, const LinearQuantization& to);
  // A constant of integers with scales along `axis`: dequantized.
  graph::Endpoint AddDequantized(absl::string_view name,
                                 const runtime::Tensor& integers,
                                 absl::Span<const float> scales, int axis,
                                 int32_t zero_point = 0);

 private:
  graph::Endpoint AddZeroPoint(absl::string_view name,
                               tensorflow::DataType type, int32_t value,
                               int64_t count);

  static tensorflow::DataType TypeOf(ActivationForm form);

  ActivationForm form_;
  tensorflow::DataType type_;
  graph::Graph* graph_;
  graph::NodeId at_ = graph::kNoNode;
  absl::flat_hash_map<graph::Endpoint, ExplicitTensor> quantized_;
  absl::flat_hash_map<graph::Endpoint, graph::Endpoint> floats_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPLICIT_VALUES_H_
