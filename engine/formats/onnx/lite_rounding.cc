#include "engine/formats/onnx/lite_rounding.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "engine/graph/ops/op_table.h"

namespace optfarm::formats {
namespace {

std::optional<float> NumberOf(NodeLowering& n, Endpoint tensor) {
  const auto floats = n.KnownFloats(tensor);
  if (!floats.has_value() || floats->size() != 1) return std::nullopt;
  return floats->front();
}

// The inputs of a sum or product, the constant number behind the other one.
struct WithNumber {
  Endpoint x;
  float number = 0;
};

const graph::Node& NodeOf(NodeLowering& n, Endpoint tensor) {
  return n.builder().graph().node(tensor.node);
}

bool IsSum(const graph::Node& node) {
  return graph::IsSum(node.op()) && node.inputs().size() == 2;
}

bool IsProduct(const graph::Node& node) {
  return graph::IsMultiply(node.op()) && node.inputs().size() == 2;
}

std::optional<WithNumber> PartNumber(NodeLowering& n, const graph::Node& node) {
  for (const size_t i : {size_t{1}, size_t{0}}) {
    if (const auto number = NumberOf(n, node.inputs()[i])) {
      return WithNumber{node.inputs()[1 - i], *number};
    }
  }
  return std::nullopt;
}

// The scale of the dequantized values that the tensor is.
std::optional<float> ScaleOf(NodeLowering& n, Endpoint tensor) {
  const graph::Node& node = NodeOf(n, tensor);
  if (!graph::IsDequantizeLinear(node.op()) || node.inputs().size() != 3) {
    return std::nullopt;
  }
  return NumberOf(n, node.inputs()[1]);
}

// x where `move` is sign(x + zero) * half.
bool IsMoveAway(NodeLowering& n, Endpoint move, Endpoint x, float zero,
                float half) {
  const graph::Node& product = NodeOf(n, move);
  if (!IsProduct(product)) return false;
  const auto parted = PartNumber(n, product);
  if (!parted.has_value() || parted->number != half) return false;
  const graph::Node& sign = NodeOf(n, parted->x);
  if (sign.op() != "Sign" || sign.inputs().size() != 1) return false;
  const graph::Node& sum = NodeOf(n, sign.inputs()[0]);
  if (!IsSum(sum)) return false;
  const auto shifted = PartNumber(n, sum);
  return shifted.has_value() && shifted->x == x && shifted->number == zero;
}

}  // namespace

std::string LiteNote(const NodeLowering& n, absl::string_view key) {
  for (const auto& entry : n.node().metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

float RatioFactor(float input_scale, float step) {
  const float ratio = std::nearbyint(256 * (input_scale / step)) / 256;
  return ratio * (step / input_scale);
}

LiteRounded TakeMoveBack(NodeLowering& n, Endpoint x, Endpoint scale,
                         Endpoint zero_point) {
  const LiteRounded to_even = {x, "", 0};
  if (x.node == graph::kNoNode) return to_even;
  const auto step = NumberOf(n, scale);
  const auto known = n.builder().Known(zero_point);
  // The interpreter's arithmetic is that of 8 bits and one scale.
  if (!step.has_value() || !known.has_value() || known->num_elements() != 1 ||
      (known->dtype() != tensorflow::DT_INT8 &&
       known->dtype() != tensorflow::DT_UINT8)) {
    return to_even;
  }
  const auto zeros = known->AsInt64s();
  if (!zeros.ok()) return to_even;
  const bool goes_up = LiteNote(n, kRoundingNote) == "half_up";
  const LiteRounded plain = {x, goes_up ? "half_up" : "", 0};
  const graph::Node& sum = NodeOf(n, x);
  if (!IsSum(sum)) return plain;
  if (const auto parted = PartNumber(n, sum)) {
    const bool is_moved_up =
        goes_up ? std::any_of(std::begin(kMovesUp), std::end(kMovesUp),
                              [&](float move) {
                                return parted->number == *step * move;
                              })
                : parted->number == *step * kNearHalf;
    if (is_moved_up) return {parted->x, "half_up", 0};
    const graph::Node& product = NodeOf(n, parted->x);
    if (parted->number != *step * kNearRatio || !IsProduct(product)) {
      return plain;
    }
    const auto scaled = PartNumber(n, product);
    if (!scaled.has_value()) return plain;
    const auto input_scale = ScaleOf(n, scaled->x);
    if (!input_scale.has_value() ||
        scaled->number != RatioFactor(*input_scale, *step)) {
      return plain;
    }
    return {scaled->x, "", *input_scale};
  }
  const Endpoint value = sum.inputs()[0];
  const float zero = static_cast<float>(zeros->front()) * *step;
  if (IsMoveAway(n, sum.inputs()[1], value, zero, *step * kNearHalf)) {
    return {value, "half_away", 0};
  }
  return plain;
}

}  // namespace optfarm::formats
