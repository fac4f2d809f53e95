// Normalizations.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/formats/onnx/raising/window_attributes.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

// --- Batch norms -------------------------------------------------------------

// With the mean and the variance of the pictures at hand, as a node in training
// mode computes them. ONNX's BatchNormalization has that for training only.
ValueId NormalizedByBatch(NodeRaiser& n, const AxisOrder& order, int rank,
                          float epsilon) {
  std::vector<int64_t> axes = {0}, spatial;
  for (int axis = 2; axis < rank; ++axis) {
    axes.push_back(axis);
    spatial.push_back(axis - 1);
  }
  const ValueId x = n.In(0, order);
  const ValueId centered =
      n.Emit("Sub", {x, n.Reduce("ReduceMean", x, axes, true)});
  const ValueId variance =
      n.Reduce("ReduceMean", n.Emit("Mul", {centered, centered}), axes, true);
  const ValueId deviation = n.Emit(
      "Sqrt", {n.Emit("Add", {variance, n.Number(n.InType(0), epsilon)})});
  const ValueId scaled = n.Emit("Mul", {n.Emit("Div", {centered, deviation}),
                                        n.Unsqueeze(n.In(1), spatial)});
  return n.Emit("Add", {scaled, n.Unsqueeze(n.In(2), spatial)});
}

// x, scale, offset, mean, variance
absl::Status FusedBatchNorm(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(5));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_training,
                           graph::GetBoolOr(n.def(), "is_training", true));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(n.def(), "epsilon", 0.0001f));
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first, HasChannelsFirst(n));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  const AxisOrder order = channels_first ? AxisOrder() : ChannelsSecond(rank);
  if (is_training) {
    n.Set(NormalizedByBatch(n, order, rank, epsilon), order);
    return absl::OkStatus();
  }
  n.Set(n.Emit("BatchNormalization",
               {n.In(0, order), n.In(1), n.In(2), n.In(3), n.In(4)},
               {{"epsilon", epsilon}}),
        order);
  return absl::OkStatus();
}

// t, mean, variance, beta, gamma
absl::Status GlobalBatchNorm(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(5));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloat(n.def(), "variance_epsilon"));
  OPTFARM_ASSIGN_OR_RETURN(
      const bool is_scaled,
      graph::GetBool(n.def(), "scale_after_normalization"));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  ValueId gamma = n.In(4);
  if (!is_scaled) {
    const graph::PartialShape& shape = n.InShape(1);
    if (!shape.is_static() || shape.rank() != 1) {
      return absl::FailedPreconditionError(
          "the number of its channels is not known before the graph runs");
    }
    gamma = n.graph().AddFloats(
        std::vector<float>(static_cast<size_t>(shape.dim(0)), 1.0f), "ones");
  }
  const AxisOrder order = ChannelsSecond(rank);
  n.Set(n.Emit("BatchNormalization",
               {n.In(0, order), gamma, n.In(3), n.In(1), n.In(2)},
               {{"epsilon", epsilon}}),
        order);
  return absl::OkStatus();
}

// ONNX divides alpha by the number of channels in a window.
absl::Status LocalResponse(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t radius,
                           graph::GetIntOr(n.def(), "depth_radius", 5));
  OPTFARM_ASSIGN_OR_RETURN(const float bias,
                           graph::GetFloatOr(n.def(), "bias", 1));
  OPTFARM_ASSIGN_OR_RETURN(const float alpha,
                           graph::GetFloatOr(n.def(), "alpha", 1));
  OPTFARM_ASSIGN_OR_RETURN(const float beta,
                           graph::GetFloatOr(n.def(), "beta", 0.5f));
  const int64_t size = 2 * radius + 1;
  const AxisOrder order = ChannelsSecond(4);
  n.Set(n.Emit("LRN", {n.In(0, order)},
               {{"size", size},
                {"bias", bias},
                {"alpha", alpha * static_cast<float>(size)},
                {"beta", beta}}),
        order);
  return absl::OkStatus();
}

// --- Over the last axes ------------------------------------------------------

// (x - mean) / sqrt(variance + epsilon) * scale + offset over the axes from
// `axis` on; an op of its own since opset 17.
absl::Status LayerNorm(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(n.def(), "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(n.def(), "axis", -1));
  const DataType type = n.InType(0);
  const ValueId x = n.In(0);
  // One without elements is not given.
  const bool has_bias =
      n.input_count() > 2 && n.InShape(2).elements().value_or(1) != 0;
  if (n.opset() >= 17) {
    std::vector<ValueId> inputs = {x, n.In(1)};
    if (has_bias) inputs.push_back(n.In(2));
    n.Set(n.Emit("LayerNormalization", std::move(inputs),
                 {{"axis", axis}, {"epsilon", epsilon}}));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  OPTFARM_ASSIGN_OR_RETURN(const int first, n.Axis(axis, rank));
  std::vector<int64_t> axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  const ValueId centered =
      n.Emit("Sub", {x, n.Reduce("ReduceMean", x, axes, true)});
  const ValueId variance =
      n.Reduce("ReduceMean", n.Emit("Mul", {centered, centered}), axes, true);
  const ValueId deviation =
      n.Emit("Sqrt", {n.Emit("Add", {variance, n.Number(type, epsilon)})});
  ValueId result =
      n.Emit("Mul", {n.Emit("Div", {centered, deviation}), n.In(1)});
  if (has_bias) result = n.Emit("Add", {result, n.In(2)});
  n.Set(result);
  return absl::OkStatus();
}

// x / sqrt(mean(x * x) + epsilon) * scale.
absl::Status RmsNorm(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(n.def(), "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(n.def(), "axis", -1));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  OPTFARM_ASSIGN_OR_RETURN(const int first, n.Axis(axis, rank));
  std::vector<int64_t> axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  const ValueId x = n.In(0);
  const ValueId square =
      n.Reduce("ReduceMean", n.Emit("Mul", {x, x}), axes, true);
  const ValueId size =
      n.Emit("Sqrt", {n.Emit("Add", {square, n.Number(n.InType(0), epsilon)})});
  n.Set(n.Emit("Mul", {n.Emit("Div", {x, size}), n.In(1)}));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"FusedBatchNorm", FusedBatchNorm},
    {"FusedBatchNormV2", FusedBatchNorm},
    {"FusedBatchNormV3", FusedBatchNorm},
    {"BatchNormWithGlobalNormalization", GlobalBatchNorm},
    {"LRN", LocalResponse},
    {"LayerNorm", LayerNorm},
    {"RmsNorm", RmsNorm},
};

}  // namespace

absl::Span<const RaisingRow> NormalizationRaisings() { return kRows; }

}  // namespace optfarm::formats
