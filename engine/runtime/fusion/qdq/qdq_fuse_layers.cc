// Layers of explicitly quantized graphs: a product with constant weights, its
// bias and what clips it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/fusion/int8_operands.h"
#include "engine/runtime/fusion/layer_padding.h"
#include "engine/runtime/fusion/qdq/qdq_fuser.h"
#include "engine/runtime/fusion/qdq/qdq_layer.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::runtime {
namespace {

// More is never added to a sum, so that sums of products have the rest of 32
// bits. Converters give 2^30 to channels that are always zero; its scale in
// floats may make that a little more.
constexpr double kMostBias = (1 << 30) + (1 << 15);

// A sum and the vector that is added to it.
struct BiasSlots {
  int value = kNoSlot;
  int bias = kNoSlot;
};

bool IsConstant(const PlanEditor& plan, int slot) {
  return plan.ConstantOf(slot) != nullptr ||
         ReadQdqConstant(plan, slot).has_value();
}

std::optional<BiasSlots> ReadBias(const PlanEditor& plan, const Step& step) {
  if (step.node == nullptr || step.inputs.size() != 2) return std::nullopt;
  if (IsNode(&step, "BiasAdd")) {
    if (!graph::IsNhwc(*step.node)) return std::nullopt;
    return BiasSlots{step.inputs[0], step.inputs[1]};
  }
  if (!graph::HasRole(step.op, graph::OpRole::kAdd)) return std::nullopt;
  for (int i : {0, 1}) {
    if (IsConstant(plan, step.inputs[i])) {
      return BiasSlots{step.inputs[1 - i], step.inputs[i]};
    }
  }
  return std::nullopt;
}

// The floats of a bias, one for each column. Nothing when it is not so.
std::optional<std::vector<double>> BiasValues(const PlanEditor& plan, int slot,
                                              int64_t columns) {
  const Tensor* floats = plan.ConstantOf(slot);
  const auto quantized = ReadQdqConstant(plan, slot);
  const Tensor* values = floats != nullptr ? floats
                         : quantized       ? quantized->values
                                           : nullptr;
  if (values == nullptr || values->num_elements() != columns ||
      (values->rank() > 0 && values->dim(values->rank() - 1) != columns)) {
    return std::nullopt;
  }
  std::vector<double> bias(columns);
  if (floats != nullptr) {
    if (floats->dtype() != tensorflow::DT_FLOAT) return std::nullopt;
    std::copy_n(floats->data<float>(), columns, bias.begin());
    return bias;
  }
  const auto integers = quantized->values->AsInt64s();
  const auto of = [](const auto& list, int64_t i) {
    return list[list.size() == 1 ? 0 : i];
  };
  if (!integers.ok() ||
      (quantized->scales.size() > 1 && quantized->axis != values->rank() - 1) ||
      (quantized->zero_points.size() > 1 &&
       static_cast<int64_t>(quantized->zero_points.size()) != columns)) {
    return std::nullopt;
  }
  for (int64_t i = 0; i < columns; ++i) {
    bias[i] =
        static_cast<double>((*integers)[i] - of(quantized->zero_points, i)) *
        of(quantized->scales, i);
  }
  return bias;
}

// A product step as a layer.
class LayerReader {
 public:
  LayerReader(const PlanEditor& plan, const Int8Kernels& kernels, int product)
      : plan_(plan), product_(product), step_(*plan.step(product)) {
    operands_.plan.kernels = kernels;
  }

  // Nothing of the bias yet. False for what has no code.
  bool Read(QdqMatch* match);
  // Bias and scales of the result, once the weights' are read.
  bool Scale(int bias_slot, const QdqTail& tail, QdqLayerPlan* layer) const;
  // Packs, and keeps for the steps what they need.
  bool Pack(PlanEditor* editor, QdqLayerPlan* layer, QdqMatch* match);
  int64_t columns() const { return columns_; }

 private:
  bool ReadFilter();
  bool ReadWindow();
  bool SumsFit(int64_t depth) const;
  // A step before a matrix product that makes rows of its depth of a tensor;
  // kNoStep where there is none.
  int ReshapeBefore() const;
  // Takes in a padding of quantized values with what stands for 0.0.
  void ReadStoredPadding(QdqSource* source, QdqMatch* match);

