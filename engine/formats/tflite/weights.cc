#include "engine/formats/tflite/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

bool IsIdentity(const std::vector<int>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int>(i)) return false;
  }
  return true;
}

// int32 where all values fit; biases of int16 activations have 64 bits.
absl::StatusOr<Constant> Narrowed(const Constant& wide) {
  Constant narrow;
  narrow.type = tensorflow::DT_INT32;
  narrow.shape = wide.shape;
  for (const int64_t value : IntegersOf(wide)) {
    const auto kept = static_cast<int32_t>(value);
    if (kept != value) {
      return Unsupported("a bias beyond 32 bits");
    }
    narrow.bytes.append(reinterpret_cast<const char*>(&kept), sizeof(kept));
  }
  return narrow;
}

// Only weights of one scale may have a zero point: no interpreter subtracts one
// for each channel.
absl::Status CheckZeroPoints(const Quantization& quantization) {
  if (!quantization.is_per_channel()) return absl::OkStatus();
  for (size_t i = 0; i < quantization.zero_point.size(); ++i) {
    if (quantization.zero_point[i] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its weights have a scale for each channel, and channel ", i,
          " has zero point ", quantization.zero_point[i], " instead of 0"));
    }
  }
  return absl::OkStatus();
}

// The scale of a bias of integers: the tensor's own, unless it contradicts that
// of the accumulator, which the interpreter takes in any case. So it is where
// layers share a bias.
absl::StatusOr<Quantization> BiasScale(OpLowering& c, int bias, int input,
                                       const Weights& weights) {
  constexpr float kTolerance = 1e-3f;
  const auto* parameters = c.in(bias).quantization();
  std::optional<Quantization> own, sum;
  if (parameters != nullptr && parameters->scale() != nullptr &&
      parameters->scale()->size() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(own, c.subgraph().QuantizationAt(c.InputId(bias)));
  }
  if (weights.quantization().has_value() && IsQuantized(c.in(input))) {
    OPTFARM_ASSIGN_OR_RETURN(const Quantization activations,
                             c.subgraph().QuantizationAt(c.InputId(input)));
    sum = *weights.quantization();
    for (float& scale : sum->scale) scale *= activations.scale[0];
    std::fill(sum->zero_point.begin(), sum->zero_point.end(), 0);
  }
  if (!own.has_value() && !sum.has_value()) {
    return absl::InvalidArgumentError("its bias of integers has no scale");
  }
  if (!own.has_value()) return *sum;
  if (!sum.has_value()) return *own;
  if (own->scale.size() != sum->scale.size()) return *sum;
  for (size_t k = 0; k < own->scale.size(); ++k) {
    if (!(std::abs(own->scale[k] - sum->scale[k]) <=
          kTolerance * sum->scale[k])) {
      return *sum;
    }
  }
  return *own;
}

}  // namespace

absl::StatusOr<Weights> Weights::Read(OpLowering& c, int input, int rank) {
  if (!c.Has(input)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its weights, input ", input, ", are missing"));
  }
  Weights weights(c, input);
  SubgraphLowering& subgraph = c.subgraph();
  weights.shape_ = ShapeOf(c.in(input));
  if (static_cast<int>(weights.shape_.size()) != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its weights have shape [", absl::StrJoin(weights.shape_, ","),
        "], which must have ", rank, " dimensions"));
  }
  if (IsQuantized(c.in(input))) {
    OPTFARM_ASSIGN_OR_RETURN(weights.quantization_,
                             subgraph.QuantizationAt(c.InputId(input)));
    OPTFARM_RETURN_IF_ERROR(CheckZeroPoints(*weights.quantization_));
  }
  const int source = subgraph.ConstantSource(c.InputId(input));
  if (source < 0 || ShapeOf(subgraph.tensor(source)) != weights.shape_) {
    return weights;
  }
  OPTFARM_ASSIGN_OR_RETURN(weights.constant_, subgraph.ConstantOf(source));
  weights.name_ = subgraph.NameOf(source);
  weights.bits_ = BitsOf(subgraph.tensor(source));
  if (IsQuantized(subgraph.tensor(source))) {
    OPTFARM_ASSIGN_OR_RETURN(weights.quantization_,
                             subgraph.QuantizationAt(source));
  } else {
    weights.quantization_.reset();
  }
  return weights;
}

