#include "engine/transforms/quantizing/explicit_layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::LayerProduct;
using graph::NodeId;
using runtime::Tensor;
using tensorflow::DataType;

struct Weights {
  // int8, or uint8 where they are stored so.
  Tensor integers;
  int32_t zero_point = 0;
  // One, or one for each output channel.
  std::vector<float> scales;
};

// The floats that a constant holds, behind a change of sign.
absl::StatusOr<std::vector<float>> EndsOf(const graph::Graph& graph,
                                          Endpoint tensor) {
  float sign = 1.0f;
  while (graph::IsNegate(graph.node(tensor.node).op()) ||
         graph::IsIdentity(graph.node(tensor.node).op())) {
    const graph::Node& node = graph.node(tensor.node);
    if (node.inputs().empty()) break;
    if (graph::IsNegate(node.op())) sign = -sign;
    tensor = node.inputs()[0];
  }
  const graph::Node& node = graph.node(tensor.node);
  if (!IsConst(node)) {
    return absl::UnimplementedError("the range of its weights is computed");
  }
  OPTFARM_ASSIGN_OR_RETURN(const FloatView view, FloatView::Of(node));
  std::vector<float> ends(view.values().begin(), view.values().end());
  for (float& end : ends) end *= sign;
  return ends;
}

absl::StatusOr<Weights> ReadWeights(const graph::Graph& graph,
                                    const graph::Node& layer, int ranges) {
  const graph::Node& node = graph.node(layer.inputs()[1].node);
  if (!IsConst(node)) {
    return absl::UnimplementedError("its weights are not a constant");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor stored, ConstValue(node));
  const auto at = static_cast<size_t>(ranges);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> mins,
                           EndsOf(graph, layer.inputs()[at + 2]));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> maxs,
                           EndsOf(graph, layer.inputs()[at + 3]));
  if (mins.empty() || mins.size() != maxs.size()) {
    return absl::InvalidArgumentError("the range of its weights has no ends");
  }
  Weights weights;
  if (stored.dtype() == tensorflow::DT_QINT8) {
    weights.integers = stored.Reinterpreted(tensorflow::DT_INT8);
    for (size_t i = 0; i < mins.size(); ++i) {
      weights.scales.push_back(std::max(std::abs(mins[i]), std::abs(maxs[i])) /
                               127.0f);
    }
  } else if (stored.dtype() == tensorflow::DT_QUINT8 && mins.size() == 1) {
    weights.integers = stored.Reinterpreted(tensorflow::DT_UINT8);
    const auto quantization =
        QuantizationOfRange(runtime::WithZero({mins[0], maxs[0]}));
    if (!quantization.has_value()) {
      return absl::UnimplementedError("its weights have an empty range");
    }
    weights.zero_point = quantization->zero_point;
    weights.scales = {quantization->scale};
  } else {
    return absl::UnimplementedError("its weights are of another type");
  }
  // A channel of zeros has no range; any scale will do.
  for (float& scale : weights.scales) {
    if (!(scale > 0.0f)) scale = 1e-12f;
  }
  return weights;
}

// The axis of the output channels; -1 when they take two axes.
int ChannelAxis(LayerProduct product, bool transpose_b,
                const runtime::Shape& shape) {
  if (product == LayerProduct::kMatrix) return transpose_b ? 0 : 1;
  if (product == LayerProduct::kConvolution) return 3;
  if (shape.dim(3) == 1) return 2;
  return shape.dim(2) == 1 ? 3 : -1;
}