  const PlanEditor& plan_;
  const int product_;
  const Step& step_;
  graph::LayerProduct form_ = graph::LayerProduct::kNone;
  QdqSource source_;
  QdqConstant weights_;
  Tensor filter_;
  int64_t columns_ = 0;
  bool flattens_ = false;
  Int8Operands operands_;
};

bool LayerReader::ReadFilter() {
  const auto weights = ReadQdqConstant(plan_, step_.inputs[1]);
  if (!weights || weights->values->num_elements() == 0) return false;
  weights_ = *weights;
  const DataType dtype = weights_.values->dtype();
  const bool is_signed = dtype == tensorflow::DT_INT8;
  const auto& zeros = weights_.zero_points;
  if ((!is_signed && dtype != tensorflow::DT_UINT8) ||
      std::any_of(zeros.begin(), zeros.end(), [&](int32_t zero) {
        return is_signed ? zero != 0 : zero != zeros[0];
      })) {
    return false;
  }
  operands_.plan.weights_zero = is_signed ? kInt8Shift : zeros[0];
  filter_ = weights_.values->Reinterpreted(is_signed ? tensorflow::DT_QINT8
                                                     : tensorflow::DT_QUINT8);
  return true;
}

bool LayerReader::ReadWindow() {
  if (filter_.rank() != 4) return false;
  const auto window = ReadWindowAttrs(*step_.node);
  if (!window.ok() || window->is_nchw) return false;
  Int8LayerPlan& plan = operands_.plan;
  plan.window = *window;
  plan.is_depthwise = form_ == graph::LayerProduct::kDepthwise;
  int axis = 3;
  if (plan.is_depthwise && filter_.dim(2) == 1) {
    // All channels come from one: as in any convolution.
    plan.is_depthwise = false;
  } else if (plan.is_depthwise) {
    if (filter_.dim(3) != 1) return false;
    axis = 2;
  }
  plan.size_y = filter_.dim(0);
  plan.size_x = filter_.dim(1);
  plan.channels = filter_.dim(2);
  columns_ = filter_.dim(axis);
  plan.is_by_row = !plan.is_depthwise &&
                   plan.channels % plan.kernels.panel().kr != 0 &&
                   window->dilation_x == 1;
  return weights_.scales.size() == 1 || weights_.axis == axis;
}

bool LayerReader::SumsFit(int64_t depth) const {
  // Of values and weights, each less its zero point.
  constexpr int64_t kMostProduct = 255 * 255;
  return depth <= (int64_t{1} << 30) / kMostProduct;
}

int LayerReader::ReshapeBefore() const {
  const int slot = step_.inputs[0];
  const int number = plan_.ProducerOf(slot);
  if (number == kNoStep || plan_.OnlyReaderOf(slot) != product_ ||
      !IsNode(plan_.step(number), "Reshape")) {
    return kNoStep;
  }
  const Tensor* shape = plan_.ConstantOf(plan_.step(number)->inputs[1]);
  const auto dims =
      shape == nullptr
          ? absl::StatusOr<std::vector<int64_t>>(std::vector<int64_t>())
          : shape->AsInt64s();
  const bool is_rows = dims.ok() && dims->size() == 2 && (*dims)[0] == -1 &&
                       (*dims)[1] == operands_.plan.channels;
  return is_rows ? number : kNoStep;
}

void LayerReader::ReadStoredPadding(QdqSource* source, QdqMatch* match) {
  const int dequantize = plan_.ProducerOf(source->floats);
  const int pad = plan_.ProducerOf(source->values);
  if (pad == kNoStep || !IsNode(plan_.step(pad), "PadV2") ||
      plan_.OnlyReaderOf(source->floats) != product_) {
    return;
  }
  const Step& step = *plan_.step(pad);
  const Tensor* value = plan_.ConstantOf(step.inputs[2]);
  if (value == nullptr || value->num_elements() != 1) return;
  const auto number = value->AsInt64s();
  if (!number.ok() || (*number)[0] != source->tensor.zero_point ||
      !ReadPadding(plan_, pad, dequantize, &*operands_.plan.window)) {
    return;
  }
  source->values = step.inputs[0];
  match->members = {pad, dequantize, product_};
  match->reads_values = true;
}

bool LayerReader::Read(QdqMatch* match) {
  form_ = graph::FloatProductOf(step_.op);
  if (step_.node == nullptr || form_ == graph::LayerProduct::kNone ||
      step_.inputs.size() != 2 || !ReadFilter()) {
    return false;
  }
  if (form_ == graph::LayerProduct::kMatrix) {
    const auto turned_a = graph::GetBoolOr(*step_.node, "transpose_a", false);
    const auto turned_b = graph::GetBoolOr(*step_.node, "transpose_b", false);
    if (filter_.rank() != 2 || !turned_a.ok() || *turned_a || !turned_b.ok()) {
      return false;
    }
    operands_.is_transposed = *turned_b;
    operands_.plan.channels = filter_.dim(*turned_b ? 1 : 0);
    columns_ = filter_.dim(*turned_b ? 0 : 1);
    if (weights_.scales.size() > 1 && weights_.axis != (*turned_b ? 0 : 1)) {
      return false;
    }
  } else if (!ReadWindow()) {
    return false;
  }
  int image = step_.inputs[0];
  match->members = {product_};
  if (operands_.plan.window) {
    const int pad = FindPadding(plan_, product_, &*operands_.plan.window);
    if (pad != kNoStep) {
      match->members = {pad, product_};
      image = plan_.step(pad)->inputs[0];
    }
  } else if (const int rows = ReshapeBefore(); rows != kNoStep) {
    flattens_ = true;
    match->members = {rows, product_};
    image = plan_.step(rows)->inputs[0];
  }
  auto source = ReadQdqSource(plan_, image);
  if (source && operands_.plan.window && match->members.size() == 1) {
    ReadStoredPadding(&*source, match);
  }
  if (!source || !SumsFit(filter_.num_elements() / columns_)) return false;
  // Padding is to add nothing.
  const int32_t zero = source->tensor.unsigned_zero();
  if (zero < 0 || zero > 255) return false;
  source_ = *source;
  match->sources = {source_};
  return true;
}

bool LayerReader::Scale(int bias_slot, const QdqTail& tail,
                        QdqLayerPlan* layer) const {
  std::vector<double> bias(columns_, 0.0);
  if (bias_slot != kNoSlot) {
    const auto values = BiasValues(plan_, bias_slot, columns_);
    if (!values) return false;
    bias = *values;
  }
  for (int64_t i = 0; i < columns_; ++i) {
    const auto& scales = weights_.scales;
    // In floats, as runtimes compute it.
    const float weight = scales[scales.size() == 1 ? 0 : i];
    const double sum = bias[i] / (double{source_.tensor.scale} * weight);
    const float scale = source_.tensor.scale * weight / tail.out.scale;
    if (!(std::abs(sum) <= kMostBias) || !(scale < 1e6)) return false;
    layer->bias.push_back(static_cast<int32_t>(std::nearbyint(sum)));
    layer->scales.push_back(scale);
  }
  return true;
}

bool LayerReader::Pack(PlanEditor* editor, QdqLayerPlan* layer,
                       QdqMatch* match) {
  Int8LayerPlan& plan = operands_.plan;
  plan.chain = Int8Chain(columns_);
  plan.weight_scales = weights_.scales;
  if (!PackInt8Filter(filter_, editor, &operands_, &match->constant_bytes)
           .ok()) {
    return false;
  }
  layer->window = plan.window;
  layer->size_y = plan.size_y;
  layer->size_x = plan.size_x;
  layer->channels = plan.channels;
  layer->weights = plan.weights;
  layer->is_depthwise = plan.is_depthwise;
  layer->is_by_row = plan.is_by_row;
  layer->flattens = flattens_;
  layer->kernels = plan.kernels;
  layer->in = source_.tensor;
  const Step& dequantize = *plan_.step(plan_.ProducerOf(step_.inputs[1]));
  ChainConstant floats;
  floats.slot = step_.inputs[1];
  floats.restore = [weights = plan.weights, shape = filter_.shape(),
                    dtype = weights_.values->dtype(), node = *dequantize.node,
                    scale = *plan_.ConstantOf(dequantize.inputs[1]),
                    zero = *plan_.ConstantOf(
                        dequantize.inputs[2])]() -> absl::StatusOr<Tensor> {
    absl::StatusOr<Tensor> value = weights.Value();
    if (!value.ok()) return value.status();
    auto made = EvaluateNode(
        node, {value->Reshaped(shape).Reinterpreted(dtype), scale, zero}, 1);
    if (!made.ok()) return made.status();
    return made->front();
  };
  match->constants.push_back(std::move(floats));
  return true;
}

}  // namespace