Value Weights::Scaled(const Constant& constant, int axis,
                      absl::string_view suffix) const {
  const Value stored = c_->subgraph().maker().AddConst(name_, constant);
  if (quantization_.has_value()) {
    return c_->subgraph().DequantizedBy(*quantization_, axis, bits_, stored,
                                        absl::StrCat(name_, "/", suffix));
  }
  return c_->Cast(stored, tensorflow::DT_FLOAT, suffix);
}

Value Weights::Permuted(const std::vector<int>& order,
                        absl::string_view suffix) const {
  if (!constant_.has_value()) {
    const Value value = c_->Real(input_);
    if (IsIdentity(order)) return value;
    const std::vector<int64_t> wide(order.begin(), order.end());
    return c_->Add(
        "Transpose", suffix,
        {value, c_->IntVector(absl::StrCat(suffix, "/order"), wide)});
  }
  const int axis = quantization_.has_value() ? quantization_->axis : 0;
  const auto place = std::find(order.begin(), order.end(), axis);
  return Scaled(
      IsIdentity(order) ? *constant_ : tflite::Permuted(*constant_, order),
      static_cast<int>(place - order.begin()), suffix);
}

Value Weights::Reshaped(const std::vector<int>& order,
                        const std::vector<int64_t>& shape, int quantized_axis,
                        absl::string_view suffix) const {
  const bool is_scaled_first = quantization_.has_value() &&
                               quantization_->is_per_channel() &&
                               quantized_axis < 0;
  if (constant_.has_value() && !is_scaled_first) {
    Constant constant = tflite::Permuted(*constant_, order);
    constant.shape = shape;
    return Scaled(constant, quantized_axis, suffix);
  }
  return c_->Add("Reshape", absl::StrCat(suffix, "/reshaped"),
                 {Permuted(order, suffix),
                  c_->IntVector(absl::StrCat(suffix, "/shape"), shape)});
}

absl::StatusOr<Value> Biased(OpLowering& c, const Value& value, int i,
                             int input, const Weights& weights) {
  if (!c.Has(i)) return value;
  SubgraphLowering& subgraph = c.subgraph();
  const Tensor& tensor = c.in(i);
  const bool is_whole =
      tensor.type() == TensorType::INT32 || tensor.type() == TensorType::INT64;
  if (!is_whole) {
    Value bias = c.Cast(c.Real(i), tensorflow::DT_FLOAT, "bias");
    if (ShapeOf(tensor).size() != 1) {
      bias = c.Add("Reshape", "bias/flat",
                   {bias, c.IntVector("bias/shape", {-1})});
    }
    return c.Add("BiasAdd", "BiasAdd", {value, bias});
  }
  if (!subgraph.IsConstant(c.InputId(i))) {
    return Unsupported("a bias of integers that is not constant");
  }
  OPTFARM_ASSIGN_OR_RETURN(Constant constant,
                           subgraph.ConstantOf(c.InputId(i)));
  constant.shape = {std::accumulate(constant.shape.begin(),
                                    constant.shape.end(), int64_t{1},
                                    std::multiplies<int64_t>())};
  OPTFARM_ASSIGN_OR_RETURN(const Quantization quantization,
                           BiasScale(c, i, input, weights));
  if (quantization.scale.size() > 1 &&
      static_cast<int64_t>(quantization.scale.size()) != constant.shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat("its bias has ", constant.shape[0], " elements and ",
                     quantization.scale.size(), " scales"));
  }
  OPTFARM_ASSIGN_OR_RETURN(constant, Narrowed(constant));
  const std::string name = subgraph.NameOf(c.InputId(i));
  const Value stored = subgraph.maker().AddConst(name, constant);
  const Value bias = subgraph.DequantizedBy(quantization, 0, 8, stored,
                                            absl::StrCat(name, "/dequantized"));
  return c.Add("BiasAdd", "BiasAdd", {value, bias});
}

}  // namespace optfarm::tflite
