// Lays out weights and computes integer biases.

#include "engine/formats/tflite/raising/layer_weights.h"

#include <tflite/schema_generated.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::formats::tflite_raising {
namespace {

using tflite::BuiltinOperator;
using tflite::TensorType;

// What fewer weights would save is not worth rounding them.
constexpr int64_t kLeastQuantizedWeights = 1024;
// Smaller quantized weights become floats where a float layer reads them.
constexpr int64_t kLeastStoredWeights = 256;
constexpr float kLargestWeight = 127;
// More are a claim, not a layer.
constexpr int64_t kMostChannels = 1 << 24;
// Biases whose stated scale differs less from the products' keep their values.
constexpr double kScaleTolerance = 1e-5;

// Symmetric int8 values, one scale for each index of `axis`, or one.
Constant QuantizedWeights(const Constant& weights, int axis, bool per_channel) {
  const auto real = RealValues(weights);
  if (!real.ok()) return weights;
  const int64_t channels = per_channel ? weights.dims[axis] : 1;
  Constant result = weights;
  result.dtype = tensorflow::DT_INT8;
  result.scale.assign(channels, 1.0f);
  result.zero_point.assign(channels, 0);
  result.channel_stride = 1;
  for (size_t d = axis + 1; d < weights.dims.size(); ++d) {
    result.channel_stride *= weights.dims[d];
  }
  std::vector<float> largest(channels, 0.0f);
  for (size_t i = 0; i < real->size(); ++i) {
    float& top = largest[result.channel_of(static_cast<int64_t>(i))];
    top = std::max(top, std::abs((*real)[i]));
  }
  for (int64_t c = 0; c < channels; ++c) {
    if (largest[c] > 0) result.scale[c] = largest[c] / kLargestWeight;
  }
  result.bytes.resize(real->size());
  for (size_t i = 0; i < real->size(); ++i) {
    const float scale = result.scale[result.channel_of(i)];
    const float value = std::nearbyint((*real)[i] / scale);
    result.bytes[i] = static_cast<char>(static_cast<int8_t>(
        std::clamp(value, -kLargestWeight, kLargestWeight)));
  }
  return result;
}

std::string NameOfWeights(const NodeRaiser& node) {
  return node.view().graph().NameOf(node.view().InputOf(node.output().node, 1));
}

template <typename T>
void AppendRounded(double value, std::string* bytes) {
  const double low = static_cast<double>(std::numeric_limits<T>::lowest());
  const double high = static_cast<double>(std::numeric_limits<T>::max());
  const double rounded = std::nearbyint(value);
  T stored = std::isnan(rounded) ? T(0)
             : rounded <= low    ? std::numeric_limits<T>::lowest()
             : rounded >= high   ? std::numeric_limits<T>::max()
                                 : static_cast<T>(rounded);
  bytes->append(reinterpret_cast<const char*>(&stored), sizeof(stored));
}

// The scale of each channel's products.
std::vector<float> ProductScales(float input,
                                 const std::vector<float>& weights) {
  std::vector<float> products;
  for (float scale : weights) products.push_back(input * scale);
  return products;
}

bool AreAlike(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double x = a[a.size() == 1 ? 0 : i];
    const double y = b[b.size() == 1 ? 0 : i];
    if (std::abs(x - y) > kScaleTolerance * std::abs(y)) return false;
  }
  return true;
}

// The stored integers, when they are int32 with the products' scales.
bool KeepsIntegers(const Constant& bias, const std::vector<float>& products) {
  if (bias.dtype != tensorflow::DT_INT32 || !bias.is_quantized()) return false;
  if (bias.scale.size() != 1 && products.size() != 1 &&
      bias.scale.size() != products.size()) {
    return false;
  }
  return std::all_of(bias.zero_point.begin(), bias.zero_point.end(),
                     [](int64_t zero_point) { return zero_point == 0; }) &&
         AreAlike(bias.scale, products);
}

