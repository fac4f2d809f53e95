// Normalizations, taken apart where there is no operator.

#include <tflite/schema_generated.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::PartialShape;
using tflite::BuiltinOperator;

PartialShape WithOnes(PartialShape shape, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes) shape.set_dim(static_cast<int>(axis), 1);
  return shape;
}

// Steps of a normalization over some axes.
class Normalizer {
 public:
  Normalizer(NodeRaiser& node, PartialShape shape, std::vector<int64_t> axes)
      : node_(node),
        shape_(std::move(shape)),
        reduced_(WithOnes(shape_, axes)),
        axes_(node.Int32s(axes)) {}

  TensorId Step(BuiltinOperator op, std::vector<TensorId> inputs) {
    const TensorId like = inputs[0];
    return node_.EmitBetween(op, std::move(inputs), like, shape_);
  }
  TensorId Reduced(BuiltinOperator op, std::vector<TensorId> inputs) {
    const TensorId like = inputs[0];
    return node_.EmitBetween(op, std::move(inputs), like, reduced_);
  }
  TensorId Mean(TensorId x) {
    OperatorOptions options;
    options.keep_dims = true;
    return node_.EmitBetween(BuiltinOperator::MEAN, {x, axes_}, x, reduced_,
                             options);
  }
  // 1 / sqrt(square + epsilon)
  TensorId Inverse(TensorId square, float epsilon) {
    return Reduced(
        BuiltinOperator::RSQRT,
        {Reduced(BuiltinOperator::ADD, {square, node_.Float(epsilon)})});
  }
  // (x - mean) / deviation
  TensorId Whitened(TensorId x, float epsilon) {
    const TensorId mean = Mean(x);
    const TensorId centered = Step(BuiltinOperator::SUB, {x, mean});
    const TensorId square =
        Mean(Step(BuiltinOperator::MUL, {centered, centered}));
    return Step(BuiltinOperator::MUL, {centered, Inverse(square, epsilon)});
  }

 private:
  NodeRaiser& node_;
  PartialShape shape_;
  PartialShape reduced_;
  TensorId axes_;
};

