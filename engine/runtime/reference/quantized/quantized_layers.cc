// Whole layers on quantized values: QuantizedConv2D...,
// QuantizedDepthwiseConv2D... and QuantizedMatMul... with bias, Relu and
// requantization in one op, and RequantizePerChannel,
// RequantizationRangePerChannel for their parts. A fused op gives, bit for bit,
// what its parts give one after another: sums (8), plus the bias (26), Relu,
// then 8-bit values (27) of docs/quantization.md.
//
// Inputs: x, weights, [bias], min_x, max_x, min_weights, max_weights,
// [min_out, max_out]. x is quint8, whose zero may lie anywhere; weights are
// quint8, or qint8 with a range for each output channel.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/nn/window.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/reference/quantized/quantized_families.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"
#include "engine/runtime/reference/quantized/quantized_products.h"

namespace optfarm::runtime {
namespace {

using graph::LayerForm;
using graph::LayerProduct;
using graph::LayerResult;
using tensorflow::NodeDef;

constexpr int64_t kGrain = 16384;

// The furthest zero point, beyond which not even one product is safe.
constexpr int32_t kMostZero = 32000;

// Calls function(position, channel) for the elements of a tensor whose last
// dimension are the channels.
template <typename Function>
void ForEachElement(ThreadPool* pool, int64_t elements, int64_t channels,
                    Function function) {
  if (elements == 0) return;
  pool->ParallelFor(elements / channels,
                    std::max<int64_t>(kGrain / channels, 1),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        for (int64_t c = 0; c < channels; ++c) {
                          function(row * channels + c, c);
                        }
                      }
                    });
}

// Scales of the accumulators: that of x times that of the weights.
std::vector<float> AccumulatorScales(Range x, const QuantizedWeights& weights) {
  const float x_scale = (x.max - x.min) / 255.0f;
  std::vector<float> scales = weights.scales;
  for (float& scale : scales) scale *= x_scale;
  return scales;
}

absl::StatusOr<std::vector<int32_t>> ReadBias(const KernelContext& c, int index,
                                              const std::vector<float>& scales,
                                              int64_t channels) {
  const Tensor& bias = c.input(index);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims({channels}));
  OPTFARM_RETURN_IF_ERROR(RequireShape(bias, "bias", shape));
  std::vector<int32_t> quantized(static_cast<size_t>(channels));
  if (bias.dtype() == tensorflow::DT_QINT32) {
    const absl::Span<const int32_t> values = bias.flat<int32_t>();
    std::transform(values.begin(), values.end(), quantized.begin(), CutBias);
    return quantized;
  }
  OPTFARM_RETURN_IF_ERROR(RequireDtype(bias, "bias", tensorflow::DT_FLOAT));
  for (int64_t i = 0; i < channels; ++i) {
    quantized[i] =
        QuantizeBias(bias.data<float>()[i], scales[scales.size() == 1 ? 0 : i]);
  }
  return quantized;
}

// Formula 27: requantizes accumulators of these scales to a range.
class ScaleRequantizer {
 public:
  // ERRORS: InvalidArgument for a range whose zero is out of reach.
  static absl::StatusOr<ScaleRequantizer> Create(
      const std::vector<float>& scales, Range to) {
    ScaleRequantizer made;
    for (float scale : scales) {
      made.factors_.push_back(RequantizeFactor(scale, to));
    }
    OPTFARM_ASSIGN_OR_RETURN(made.zero_, ZeroPointOf(to));
    return made;
  }
  uint8_t operator()(int32_t q, int64_t channel) const {
    const float factor = factors_[factors_.size() == 1 ? 0 : channel];
    const float value =
        std::clamp(static_cast<float>(q) * factor, static_cast<float>(-zero_),
                   static_cast<float>(255 - zero_));
    return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(value)) +
                                zero_);
  }

 private:
  std::vector<float> factors_;
  int32_t zero_ = 0;
};

// Outputs `first` and the next: what the lowest and the highest 32-bit
// quantized value stand for (10), as one number or one for each channel.
absl::Status SetAccumulatorRanges(KernelContext* c, int first,
                                  const std::vector<float>& scales) {
  if (scales.size() == 1) {
    SetOutputRange(c, first, RangeOfScale(scales[0]));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::FromDims({static_cast<int64_t>(scales.size())}));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * min, c->AllocateOutput(first, tensorflow::DT_FLOAT, shape));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * max, c->AllocateOutput(first + 1, tensorflow::DT_FLOAT, shape));
  for (size_t i = 0; i < scales.size(); ++i) {
    const Range range = RangeOfScale(scales[i]);
    min->data<float>()[i] = range.min;
    max->data<float>()[i] = range.max;
  }
  return absl::OkStatus();
}

// The inverse of it: the scales of accumulators with these ranges.
absl::StatusOr<std::vector<float>> ReadAccumulatorScales(const KernelContext& c,
                                                         int min_index,
                                                         int64_t channels) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Range> ranges,
                           InputRanges(c, min_index, channels));
  std::vector<float> scales;
  for (const Range& range : ranges) {
    scales.push_back(
        static_cast<float>((double{range.max} - range.min) / 4294967296.0));
  }
  return scales;
}

