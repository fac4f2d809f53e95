#include "engine/transforms/quantizing/layer_conditions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/nodes/convolution_weights.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::PartialShape;

// Whether a list attribute is 1, y, x, 1, or missing.
bool SlidesOverSpace(const graph::Node& node, absl::string_view attribute) {
  const auto values = graph::GetIntsOr(node.def(), attribute, {1, 1, 1, 1});
  return values.ok() && values->size() == 4 && (*values)[0] == 1 &&
         (*values)[3] == 1;
}

// Whether a Mean is taken over axes 1 and 2, and nothing else.
bool IsOverSpace(const graph::ShapeMap& shapes, const graph::Node& mean) {
  if (mean.inputs().size() != 2) return false;
  const graph::PartialValue* axes = shapes.ValueOf(mean.inputs()[1]);
  if (axes == nullptr || !axes->is_known() || axes->elements.size() != 2) {
    return false;
  }
  std::vector<int64_t> at;
  for (const auto& axis : axes->elements) {
    at.push_back(*axis < 0 ? *axis + 4 : *axis);
  }
  std::sort(at.begin(), at.end());
  return at == std::vector<int64_t>{1, 2};
}

}  // namespace

bool IsProduct(const graph::Node& node) {
  return graph::IsFloatProduct(node.op());
}

bool IsSum(const graph::Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kAdd);
}

bool IsRangePreserving(const graph::Node& node) {
  const graph::OpRow& row = graph::RowOf(node.op());
  return row.quantized != nullptr &&
         row.flow != graph::ValueFlow::kArithmetic &&
         row.activation == graph::Activation::kNone;
}

bool IsDataMovement(const graph::Node& node) {
  return graph::RowOf(node.op()).moves_bytes;
}

Filling FillingOf(const Graph& graph, const graph::Node& movement) {
  if (!graph::HasRole(movement.op(), graph::OpRole::kPad)) return {};
  Filling filling{.is_needed = true};
  if (movement.inputs().size() != 3) {
    filling.is_zero = true;
    return filling;
  }
  const graph::Node& value = graph.node(movement.inputs()[2].node);
  if (!IsConst(value)) return filling;
  const auto number = FloatView::Of(value);
  filling.is_zero = number.ok() && number->values().size() == 1 &&
                    number->values()[0] == 0.0f;
  return filling;
}

std::vector<int> MovedInputs(const graph::Node& node) {
  const graph::OpRow& row = graph::RowOf(node.op());
  if (row.role != graph::OpRole::kConcat) return {0};
  std::vector<int> joined;
  const int first = row.has_axis_first ? 1 : 0;
  const int count = static_cast<int>(node.inputs().size()) - 1;
  for (int i = 0; i < count; ++i) joined.push_back(first + i);
  return joined;
}

std::string WhyFloatByWindow(const graph::Node& node) {
  if (!graph::IsNhwc(node.def())) {
    return absl::StrCat("data_format ", graph::DataFormatText(node.def()),
                        " has no 8-bit kernel");
  }
  if (!graph::IsSameOrValid(node.def())) {
    return absl::StrCat("padding '", graph::PaddingText(node.def()),
                        "' has no 8-bit kernel");
  }
  for (const char* attribute : {"strides", "dilations", "ksize"}) {
    if (!SlidesOverSpace(node, attribute)) {
      return absl::StrCat("its ", attribute, " cover batch or channels");
    }
  }
  return "";
}

bool SumsFit(const graph::Node& product, const FloatView& weights,
             int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  const absl::Span<const float> values = weights.values();
  const size_t row = values.size() / count;
  constexpr double kMost = (1 << 30) / 255.0 / 127.0;
  if (static_cast<double>(row) < kMost) return true;
  const bool channels_first =
      graph::GetBoolOr(product.def(), "transpose_b", false).value_or(false);
  std::vector<double> sums(count, 0.0), largest(count, 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = channels_first ? i / row : i % count;
    sums[c] += std::abs(values[i]);
    largest[c] = std::max(largest[c], double{std::abs(values[i])});
  }
  for (size_t c = 0; c < count; ++c) {
    // Half a step more for each weight, which rounding may add.
    const double steps =
        largest[c] > 0 ? sums[c] / largest[c] + 0.5 * row / 127.0 : 0.0;
    if (steps > kMost) return false;
  }
  return true;
}

bool IsTrainedRange(const Graph& graph, const graph::Node& node, float most) {
  if (!graph::IsFakeQuantize(node.op()) || node.inputs().size() != 3) {
    return false;
  }
  std::vector<float> ends;
  for (int i : {1, 2}) {
    const graph::Node& end = graph.node(node.inputs()[i].node);
    if (!IsConst(end)) return false;
    const auto value = FloatView::Of(end);
    if (!value.ok() || value->values().size() != 1) return false;
    ends.push_back(value->values()[0]);
  }
  const auto bits = graph::GetIntOr(node.def(), "num_bits", 8);
  const auto is_narrow = graph::GetBoolOr(node.def(), "narrow_range", false);
  return bits.ok() && *bits == 8 && is_narrow.ok() && !*is_narrow &&
         ends[0] <= 0 && ends[1] >= 0 && ends[0] < ends[1] && ends[1] <= most &&
         std::isfinite(ends[1] - ends[0]);
}

std::optional<PictureSize> MeanOverPicture(const graph::ShapeMap& shapes,
                                           NodeId id, const graph::Node& node) {
  const graph::OpRole role = graph::RowOf(node.op()).role;
  if (role != graph::OpRole::kMean && role != graph::OpRole::kAveragePool) {
    return std::nullopt;
  }
  if (node.inputs().empty()) return std::nullopt;
  const PartialShape& in = shapes.Of(node.inputs()[0]);
  if (!in.has_rank() || in.rank() != 4) return std::nullopt;
  // 255 times 127 times so many products (34).
  constexpr int64_t kMost = (1 << 30) / (255 * 127);
  for (int axis : {1, 2, 3}) {
    if (in.dim(axis) < 1 || in.dim(axis) > kMost) return std::nullopt;
  }
  if (in.dim(1) * in.dim(2) > kMost) return std::nullopt;
  if (role == graph::OpRole::kMean) {
    if (!IsOverSpace(shapes, node)) return std::nullopt;
  } else {
    const auto size = graph::GetInts(node.def(), "ksize");
    const PartialShape& out = shapes.Of({id, 0});
    if (!WhyFloatByWindow(node).empty() || !size.ok() ||
        (*size)[1] != in.dim(1) || (*size)[2] != in.dim(2) || !out.has_rank() ||
        out.rank() != 4 || out.dim(1) != 1 || out.dim(2) != 1) {
      return std::nullopt;
    }
  }
  return PictureSize{in.dim(1), in.dim(2)};
}

std::optional<std::vector<float>> ChannelNumbers(const graph::Node& node,
                                                 int64_t channels, int rank) {
  if (!IsConst(node) || channels < 1) return std::nullopt;
  const auto view = FloatView::Of(node);
  if (!view.ok() || view->shape().rank() > rank) return std::nullopt;
  const auto count = static_cast<int64_t>(view->values().size());
  const int last = view->shape().rank() - 1;
  if (count != 1 &&
      (count != channels || last < 0 || view->shape().dim(last) != channels)) {
    return std::nullopt;
  }
  if (!absl::c_all_of(view->values(),
                      [](float v) { return std::isfinite(v); })) {
    return std::nullopt;
  }
  std::vector<float> numbers(view->values().begin(), view->values().end());
  if (count == 1) numbers.assign(static_cast<size_t>(channels), numbers[0]);
  return numbers;
}

}  // namespace optfarm::transforms