// Output ports besides the first, which no operator gives.
absl::Status CheckOneOutput(const NodeRaiser& node) {
  for (const graph::Use& use : node.node().uses()) {
    if (!use.is_control() && use.port > 0) {
      return absl::UnimplementedError(absl::StrCat(
          "its output ", use.port, " is used, only the first is written"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> AxesFrom(const NodeRaiser& node,
                                              int64_t axis) {
  OPTFARM_ASSIGN_OR_RETURN(const int first, node.AxisOf(axis, 0));
  std::vector<int64_t> axes;
  for (int i = first; i < node.ShapeOfInput(0).rank(); ++i) axes.push_back(i);
  return axes;
}

bool HasElements(const NodeRaiser& node, int i) {
  return i < node.input_count() && node.ShapeOfInput(i).elements() != 0;
}

// x times scale plus bias, of which either may be missing.
void FinishAffine(NodeRaiser& node, TensorId x, int scale, int bias) {
  const PartialShape& shape = node.ShapeOfOutput();
  if (HasElements(node, scale)) {
    x = node.EmitBetween(BuiltinOperator::MUL, {x, node.Tensor(scale)}, x,
                         shape);
  }
  if (HasElements(node, bias)) {
    x = node.EmitBetween(BuiltinOperator::ADD, {x, node.Tensor(bias)}, x,
                         shape);
  }
  node.SetOutput(x);
}

absl::Status RaiseLayerNorm(NodeRaiser& node) {
  OPTFARM_RETURN_IF_ERROR(CheckOneOutput(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node.def(), "axis", -1));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(node.def(), "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes, AxesFrom(node, axis));
  const TensorId x = node.Tensor(0);
  Normalizer normalizer(node, node.ShapeOfInput(0), std::move(axes));
  FinishAffine(node, normalizer.Whitened(x, epsilon), 1, 2);
  return absl::OkStatus();
}

absl::Status RaiseRmsNorm(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node.def(), "axis", -1));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(node.def(), "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes, AxesFrom(node, axis));
  const TensorId x = node.Tensor(0);
  Normalizer normalizer(node, node.ShapeOfInput(0), std::move(axes));
  const TensorId square =
      normalizer.Mean(normalizer.Step(BuiltinOperator::MUL, {x, x}));
  const TensorId scaled = normalizer.Step(
      BuiltinOperator::MUL, {x, normalizer.Inverse(square, epsilon)});
  FinishAffine(node, scaled, 1, node.input_count());
  return absl::OkStatus();
}

// Mean and deviation of each image and channel.
absl::Status RaiseInstanceNorm(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(node.def(), "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first,
                           graph::IsNchw(node.def()));
  const PartialShape& shape = node.ShapeOfInput(0);
  if (!shape.has_rank() || shape.rank() < 3) {
    return absl::FailedPreconditionError("its input must be an image");
  }
  const bool channels_last = !channels_first;
  std::vector<int64_t> axes;
  for (int i = channels_last ? 1 : 2;
       i < shape.rank() - (channels_last ? 1 : 0); ++i) {
    axes.push_back(i);
  }
  const TensorId x = node.Tensor(0);
  Normalizer normalizer(node, shape, std::move(axes));
  const TensorId whitened = normalizer.Whitened(x, epsilon);
  if (channels_last) {
    FinishAffine(node, whitened, 1, 2);
    return absl::OkStatus();
  }
  // One number for each channel, in front of the image's dimensions.
  std::vector<int64_t> dims(shape.rank() - 1, 1);
  TensorId result = whitened;
  for (const int input : {1, 2}) {
    OPTFARM_ASSIGN_OR_RETURN(const Constant constant,
                             node.view().ConstantAt(node.input(input)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> values,
                             RealValues(constant));
    dims[0] = static_cast<int64_t>(values.size());
    result = node.EmitBetween(
        input == 1 ? BuiltinOperator::MUL : BuiltinOperator::ADD,
        {result, node.Floats(dims, values)}, result, shape);
  }
  node.SetOutput(result);
  return absl::OkStatus();
}

// A batch norm with constant statistics: one product, one sum.
absl::Status RaiseBatchNorm(NodeRaiser& node) {
  OPTFARM_RETURN_IF_ERROR(CheckOneOutput(node));
  OPTFARM_ASSIGN_OR_RETURN(const bool trains,
                           graph::GetBoolOr(node.def(), "is_training", true));
  if (!graph::IsNhwc(node.def())) {
    return absl::UnimplementedError("its data_format is NCHW");
  }
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(node.def(), "epsilon", 1e-4f));
  if (trains) {
    // Statistics of the data, over all but the channels.
    const TensorId x = node.Tensor(0);
    if (!node.ShapeOfInput(0).has_rank() || node.ShapeOfInput(0).rank() != 4) {
      return absl::FailedPreconditionError("its input must be an image");
    }
    Normalizer normalizer(node, node.ShapeOfInput(0), {0, 1, 2});
    FinishAffine(node, normalizer.Whitened(x, epsilon), 1, 2);
    return absl::OkStatus();
  }
  std::vector<std::vector<float>> parameters;
  for (int i = 1; i <= 4; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Constant constant,
                             node.view().ConstantAt(node.input(i)));
    OPTFARM_ASSIGN_OR_RETURN(std::vector<float> values, RealValues(constant));
    if (i > 1 && values.size() != parameters[0].size()) {
      return absl::InvalidArgumentError("its parameters differ in size");
    }
    parameters.push_back(std::move(values));
  }
  const int64_t channels = static_cast<int64_t>(parameters[0].size());
  std::vector<float> scale(channels), offset(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    offset[c] = parameters[1][c] - parameters[2][c] * scale[c];
  }
  LayerRequest request;
  request.inputs = {node.input(0)};
  request.takes_activation = true;
  const Layer layer = node.Begin(request);
  const TensorId scaled = node.EmitBetween(
      BuiltinOperator::MUL, {layer.inputs[0], node.Floats({channels}, scale)},
      layer.inputs[0], node.ShapeOfInput(0));
  node.Finish(layer, BuiltinOperator::ADD,
              {scaled, node.Floats({channels}, offset)});
  return absl::OkStatus();
}

absl::Status RaiseLrn(NodeRaiser& node) {
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t radius,
                           graph::GetIntOr(node.def(), "depth_radius", 5));
  options.radius = static_cast<int>(radius);
  OPTFARM_ASSIGN_OR_RETURN(options.bias,
                           graph::GetFloatOr(node.def(), "bias", 1));
  OPTFARM_ASSIGN_OR_RETURN(options.alpha,
                           graph::GetFloatOr(node.def(), "alpha", 1));
  OPTFARM_ASSIGN_OR_RETURN(options.beta,
                           graph::GetFloatOr(node.def(), "beta", 0.5f));
  node.Emit(BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, {node.Tensor(0)},
            options);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"LayerNorm", RaiseLayerNorm},
    {"RmsNorm", RaiseRmsNorm},
    {"InstanceNorm", RaiseInstanceNorm},
    {"FusedBatchNorm", RaiseBatchNorm},
    {"FusedBatchNormV2", RaiseBatchNorm},
    {"FusedBatchNormV3", RaiseBatchNorm},
    {"LRN", RaiseLrn},
};

}  // namespace

absl::Span<const RaisingRow> NormalizationRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