int64_t LastDim(const Tensor& tensor) {
  return tensor.rank() == 0 ? 1 : tensor.dim(tensor.rank() - 1);
}

// --- Layers ------------------------------------------------------------------

class Layer final : public Kernel {
 public:
  Layer(const LayerForm& form, const WindowAttrs& window, bool transpose_b)
      : form_(form), window_(window), transpose_b_(transpose_b) {}

  absl::Status Compute(KernelContext* c) const override {
    const int ranges = form_.has_bias ? 3 : 2;
    OPTFARM_RETURN_IF_ERROR(RequireInputs(
        *c, ranges + (form_.result == LayerResult::kAccumulators ? 4 : 6)));
    OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QUINT8));
    OPTFARM_ASSIGN_OR_RETURN(const Range x, InputRange(*c, ranges));
    // A range may lie far off zero; sums that leave 32 bits are refused.
    OPTFARM_ASSIGN_OR_RETURN(const int32_t x_zero, ZeroPointOf(x, kMostZero));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, Channels(c->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(const QuantizedWeights weights,
                             ReadWeights(*c, 1, ranges + 2, channels));
    const std::vector<float> scales = AccumulatorScales(x, weights);
    OPTFARM_ASSIGN_OR_RETURN(Tensor sums, Multiply(c, x_zero, weights));
    int32_t* values = sums.data<int32_t>();
    if (form_.has_bias) {
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<int32_t> bias,
                               ReadBias(*c, 2, scales, channels));
      ForEachElement(
          c->pool(), sums.num_elements(), channels,
          [&](int64_t at, int64_t channel) { values[at] += bias[channel]; });
    }
    if (form_.has_relu) {
      ForEachElement(
          c->pool(), sums.num_elements(), channels,
          [&](int64_t at, int64_t) { values[at] = std::max(values[at], 0); });
    }
    return SetResult(c, std::move(sums), scales, channels, ranges + 4);
  }

 private:
  absl::StatusOr<int64_t> Channels(const Tensor& weights) const {
    const bool is_matrix = form_.product == LayerProduct::kMatrix;
    OPTFARM_RETURN_IF_ERROR(
        RequireRank(weights, is_matrix ? "b" : "filter", is_matrix ? 2 : 4));
    if (is_matrix) return weights.dim(transpose_b_ ? 0 : 1);
    if (form_.product == LayerProduct::kConvolution) return weights.dim(3);
    return weights.num_elements() == 0 ? 0 : weights.dim(2) * weights.dim(3);
  }

  absl::StatusOr<Tensor> Multiply(KernelContext* c, int32_t x_zero,
                                  const QuantizedWeights& weights) const {
    const Shape& shape = c->input(1).shape();
    switch (form_.product) {
      case LayerProduct::kConvolution:
        return ConvolveQuantized(c, window_, shape, x_zero, weights);
      case LayerProduct::kDepthwise:
        return ConvolveQuantizedDepthwise(c, window_, shape, x_zero, weights);
      case LayerProduct::kMatrix:
        return MultiplyQuantized(c, shape, transpose_b_, x_zero, weights);
      case LayerProduct::kNone:
        break;
    }
    return absl::InternalError("no such product");
  }

  absl::Status SetResult(KernelContext* c, Tensor sums,
                         const std::vector<float>& scales, int64_t channels,
                         int out_range) const {
    if (form_.result == LayerResult::kAccumulators) {
      c->SetOutput(0, std::move(sums));
      return SetAccumulatorRanges(c, 1, scales);
    }
    const int32_t* values = sums.data<int32_t>();
    if (form_.result == LayerResult::kFloats) {
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out,
          c->AllocateOutput(0, tensorflow::DT_FLOAT, sums.shape()));
      float* floats = out->data<float>();
      ForEachElement(c->pool(), sums.num_elements(), channels,
                     [&](int64_t at, int64_t channel) {
                       floats[at] = static_cast<float>(values[at]) *
                                    scales[scales.size() == 1 ? 0 : channel];
                     });
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(Range to, InputRange(*c, out_range));
    to = WithZero(to);
    OPTFARM_ASSIGN_OR_RETURN(const ScaleRequantizer requantize,
                             ScaleRequantizer::Create(scales, to));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        c->AllocateOutput(0, tensorflow::DT_QUINT8, sums.shape()));
    uint8_t* quantized = out->data<uint8_t>();
    ForEachElement(c->pool(), sums.num_elements(), channels,
                   [&](int64_t at, int64_t channel) {
                     quantized[at] = requantize(values[at], channel);
                   });
    SetOutputRange(c, 1, to);
    return absl::OkStatus();
  }

  LayerForm form_;
  WindowAttrs window_;
  bool transpose_b_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeLayer(const NodeDef& node) {
  using tensorflow::DataType;
  const LayerForm form = graph::RowOf(node.op()).layer;
  const DataType result =
      form.result == LayerResult::kQuantizedValues ? tensorflow::DT_QUINT8
      : form.result == LayerResult::kFloats        ? tensorflow::DT_FLOAT
                                                   : tensorflow::DT_QINT32;
  const bool is_matrix = form.product == LayerProduct::kMatrix;
  for (const char* x : {"Tinput", "T1"}) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, x, {tensorflow::DT_QUINT8}));
  }
  for (const char* weights : {"Tfilter", "T2"}) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
        node, weights, {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}));
  }
  for (const char* out : {"out_type", "Toutput"}) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, out, {result}));
  }
  if (is_matrix) {
    OPTFARM_ASSIGN_OR_RETURN(const bool transpose_a,
                             graph::GetBoolOr(node, "transpose_a", false));
    OPTFARM_ASSIGN_OR_RETURN(const bool transpose_b,
                             graph::GetBoolOr(node, "transpose_b", false));
    if (transpose_a) {
      return absl::UnimplementedError("transpose_a has no kernel");
    }
    return std::make_unique<Layer>(form, WindowAttrs(), transpose_b);
  }
  if (const auto pads = graph::GetInts(node, "padding_list");
      pads.ok() && !pads->empty()) {
    return absl::UnimplementedError("padding_list has no kernel");
  }
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs window, ReadWindowAttrs(node));
  return std::make_unique<Layer>(form, window, false);
}

