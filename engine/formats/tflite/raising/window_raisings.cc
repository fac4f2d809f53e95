// Transposed convolutions, and pools whose padding SAME does not express.

#include <tflite/schema_generated.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/layer_weights.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/formats/tflite/raising/transposed_filter.h"
#include "engine/formats/tflite/raising/windows.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::PartialShape;
using tflite::BuiltinOperator;

// Larger images are none.
constexpr int64_t kLargestImage = 1 << 16;

struct TransposedWindow {
  // Of the window with the gaps of its dilations.
  Window window;
  int64_t groups = 1;
  std::array<int64_t, 2> dilation = {1, 1};
  // Rows and columns of the result before padding cuts its borders off, beyond
  // the input's times the stride.
  std::array<int64_t, 2> more = {0, 0};
};

absl::StatusOr<TransposedWindow> ReadTransposedWindow(const NodeRaiser& node,
                                                      const Constant& filter) {
  tensorflow::NodeDef def = node.def();
  graph::SetString(&def, "padding", "EXPLICIT");
  TransposedWindow t;
  OPTFARM_ASSIGN_OR_RETURN(t.window, ReadWindow(def));
  OPTFARM_ASSIGN_OR_RETURN(t.groups, graph::GetIntOr(def, "groups", 1));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> more,
      graph::GetIntsOr(def, "output_padding", std::vector<int64_t>{0, 0}));
  const PartialShape& from = node.ShapeOfInput(0);
  if (filter.dims.size() != 4 || more.size() != 2 || !from.has_rank() ||
      from.rank() != 4) {
    return absl::FailedPreconditionError(
        "the ranks of its inputs are not known, or not 4");
  }
  std::swap(t.dilation, t.window.dilation);
  for (int i = 0; i < 2; ++i) {
    const int64_t size = filter.dims[i];
    if (from.dim(i + 1) == 0 || from.dim(i + 1) > kLargestImage || size < 1 ||
        size > kLargestImage || t.dilation[i] < 1 ||
        t.dilation[i] > kLargestImage || t.window.stride[i] < 1 ||
        t.window.stride[i] > kLargestImage || more[i] < 0 ||
        more[i] > kLargestImage) {
      return absl::FailedPreconditionError("its sizes are out of range");
    }
    t.window.size[i] = (size - 1) * t.dilation[i] + 1;
    t.more[i] = t.window.size[i] - t.window.stride[i] + more[i];
  }
  return t;
}

// Whether SAME cuts the same borders off.
bool IsSame(const TransposedWindow& t) {
  for (int i = 0; i < 2; ++i) {
    const int64_t cut = t.window.size[i] - t.window.stride[i];
    if (t.more[i] != t.window.before[i] + t.window.after[i] || cut < 0 ||
        cut / 2 != t.window.before[i]) {
      return false;
    }
  }
  return true;
}

// The sizes of the result: constant, or computed from the input's, which must
// be scaled and increased by constants for it.
TensorId TransposedSizes(NodeRaiser& node, const TransposedWindow& t,
                         bool is_same, TensorId image, int64_t channels,
                         PartialShape* made) {
  const PartialShape& from = node.ShapeOfInput(0);
  const std::vector<int64_t> factors = {1, t.window.stride[0],
                                        t.window.stride[1], 0};
  const std::vector<int64_t> more = {0, is_same ? 0 : t.more[0],
                                     is_same ? 0 : t.more[1], channels};
  std::vector<int64_t> sizes;
  bool is_known = true;
  for (int i = 0; i < 4; ++i) {
    const bool is_open = i < 3 && from.dim(i) < 0;
    is_known = is_known && !is_open;
    sizes.push_back(is_open ? graph::kUnknownDim
                            : (i < 3 ? from.dim(i) * factors[i] : 0) + more[i]);
  }
  *made = PartialShape(sizes);
  if (is_known) return node.Int32s(sizes);
  const TensorId ones = node.Int32s(factors);
  const PartialShape four = PartialShape::Vector(4);
  const TensorId shape =
      node.EmitBetween(BuiltinOperator::SHAPE, {image}, ones, four);
  const TensorId scaled =
      node.EmitBetween(BuiltinOperator::MUL, {shape, ones}, ones, four);
  return node.EmitBetween(BuiltinOperator::ADD, {scaled, node.Int32s(more)},
                          ones, four);
}