absl::StatusOr<Endpoint> AddWeights(const graph::Node& layer,
                                    LayerProduct product,
                                    const Weights& weights,
                                    ExplicitValues* values) {
  const runtime::Shape& shape = weights.integers.shape();
  const bool is_matrix = product == LayerProduct::kMatrix;
  if (shape.rank() != (is_matrix ? 2 : 4)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its weights have shape ", shape.ToString()));
  }
  const bool transpose_b =
      graph::GetBoolOr(layer.def(), "transpose_b", false).value_or(false);
  const std::string name = absl::StrCat(layer.name(), "/weights");
  const int axis = ChannelAxis(product, transpose_b, shape);
  if (weights.scales.size() == 1 || axis >= 0) {
    return values->AddDequantized(name, weights.integers, weights.scales, axis,
                                  weights.zero_point);
  }
  // Several outputs for each channel: one axis for both, then two again.
  const runtime::Shape flat(
      {shape.dim(0), shape.dim(1), 1, shape.dim(2) * shape.dim(3)});
  const Endpoint dequantized =
      values->AddDequantized(name, weights.integers.Reshaped(flat),
                             weights.scales, 3, weights.zero_point);
  std::vector<int32_t> dims;
  for (int64_t dim : shape.dims()) dims.push_back(static_cast<int32_t>(dim));
  const Endpoint to = values->AddConst(absl::StrCat(name, "/shape"),
                                       Tensor::FromValues<int32_t>({4}, dims));
  return Endpoint{values->Add(absl::StrCat(name, "/shaped"), "Reshape",
                              {dequantized, to}, tensorflow::DT_FLOAT),
                  0};
}

// What a stored bias stands for, in the steps that the layer has now.
int32_t BiasOf(int32_t stored, const LinearQuantization& input) {
  const int32_t cut = runtime::CutBias(stored);
  if (input.scale == input.stored_scale) return cut;
  const double moved = std::nearbyint(static_cast<double>(cut) *
                                      input.stored_scale / input.scale);
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(moved, -kMost, kMost));
}

// As floats: next to values of 16 bits, 32 are not enough for their steps.
Endpoint AddFloatBias(const graph::Node& layer, const Tensor& stored,
                      const LinearQuantization& input, const Weights& weights,
                      ExplicitValues* values) {
  std::vector<float> floats;
  for (int64_t c = 0; c < stored.num_elements(); ++c) {
    if (stored.dtype() == tensorflow::DT_FLOAT) {
      floats.push_back(stored.data<float>()[c]);
      continue;
    }
    const float scale =
        weights.scales[weights.scales.size() == 1 ? 0 : static_cast<size_t>(c)];
    floats.push_back(
        static_cast<float>(runtime::CutBias(stored.data<int32_t>()[c])) *
        (input.stored_scale * scale));
  }
  return values->AddConst(
      absl::StrCat(layer.name(), "/bias"),
      Tensor::FromValues<float>({stored.num_elements()}, floats));
}

// int32 in steps of the sums, as the layer itself computes (26).
absl::StatusOr<Endpoint> AddBias(const graph::Node& layer,
                                 const LinearQuantization& input,
                                 const Weights& weights,
                                 ExplicitValues* values) {
  const graph::Node& node = values->graph()->node(layer.inputs()[2].node);
  if (!IsConst(node)) {
    return absl::UnimplementedError("its bias is not a constant");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor stored, ConstValue(node));
  const int64_t channels = stored.num_elements();
  if (stored.rank() != 1 || channels == 0) {
    return absl::InvalidArgumentError("its bias is not a vector");
  }
  std::vector<float> scales = weights.scales;
  for (float& scale : scales) scale *= input.scale;
  if (scales.size() != 1 && static_cast<int64_t>(scales.size()) != channels) {
    return absl::InvalidArgumentError("its bias has another size");
  }
  const bool is_stored = stored.dtype() == tensorflow::DT_QINT32;
  if (!is_stored && stored.dtype() != tensorflow::DT_FLOAT) {
    return absl::UnimplementedError("its bias is of another type");
  }
  if (values->form() == ActivationForm::kInt16) {
    return AddFloatBias(layer, stored, input, weights, values);
  }
  std::vector<int32_t> integers;
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = scales[scales.size() == 1 ? 0 : static_cast<size_t>(c)];
    integers.push_back(
        is_stored ? BiasOf(stored.data<int32_t>()[c], input)
                  : runtime::QuantizeBias(stored.data<float>()[c], scale));
  }
  return values->AddDequantized(
      absl::StrCat(layer.name(), "/bias"),
      Tensor::FromValues<int32_t>({channels}, integers), scales, 0);
}

const char* FloatOpOf(LayerProduct product) {
  switch (product) {
    case LayerProduct::kConvolution:
      return "Conv2D";
    case LayerProduct::kDepthwise:
      return "DepthwiseConv2dNative";
    default:
      return "MatMul";
  }
}