bool QdqFuser::FuseLayer(const QdqTail& tail) {
  int product = OnlyMakerOf(tail.slot, tail.members.front());
  if (product == kNoStep) return false;
  int bias_slot = kNoSlot;
  int bias_step = kNoStep;
  if (const auto bias = ReadBias(plan_, *plan_.step(product))) {
    bias_step = product;
    bias_slot = bias->bias;
    product = OnlyMakerOf(bias->value, bias_step);
    if (product == kNoStep) return false;
  }
  LayerReader reader(plan_, kernels_, product);
  QdqMatch match;
  QdqLayerPlan layer;
  if (!reader.Read(&match) || !reader.Scale(bias_slot, tail, &layer)) {
    return false;
  }
  if (bias_step != kNoStep) match.members.push_back(bias_step);
  match.members.insert(match.members.end(), tail.members.begin(),
                       tail.members.end());
  std::sort(match.members.begin(), match.members.end());
  match.output = tail.output;
  if (!plan_.MayFuse(match.members, {match.output}) ||
      !reader.Pack(&plan_, &layer, &match)) {
    return false;
  }
  if (bias_slot != kNoSlot && plan_.ConstantOf(bias_slot) == nullptr) {
    const Step& dequantize = *plan_.step(plan_.ProducerOf(bias_slot));
    std::vector<Tensor> in;
    for (int slot : dequantize.inputs) in.push_back(*plan_.ConstantOf(slot));
    auto floats = EvaluateNode(*dequantize.node, in, 1);
    if (!floats.ok()) return false;
    match.constants.push_back({bias_slot, floats->front(), nullptr});
  }
  layer.out = tail.out;
  const QdqBounds bounds = tail.bounds();
  layer.least = bounds.least;
  layer.most = bounds.most;
  return Replace(std::move(match), [&](QdqSteps steps) {
    return MakeQdqLayer(std::move(layer), std::move(steps));
  });
}

}  // namespace optfarm::runtime