// Cuts off what padding takes from the borders.
void FinishCut(NodeRaiser& node, const Layer& layer, const TransposedWindow& t,
               TensorId full) {
  const Window& window = t.window;
  OperatorOptions options;
  // Batch and channels stay whole, and so does an end that nothing is cut off.
  options.begin_mask = options.end_mask = 0b1001;
  for (int i = 0; i < 2; ++i) {
    if (window.after[i] == 0) options.end_mask |= 2 << i;
  }
  node.Finish(layer, BuiltinOperator::STRIDED_SLICE,
              {full, node.Int32s({0, window.before[0], window.before[1], 0}),
               node.Int32s({0, -window.after[0], -window.after[1], 0}),
               node.Int32s({1, 1, 1, 1})},
              options);
}

// Filter HWOI, image NHWC.
absl::Status RaiseConv2DTranspose(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const Constant filter,
                           node.view().ConstantAt(node.input(1)));
  OPTFARM_ASSIGN_OR_RETURN(const TransposedWindow t,
                           ReadTransposedWindow(node, filter));
  LayerWeights weights;
  OPTFARM_ASSIGN_OR_RETURN(weights.constant,
                           TransposedFilter(filter, t.groups, t.dilation));
  const int64_t channels = weights.constant.dims[0];
  LayerRequest request;
  request.rule =
      CanMultiplyQuantized(weights, node.tensors().shifts_to_signed())
          ? ScaleRule::kFree
          : ScaleRule::kFloatOnly;
  request.inputs = {node.input(0)};
  request.takes_bias = true;
  const Layer layer = node.Begin(request);
  bool is_hybrid = false;
  const TensorId matrix =
      WeightsTensor(node, layer, std::move(weights), &is_hybrid);
  const bool is_same = IsSame(t);
  PartialShape made;
  const TensorId sizes =
      TransposedSizes(node, t, is_same, layer.inputs[0], channels, &made);
  std::vector<TensorId> inputs = {sizes, matrix, layer.inputs[0]};
  if (layer.bias.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(const TensorId bias,
                             BiasTensor(node, layer, matrix, channels));
    inputs.push_back(bias);
  }
  OperatorOptions options;
  t.window.SetOptions(&options);
  options.same_padding = is_same;
  if (is_same || !t.window.pads()) {
    node.Finish(layer, BuiltinOperator::TRANSPOSE_CONV, std::move(inputs),
                options);
    return absl::OkStatus();
  }
  const TensorId full =
      node.EmitBetween(BuiltinOperator::TRANSPOSE_CONV, std::move(inputs),
                       layer.inputs[0], made, options);
  if (layer.is_quantized) {
    node.draft().tensors[full].quantization = layer.scales;
  }
  FinishCut(node, layer, t, full);
  return absl::OkStatus();
}

// A pool of images [batch, channels, height, width].
struct ChannelsFirstPool {
  Window window;
  bool is_max = false;
  // Of an average: cells around the image that count; not those that only
  // rounding up brings.
  std::array<int64_t, 2> counted_before = {0, 0};
  std::array<int64_t, 2> counted_after = {0, 0};
};