// Whether a depthwise layer is the mean over whole pictures that
// quantize_layers made of it (34).
bool IsMean(const graph::Node& layer, const Weights& weights,
            const graph::PartialShape& picture) {
  const runtime::Shape& shape = weights.integers.shape();
  if (layer.op() != "QuantizedDepthwiseConv2D" ||
      weights.integers.dtype() != tensorflow::DT_INT8 || shape.rank() != 4 ||
      shape.dim(3) != 1 || weights.scales.size() != 1 || !picture.has_rank() ||
      picture.rank() != 4 || picture.dim(1) != shape.dim(0) ||
      picture.dim(2) != shape.dim(1) ||
      graph::IsSame(layer.def()).value_or(true)) {
    return false;
  }
  const absl::Span<const int8_t> all = weights.integers.flat<int8_t>();
  const auto count = static_cast<double>(shape.dim(0) * shape.dim(1));
  return !all.empty() && std::all_of(all.begin(), all.end(), [](int8_t value) {
    return value == 127;
  }) && std::abs(127.0 * weights.scales[0] * count - 1.0) < 1e-4;
}

Endpoint AddMean(const graph::Node& layer, Endpoint floats,
                 ExplicitValues* values) {
  const std::string name = absl::StrCat(layer.name(), "/mean");
  const Endpoint axes = values->AddConst(
      absl::StrCat(name, "/axes"), Tensor::FromValues<int32_t>({2}, {{1, 2}}));
  tensorflow::NodeDef def = MakeNode(name, "Mean", layer);
  graph::SetType(&def, "T", tensorflow::DT_FLOAT);
  graph::SetType(&def, "Tidx", tensorflow::DT_INT32);
  graph::SetBool(&def, "keep_dims", true);
  return {values->Add(std::move(def), {floats, axes}), 0};
}

// The bias, where the layer has one, and its Relu.
absl::StatusOr<Endpoint> AddTail(const graph::Node& layer, Endpoint sums,
                                 const LinearQuantization& input,
                                 const Weights& weights,
                                 ExplicitValues* values) {
  const graph::LayerForm& form = graph::RowOf(layer.op()).layer;
  Endpoint result = sums;
  if (form.has_bias) {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint bias,
                             AddBias(layer, input, weights, values));
    result = {values->Add(absl::StrCat(layer.name(), "/sum"), "BiasAdd",
                          {result, bias}, tensorflow::DT_FLOAT),
              0};
  }
  if (form.has_relu) {
    result = {values->Add(absl::StrCat(layer.name(), "/relu"), "Relu", {result},
                          tensorflow::DT_FLOAT),
              0};
  }
  return result;
}

}  // namespace

absl::StatusOr<Endpoint> AddExplicitLayer(NodeId id,
                                          const graph::ShapeMap& shapes,
                                          ExplicitValues* values) {
  const graph::Node& layer = values->graph()->node(id);
  const graph::LayerForm& form = graph::RowOf(layer.op()).layer;
  const int ranges = form.has_bias ? 3 : 2;
  if (layer.inputs().size() < static_cast<size_t>(ranges) + 4) {
    return absl::InvalidArgumentError("it lacks inputs");
  }
  const ExplicitTensor* x = values->QuantizedOf(layer.inputs()[0]);
  if (x == nullptr) {
    return absl::UnimplementedError(
        "the range of its input is found at each run; freeze it with "
        "calibration data first");
  }
  const LinearQuantization input = x->quantization;
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights,
                           ReadWeights(*values->graph(), layer, ranges));
  const Endpoint floats = *values->FloatsOf(layer.inputs()[0]);
  if (IsMean(layer, weights, shapes.Of(layer.inputs()[0]))) {
    return AddMean(layer, floats, values);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint filter,
                           AddWeights(layer, form.product, weights, values));
  tensorflow::NodeDef def = MakeNode(absl::StrCat(layer.name(), "/product"),
                                     FloatOpOf(form.product), layer);
  graph::SetType(&def, "T", tensorflow::DT_FLOAT);
  CopyAttributes(
      layer, {"strides", "padding", "dilations", "transpose_a", "transpose_b"},
      &def);
  const Endpoint sums = {values->Add(std::move(def), {floats, filter}), 0};
  return AddTail(layer, sums, input, weights, values);
}

}  // namespace optfarm::transforms
