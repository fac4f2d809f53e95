#include "engine/runtime/fusion/int8_operands.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/int8_chain_finder.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"
#include "engine/runtime/reference/quantized/quantized_products.h"

namespace optfarm::runtime {
namespace {

// What an op's row says that it does.
struct Form {
  bool is_matrix = false;
  bool is_depthwise = false;
  // One of the ops for whole layers, or with a range for each channel.
  bool is_layer = false;
  bool has_bias = false;
  bool has_relu = false;
  bool gives_quantized = false;
  bool gives_floats = false;

  int range_input() const { return has_bias ? 3 : 2; }
  size_t input_count() const {
    const size_t output_range = gives_quantized || gives_floats ? 2 : 0;
    return 6 + (has_bias ? 1 : 0) + output_range;
  }
};

// nullopt for a fused step's op too, which has no row.
std::optional<Form> FormOf(const std::string& op) {
  const graph::LayerForm& layer = graph::RowOf(op).layer;
  if (!layer.is_quantized) return std::nullopt;
  Form form;
  form.is_matrix = layer.product == graph::LayerProduct::kMatrix;
  form.is_depthwise = layer.product == graph::LayerProduct::kDepthwise;
  form.is_layer = layer.has_channel_ranges;
  form.has_bias = layer.has_bias;
  form.has_relu = layer.has_relu;
  form.gives_quantized = layer.result == graph::LayerResult::kQuantizedValues;
  form.gives_floats = layer.result == graph::LayerResult::kFloats;
  return form;
}

class Reader {
 public:
  Reader(const PlanEditor& plan, const Step& step, const Form& form)
      : plan_(plan), step_(step), form_(form) {}

  bool Read(Int8Operands* made);

 private:
  bool ReadShape(const Tensor& filter, Int8Operands* made);
  bool ReadWindow(const Tensor& filter, Int8LayerPlan* made) const;
  bool ReadRanges(const Tensor& filter, Int8LayerPlan* made) const;
  bool ReadScales(const Tensor& filter, Int8LayerPlan* made) const;
  // The outlier residual of a depthwise filter has room for any zero point.
  static bool HasServedZero(const Int8LayerPlan& made) {
    return !made.is_depthwise ||
           (made.weights_zero >= 0 && made.weights_zero <= 255);
  }
  bool BeginChain(Int8LayerPlan* made) const;
  const Tensor* Constant(int input) const {
    return plan_.ConstantOf(step_.inputs[input]);
  }

