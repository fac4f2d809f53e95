// Pooling, resizing and local response normalization.

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/activations.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

Value Pooled(OpLowering& c, absl::string_view op, const Value& value,
             const Pool2DOptions& options) {
  return c.Add(op, op, {value}, [&](tensorflow::NodeDef* node) {
    SetInts(node, "ksize",
            {1, options.filter_height(), options.filter_width(), 1});
    SetInts(node, "strides", {1, options.stride_h(), options.stride_w(), 1});
    graph::SetString(node, "padding",
                     options.padding() == Padding::SAME ? "SAME" : "VALID");
  });
}

absl::Status LowerAveragePool(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_Pool2DOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const Value mean = Pooled(c, "AvgPool", c.Real(0), *options);
  c.SetReal(0, Activated(c, mean, options->fused_activation_function()),
            [&](tensorflow::NodeDef* node) {
              if (c.HasBytes(c.out(0)) && c.InputFitsOutput(0, 0)) {
                graph::SetString(node, "rounding", "half_away");
              }
            });
  return absl::OkStatus();
}

// The largest quantized value stands for the largest real one.
absl::Status LowerMaxPool(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_Pool2DOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const auto activation = options->fused_activation_function();
  if (c.InputFitsOutput(0, 0) && activation == ActivationFunctionType::NONE) {
    c.SetStored(0, Pooled(c, "MaxPool", c.Stored(0), *options));
    return absl::OkStatus();
  }
  const Value largest = Pooled(c, "MaxPool", c.Real(0), *options);
  c.SetReal(0, Activated(c, largest, activation));
  return absl::OkStatus();
}

absl::Status LowerL2Pool(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_Pool2DOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const Value squares = c.Add("Square", "squares", {c.Real(0)});
  const Value mean = Pooled(c, "AvgPool", squares, *options);
  const Value root = c.Add("Sqrt", "root", {mean});
  c.SetReal(0, Activated(c, root, options->fused_activation_function()));
  return absl::OkStatus();
}

void SetResizeModes(tensorflow::NodeDef* node, bool align_corners,
                    bool half_pixel_centers) {
  graph::SetBool(node, "align_corners", align_corners);
  if (half_pixel_centers) graph::SetBool(node, "half_pixel_centers", true);
}

absl::Status LowerResizeBilinear(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_ResizeBilinearOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  // XNNPACK's, which needs the size before the model runs.
  const bool is_integer = c.HasBytes(c.out(0)) && c.InputFitsOutput(0, 0) &&
                          c.Has(1) && c.subgraph().IsConstant(c.InputId(1));
  constexpr int kWeightBits = 11;
  c.SetReal(0,
            c.Add("ResizeBilinear", "resized", {c.Real(0), c.Stored(1)},
                  [&](tensorflow::NodeDef* node) {
                    SetResizeModes(node, options->align_corners(),
                                   options->half_pixel_centers());
                    if (is_integer) {
                      graph::SetInt(node, "weight_bits", kWeightBits);
                    }
                  }),
            [&](tensorflow::NodeDef* node) {
              if (is_integer) graph::SetString(node, "rounding", "half_up");
            });
  return absl::OkStatus();
}

absl::Status LowerResizeNearest(const OperatorRow&, OpLowering& c) {
  const auto* options =
      c.op().builtin_options_as_ResizeNearestNeighborOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const bool is_moved = c.InputFitsOutput(0, 0);
  const Value input = is_moved ? c.Stored(0) : c.Real(0);
  const Value resized =
      c.Add("ResizeNearestNeighbor", "resized", {input, c.Stored(1)},
            [&](tensorflow::NodeDef* node) {
              SetResizeModes(node, options->align_corners(),
                             options->half_pixel_centers());
            });
  is_moved ? c.SetStored(0, resized) : c.SetReal(0, resized);
  return absl::OkStatus();
}

absl::Status LowerLocalResponse(const OperatorRow&, OpLowering& c) {
  const auto* options =
      c.op().builtin_options_as_LocalResponseNormalizationOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  c.SetReal(0, c.Add("LRN", "LRN", {c.Real(0)}, [&](tensorflow::NodeDef* node) {
    graph::SetInt(node, "depth_radius", options->radius());
    graph::SetFloat(node, "bias", options->bias());
    graph::SetFloat(node, "alpha", options->alpha());
    graph::SetFloat(node, "beta", options->beta());
  }));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::AVERAGE_POOL_2D, 5, LowerAveragePool},
    {BuiltinOperator::MAX_POOL_2D, 5, LowerMaxPool},
    {BuiltinOperator::L2_POOL_2D, 2, LowerL2Pool},
    {BuiltinOperator::RESIZE_BILINEAR, 5, LowerResizeBilinear},
    {BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, 5, LowerResizeNearest},
    {BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, 2, LowerLocalResponse},
};

}  // namespace

absl::Span<const OperatorRow> WindowRows() { return kRows; }

}  // namespace optfarm::tflite