absl::StatusOr<ChannelsFirstPool> ReadPool(const NodeRaiser& node) {
  ChannelsFirstPool pool;
  OPTFARM_ASSIGN_OR_RETURN(const std::string kind,
                           graph::GetStringOr(node.def(), "kind", "MAX"));
  OPTFARM_ASSIGN_OR_RETURN(const auto size,
                           graph::GetInts(node.def(), "kernel"));
  OPTFARM_ASSIGN_OR_RETURN(const auto stride,
                           graph::GetInts(node.def(), "strides"));
  OPTFARM_ASSIGN_OR_RETURN(const auto dilation,
                           graph::GetInts(node.def(), "dilations"));
  OPTFARM_ASSIGN_OR_RETURN(const auto pads, graph::GetInts(node.def(), "pads"));
  OPTFARM_ASSIGN_OR_RETURN(const bool rounds_up,
                           graph::GetBoolOr(node.def(), "ceil_mode", false));
  OPTFARM_ASSIGN_OR_RETURN(
      const bool counts_padding,
      graph::GetBoolOr(node.def(), "count_include_pad", false));
  pool.is_max = kind == "MAX";
  if (size.size() != 2 || stride.size() != 2 || pads.size() != 4 ||
      dilation != std::vector<int64_t>{1, 1} ||
      !node.ShapeOfInput(0).is_static() || !node.ShapeOfOutput().is_static()) {
    return absl::UnimplementedError(
        "pools are written of images of known size, without dilation");
  }
  const auto is_image = [](const PartialShape& shape) {
    return shape.rank() == 4 && shape.dim(2) <= kLargestImage / 16 &&
           shape.dim(3) <= kLargestImage / 16;
  };
  const auto is_small = [](const std::vector<int64_t>& numbers, int64_t least) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int64_t number) {
      return number >= least && number <= kLargestImage;
    });
  };
  if (!is_image(node.ShapeOfInput(0)) || !is_image(node.ShapeOfOutput()) ||
      !is_small(size, 1) || !is_small(stride, 1) || !is_small(pads, 0)) {
    return absl::UnimplementedError("its sizes are out of range");
  }
  pool.window.size = {size[0], size[1]};
  pool.window.stride = {stride[0], stride[1]};
  pool.window.before = {pads[0], pads[1]};
  pool.window.after = {pads[2], pads[3]};
  if (counts_padding) {
    pool.counted_before = pool.window.before;
    pool.counted_after = pool.window.after;
  }
  for (int i = 0; rounds_up && i < 2; ++i) {
    const int64_t reach =
        (node.ShapeOfOutput().dim(i + 2) - 1) * stride[i] + size[i];
    pool.window.after[i] =
        std::max(pool.window.after[i],
                 reach - node.ShapeOfInput(0).dim(i + 2) - pads[i]);
  }
  return pool;
}

// How much larger an average is that leaves out what does not count, by place.
std::vector<float> PaddingFactors(const ChannelsFirstPool& pool,
                                  const PartialShape& image,
                                  const PartialShape& result) {
  const Window& window = pool.window;
  std::array<std::vector<int64_t>, 2> counts;
  for (int i = 0; i < 2; ++i) {
    for (int64_t place = 0; place < result.dim(i + 2); ++place) {
      const int64_t begin = place * window.stride[i] - window.before[i];
      const int64_t end = std::min(begin + window.size[i],
                                   image.dim(i + 2) + pool.counted_after[i]);
      counts[i].push_back(
          std::max<int64_t>(end - std::max(begin, -pool.counted_before[i]), 1));
    }
  }
  std::vector<float> factors;
  const double whole = static_cast<double>(window.size[0] * window.size[1]);
  for (int64_t rows : counts[0]) {
    for (int64_t columns : counts[1]) {
      factors.push_back(
          static_cast<float>(whole / static_cast<double>(rows * columns)));
    }
  }
  return factors;
}

absl::Status RaiseWindowPool(NodeRaiser& node) {
  for (const graph::Use& use : node.node().uses()) {
    if (!use.is_control() && use.port > 0) {
      return absl::UnimplementedError("the places of maxima have no operator");
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(ChannelsFirstPool pool, ReadPool(node));
  const PartialShape image = node.ShapeOfInput(0);
  const PartialShape result = node.ShapeOfOutput();
  const ChannelsFirstPool stated = pool;
  const auto behind = [](const PartialShape& shape) {
    return PartialShape(
        {shape.dim(0), shape.dim(2), shape.dim(3), shape.dim(1)});
  };
  TensorId x = node.Tensor(0);
  x = node.EmitBetween(BuiltinOperator::TRANSPOSE,
                       {x, node.Int32s({0, 2, 3, 1})}, x, behind(image));
  if (pool.window.pads()) x = PadFor(node, x, pool.is_max, &pool.window);
  OperatorOptions options;
  pool.window.SetOptions(&options);
  x = node.EmitBetween(pool.is_max ? BuiltinOperator::MAX_POOL_2D
                                   : BuiltinOperator::AVERAGE_POOL_2D,
                       {x}, x, behind(result), options);
  const bool all_count = stated.counted_before == stated.window.before &&
                         stated.counted_after == stated.window.after;
  if (!pool.is_max && !all_count) {
    const TensorId factors = node.Floats({1, result.dim(2), result.dim(3), 1},
                                         PaddingFactors(stated, image, result));
    x = node.EmitBetween(BuiltinOperator::MUL, {x, factors}, x, behind(result));
  }
  node.Emit(BuiltinOperator::TRANSPOSE, {x, node.Int32s({0, 3, 1, 2})});
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Conv2DTranspose", RaiseConv2DTranspose},
    {"WindowPool", RaiseWindowPool},
};

}  // namespace

absl::Span<const RaisingRow> WindowRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