  const PlanEditor& plan_;
  const Step& step_;
  const Form& form_;
  int64_t channels_ = 0;
};

bool Reader::Read(Int8Operands* made) {
  if (step_.node == nullptr || step_.inputs.size() != form_.input_count() ||
      step_.outputs.size() != (form_.gives_floats ? 1 : 3)) {
    return false;
  }
  const Tensor* filter = Constant(1);
  const int range = form_.range_input();
  made->inputs = {step_.inputs[0], step_.inputs[range],
                  step_.inputs[range + 1]};
  made->filter_slot = step_.inputs[1];
  made->rank = form_.is_matrix ? 2 : 4;
  return filter != nullptr && filter->num_elements() > 0 &&
         ReadShape(*filter, made) && ReadRanges(*filter, &made->plan) &&
         HasServedZero(made->plan) && BeginChain(&made->plan);
}

bool Reader::ReadShape(const Tensor& filter, Int8Operands* made) {
  if (!form_.is_matrix) {
    if (!ReadWindow(filter, &made->plan)) return false;
    channels_ = filter.dim(form_.is_depthwise ? 2 : 3);
    return true;
  }
  const auto transpose_a = graph::GetBoolOr(*step_.node, "transpose_a", false);
  const auto transpose_b = graph::GetBoolOr(*step_.node, "transpose_b", false);
  if (filter.rank() != 2 || !transpose_a.ok() || *transpose_a ||
      !transpose_b.ok()) {
    return false;
  }
  made->is_transposed = *transpose_b;
  made->plan.channels = filter.dim(*transpose_b ? 1 : 0);
  channels_ = filter.dim(*transpose_b ? 0 : 1);
  return true;
}

bool Reader::ReadWindow(const Tensor& filter, Int8LayerPlan* made) const {
  const auto window = ReadWindowAttrs(*step_.node);
  const auto pads = graph::GetInts(*step_.node, "padding_list");
  if (filter.rank() != 4 || !window.ok() || window->is_nchw ||
      (pads.ok() && !pads->empty()) ||
      (form_.is_depthwise && filter.dim(3) != 1)) {
    return false;
  }
  made->is_depthwise = form_.is_depthwise;
  made->window = *window;
  made->size_y = filter.dim(0);
  made->size_x = filter.dim(1);
  made->channels = filter.dim(2);
  made->is_by_row = !form_.is_depthwise &&
                    made->channels % made->kernels.panel().kr != 0 &&
                    window->dilation_x == 1;
  return true;
}

bool Reader::ReadRanges(const Tensor& filter, Int8LayerPlan* made) const {
  if (form_.is_layer) return ReadScales(filter, made);
  const int input = form_.range_input() + 2;
  const std::optional<Range> range =
      ConstantRange(plan_, step_.inputs[input], step_.inputs[input + 1]);
  if (!range || filter.dtype() != tensorflow::DT_QUINT8) return false;
  const auto zero = ZeroPointOf(*range);
  if (!zero.ok()) return false;
  made->weights_range = *range;
  made->weights_zero = *zero;
  return true;
}

// As ReadWeights (kernels/quantized_products.h).
bool Reader::ReadScales(const Tensor& filter, Int8LayerPlan* made) const {
  const bool is_signed = filter.dtype() == tensorflow::DT_QINT8;
  const int input = form_.range_input() + 2;
  const Tensor *min = Constant(input), *max = Constant(input + 1);
  if ((!is_signed && filter.dtype() != tensorflow::DT_QUINT8) ||
      min == nullptr || max == nullptr ||
      min->dtype() != tensorflow::DT_FLOAT ||
      max->dtype() != tensorflow::DT_FLOAT ||
      min->num_elements() != max->num_elements() ||
      (min->num_elements() != 1 && min->num_elements() != channels_)) {
    return false;
  }
  made->weights_zero = kInt8Shift;
  for (int64_t i = 0; i < min->num_elements(); ++i) {
    const Range range = {min->data<float>()[i], max->data<float>()[i]};
    if (!std::isfinite(range.min) || !std::isfinite(range.max) ||
        range.min > range.max) {
      return false;
    }
    if (is_signed) {
      made->weight_scales.push_back(
          std::max(std::abs(range.min), std::abs(range.max)) / 127.0f);
      continue;
    }
    const auto zero = ZeroPointOf(range);
    if (!zero.ok() || (i > 0 && *zero != made->weights_zero)) return false;
    made->weights_zero = *zero;
    made->weight_scales.push_back((range.max - range.min) / 255.0f);
  }
  return true;
}

bool Reader::BeginChain(Int8LayerPlan* made) const {
  made->chain = Int8Chain(channels_);
  if (!form_.is_layer) return true;
  const Tensor* bias = nullptr;
  if (form_.has_bias) {
    bias = Constant(2);
    if (bias == nullptr || bias->rank() != 1 || bias->dim(0) != channels_ ||
        (bias->dtype() != tensorflow::DT_FLOAT &&
         bias->dtype() != tensorflow::DT_QINT32)) {
      return false;
    }
  }
  made->chain.BeginLayer(bias, form_.has_relu, made->weight_scales.size() > 1);
  if (form_.gives_floats) made->chain.AddScales(/*are_ranges=*/false);
  if (!form_.gives_quantized) return true;
  const int input = form_.range_input() + 4;
  const std::optional<Range> range =
      ConstantRange(plan_, step_.inputs[input], step_.inputs[input + 1]);
  if (range) made->chain.AddRequantizePerChannel(*range, 0);
  return range.has_value();
}

// Nothing for a filter that fits with any input whose zero point is in range.
std::optional<int64_t> FindLargestWeight(const Tensor& filter,
                                         const Int8Operands& operands) {
  const Int8LayerPlan& plan = operands.plan;
  const int64_t channels = plan.chain.channels();
  if (plan.weight_scales.empty() || plan.is_depthwise ||
      SumsFit(filter.num_elements() / channels, 0, plan.weights_zero)) {
    return std::nullopt;
  }
  QuantizedWeights weights;
  const auto* quantized = static_cast<const uint8_t*>(filter.raw());
  weights.values.assign(quantized, quantized + filter.num_elements());
  weights.zero = plan.weights_zero;
  if (filter.dtype() == tensorflow::DT_QINT8) {
    for (uint8_t& q : weights.values) {
      q = static_cast<uint8_t>(q ^ kInt8Shift);
    }
  }
  return LargestWeight(weights, channels, operands.is_transposed);
}

}  // namespace

std::optional<Int8Operands> ReadInt8Operands(const PlanEditor& plan,
                                             const Step& step,
                                             const Int8Kernels& kernels) {
  std::optional<Int8Operands> made;
  const std::optional<Form> form = FormOf(step.op);
  if (!form) return made;
  made.emplace();
  made->plan.kernels = kernels;
  if (!Reader(plan, step, *form).Read(&*made)) made.reset();
  return made;
}

absl::Status PackInt8Filter(const Tensor& filter, PlanEditor* editor,
                            Int8Operands* operands, int64_t* bytes) {
  Int8LayerPlan& plan = operands->plan;
  const int64_t channels = plan.chain.channels();
  const int32_t zero = plan.weights_zero;
  const PanelLayout& panel =
      plan.is_depthwise ? plan.kernels.depthwise->panel : plan.kernels.panel();
  const Int8Matrix matrix =
      plan.is_depthwise ? MakeInt8DepthwiseMatrix(filter.shape(), zero, panel)
      : plan.is_by_row  ? MakeInt8RowMatrix(filter.shape(), zero, panel)
                        : MakeInt8Matrix(filter.num_elements() / channels,
                                         channels, zero, panel);
  OPTFARM_ASSIGN_OR_RETURN(
      PackedWeights packed,
      editor->Pack(
          filter,
          plan.is_depthwise ? Int8Weights::LayoutOfDepthwise(filter, matrix)
          : plan.is_by_row
              ? Int8Weights::LayoutOfRows(filter, matrix)
              : Int8Weights::LayoutOf(filter, matrix, operands->is_transposed),
          bytes));
  plan.weights = Int8Weights(std::move(packed), matrix);
  plan.largest_weight = FindLargestWeight(filter, *operands);
  return absl::OkStatus();
}

ChainConstant RestoredInt8Filter(const Tensor& filter,
                                 const Int8Operands& operands) {
  ChainConstant constant;
  constant.slot = operands.filter_slot;
  constant.restore = [weights = operands.plan.weights,
                      shape = filter.shape()]() -> absl::StatusOr<Tensor> {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, weights.Value());
    return value.Reshaped(shape);
  };
  return constant;
}

}  // namespace optfarm::runtime