absl::StatusOr<Constant> IntegerBias(const Constant& bias,
                                     const std::vector<float>& products,
                                     bool is_wide) {
  if (KeepsIntegers(bias, products) && !is_wide) {
    Constant kept = bias;
    if (kept.scale.size() != products.size()) {
      OPTFARM_RETURN_IF_ERROR(SetScales(
          products, std::vector<int64_t>(products.size(), 0), 0, &kept));
    }
    return kept;
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> real, RealValues(bias));
  Constant result;
  result.dtype = is_wide ? tensorflow::DT_INT64 : tensorflow::DT_INT32;
  result.dims = bias.dims;
  for (size_t i = 0; i < real.size(); ++i) {
    const double scale = products[products.size() == 1 ? 0 : i];
    const double value = scale == 0 ? 0.0 : real[i] / scale;
    if (is_wide) {
      AppendRounded<int64_t>(value, &result.bytes);
    } else {
      AppendRounded<int32_t>(value, &result.bytes);
    }
  }
  OPTFARM_RETURN_IF_ERROR(SetScales(
      products, std::vector<int64_t>(products.size(), 0), 0, &result));
  return result;
}

}  // namespace

bool CanMultiplyQuantized(const LayerWeights& weights, bool shifts_to_signed) {
  const Constant& w = weights.constant;
  if (!w.is_quantized()) return false;
  if (w.scale.size() > 1 && (!weights.takes_channel_scales ||
                             w.channel_axis() != weights.channel_axis)) {
    return false;
  }
  const auto all_are = [&](int64_t wanted) {
    return std::all_of(
        w.zero_point.begin(), w.zero_point.end(),
        [&](int64_t zero_point) { return zero_point == wanted; });
  };
  if (w.dtype == tensorflow::DT_INT8) return all_are(0);
  if (w.dtype != tensorflow::DT_UINT8) return false;
  return shifts_to_signed ? all_are(128) : w.scale.size() == 1;
}

TensorId WeightsTensor(NodeRaiser& node, const Layer& layer,
                       LayerWeights weights, bool* is_hybrid) {
  const std::string name = NameOfWeights(node);
  Constant& constant = weights.constant;
  *is_hybrid = false;
  const auto shift = [&] {
    if (constant.dtype == tensorflow::DT_UINT8 &&
        node.tensors().shifts_to_signed()) {
      ShiftToSigned(&constant);
    }
  };
  if (layer.is_quantized) {
    shift();
    return node.draft().AddConstant(name, std::move(constant));
  }
  if (constant.is_quantized()) {
    const bool is_stored = constant.elements() >= kLeastStoredWeights &&
                           constant.channel_axis() >= 0 &&
                           (constant.dtype == tensorflow::DT_INT8 ||
                            constant.dtype == tensorflow::DT_UINT8);
    if (is_stored) {
      shift();
      const TensorId stored =
          node.draft().AddConstant(name, std::move(constant));
      DraftTensor widened;
      widened.name = name + "/float";
      widened.type = TensorType::FLOAT32;
      widened.shape = node.draft().tensor(stored).shape;
      const TensorId made = node.draft().AddTensor(std::move(widened));
      node.draft().AddOperator(BuiltinOperator::DEQUANTIZE, {stored}, {made});
      return made;
    }
    const auto real = RealValues(constant);
    if (real.ok()) constant = FloatConstant(constant.dims, *real);
  }
  if (node.tensors().options().weights == TfliteWeights::kInt8 &&
      constant.elements() >= kLeastQuantizedWeights) {
    *is_hybrid = true;
    return node.draft().AddConstant(
        name, QuantizedWeights(constant, weights.channel_axis,
                               weights.takes_channel_scales));
  }
  return node.tensors().ConstantTensor(name, std::move(constant));
}

absl::StatusOr<TensorId> BiasTensor(NodeRaiser& node, const Layer& layer,
                                    TensorId weights, int64_t channels) {
  if (channels < 0 || channels > kMostChannels) {
    return absl::UnimplementedError(
        absl::StrCat("it has ", channels, " output channels"));
  }
  Constant bias = FloatConstant({channels}, std::vector<float>(channels, 0.0f));
  std::string name = absl::StrCat(node.node().name(), "/no_bias");
  if (layer.bias.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(bias, node.view().ConstantAt(*layer.bias));
    OPTFARM_RETURN_IF_ERROR(Reshape({channels}, &bias));
    name = node.view().graph().NameOf(*layer.bias);
  }
  if (layer.is_quantized) {
    const std::vector<float> products = ProductScales(
        node.draft().tensor(layer.inputs[0]).quantization.scale[0],
        node.draft().tensor(weights).quantization.scale);
    OPTFARM_ASSIGN_OR_RETURN(
        bias, IntegerBias(bias, products, layer.type == TensorType::INT16));
    return node.draft().AddConstant(std::move(name), std::move(bias));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> real, RealValues(bias));
  return node.tensors().ConstantTensor(name, FloatConstant({channels}, real));
}

}  // namespace optfarm::formats::tflite_raising