// --- RequantizePerChannel, RequantizationRangePerChannel ---------------------

absl::StatusOr<std::unique_ptr<Kernel>> MakeRequantize(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_QINT32}));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "out_type", {tensorflow::DT_QUINT8}));
  return MakeKernel([](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 5));
    OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QINT32));
    const Tensor& input = c->input(0);
    const int64_t channels = LastDim(input);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> scales,
                             ReadAccumulatorScales(*c, 1, channels));
    OPTFARM_ASSIGN_OR_RETURN(Range to, InputRange(*c, 3));
    to = WithZero(to);
    OPTFARM_ASSIGN_OR_RETURN(const ScaleRequantizer requantize,
                             ScaleRequantizer::Create(scales, to));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        c->AllocateOutput(0, tensorflow::DT_QUINT8, input.shape()));
    const int32_t* in = input.data<int32_t>();
    uint8_t* quantized = out->data<uint8_t>();
    ForEachElement(c->pool(), input.num_elements(), channels,
                   [&](int64_t at, int64_t channel) {
                     quantized[at] = requantize(in[at], channel);
                   });
    SetOutputRange(c, 1, to);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRange(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_QINT32}));
  OPTFARM_ASSIGN_OR_RETURN(const float clip,
                           graph::GetFloat(node, "clip_value_max"));
  return MakeKernel([clip](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
    OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QINT32));
    const Tensor& input = c->input(0);
    const int64_t channels = LastDim(input);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> scales,
                             ReadAccumulatorScales(*c, 1, channels));
    if (input.num_elements() == 0) {
      return absl::InvalidArgumentError(
          "the range of a tensor without elements is not defined");
    }
    Range range;
    const absl::Span<const int32_t> quantized = input.flat<int32_t>();
    for (size_t i = 0; i < quantized.size(); ++i) {
      const float value =
          static_cast<float>(quantized[i]) *
          scales[scales.size() == 1 ? 0 : i % static_cast<size_t>(channels)];
      range.min = std::min(range.min, value);
      range.max = std::max(range.max, value);
    }
    if (clip > 0) range.max = std::min(range.max, clip);
    SetOutputRange(c, 0, range);
    return absl::OkStatus();
  });
}

}  // namespace

void AddQuantizedLayerKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizedConv2DPerChannel", MakeLayer);
  catalog->Add("QuantizedConv2DWithBias", MakeLayer);
  catalog->Add("QuantizedConv2DWithBiasAndRelu", MakeLayer);
  catalog->Add("QuantizedConv2DWithBiasAndRequantize", MakeLayer);
  catalog->Add("QuantizedConv2DWithBiasAndReluAndRequantize", MakeLayer);
  catalog->Add("QuantizedDepthwiseConv2D", MakeLayer);
  catalog->Add("QuantizedDepthwiseConv2DWithBias", MakeLayer);
  catalog->Add("QuantizedDepthwiseConv2DWithBiasAndRelu", MakeLayer);
  catalog->Add("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
               MakeLayer);
  catalog->Add("QuantizedMatMulWithBias", MakeLayer);
  catalog->Add("QuantizedMatMulWithBiasAndRelu", MakeLayer);
  catalog->Add("QuantizedMatMulWithBiasAndRequantize", MakeLayer);
  catalog->Add("QuantizedMatMulWithBiasAndReluAndRequantize", MakeLayer);
  catalog->Add("QuantizedMatMulWithBiasAndDequantize", MakeLayer);
  catalog->Add("RequantizePerChannel", MakeRequantize);
  catalog->Add("RequantizationRangePerChannel", MakeRange);
}

}  // namespace optfarm::runtime
