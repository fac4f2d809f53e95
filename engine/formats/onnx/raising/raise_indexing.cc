// Looking up, choosing and writing at indices.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

absl::Status GatherAlong(NodeRaiser& n, int64_t axis) {
  n.Set(n.Emit("Gather", {n.In(0), n.In(1)}, {{"axis", axis}}));
  return absl::OkStatus();
}

absl::Status Gather(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  return GatherAlong(n, 0);
}

absl::Status GatherV2(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, n.Integer(2, "the axis"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                           graph::GetIntOr(n.def(), "batch_dims", 0));
  if (batch_dims == 0) return GatherAlong(n, axis);
  // GatherND looks up the first axis behind the batches.
  OPTFARM_ASSIGN_OR_RETURN(const int index_rank, n.Rank(1));
  if (axis != batch_dims || batch_dims < 0 || batch_dims > index_rank) {
    return absl::UnimplementedError(
        absl::StrCat("ONNX has no lookup with ", batch_dims,
                     " batch axes along axis ", axis));
  }
  const ValueId indices = n.Unsqueeze(n.InAsInt64(1), {-1});
  n.Set(n.Emit("GatherND", {n.In(0), indices}, {{"batch_dims", batch_dims}}));
  return absl::OkStatus();
}

absl::Status GatherNd(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  const ValueId indices = n.Cast(n.In(1), n.InType(1), tensorflow::DT_INT64);
  n.Set(n.Emit("GatherND", {n.In(0), indices}));
  return absl::OkStatus();
}

absl::Status ScatterNd(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  const ValueId zeros =
      n.Emit("Expand", {n.Number(n.InType(1), 0), n.InAsInt64(2)});
  const ValueId indices = n.Cast(n.In(0), n.InType(0), tensorflow::DT_INT64);
  std::vector<OnnxAttribute> attributes;
  // Places that are named twice add up.
  if (n.opset() >= 16) attributes.push_back({"reduction", std::string("add")});
  n.Set(n.Emit("ScatterND", {zeros, indices, n.In(1)}, std::move(attributes)));
  return absl::OkStatus();
}

absl::Status TensorScatterUpdate(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  const ValueId indices = n.Cast(n.In(1), n.InType(1), tensorflow::DT_INT64);
  n.Set(n.Emit("ScatterND", {n.In(0), indices, n.In(2)}));
  return absl::OkStatus();
}

absl::Status OneHot(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(4));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(n.def(), "axis", -1));
  const ValueId off = n.Unsqueeze(n.In(3), {0});
  const ValueId on = n.Unsqueeze(n.In(2), {0});
  const ValueId values = n.Emit("Concat", {off, on}, {{"axis", int64_t{0}}});
  const ValueId indices = n.Cast(n.In(0), n.InType(0), tensorflow::DT_INT64);
  const ValueId depth = n.Cast(n.In(1), n.InType(1), tensorflow::DT_INT64);
  n.Set(n.Emit("OneHot", {indices, depth, values}, {{"axis", axis}}));
  return absl::OkStatus();
}

absl::Status TopK(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const bool sorted,
                           graph::GetBoolOr(n.def(), "sorted", true));
  ValueId count;
  if (n.node().op() == "TopKV2") {
    OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
    const auto known = n.graph().IntegersOf(n.input(1));
    count = known.has_value() && known->size() == 1
                ? n.Ints(*known)
                : n.Reshape(n.Cast(n.In(1), n.InType(1), tensorflow::DT_INT64),
                            {1});
  } else {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t k, graph::GetInt(n.def(), "k"));
    count = n.Ints({k});
  }
  const std::vector<ValueId> found =
      n.EmitMany("TopK", {n.In(0), count}, 2,
                 {{"axis", int64_t{-1}}, {"sorted", int64_t{sorted ? 1 : 0}}});
  n.SetPort(0, found[0]);
  n.SetPort(1, n.Cast(found[1], tensorflow::DT_INT64, n.OutType(1)));
  return absl::OkStatus();
}

// The indices of elements that are not zero, a row for each.
absl::Status Where(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  n.Set(n.Transpose(n.Emit("NonZero", {n.In(0)}), {1, 0}));
  return absl::OkStatus();
}

// ONNX knows batches and classes; the boxes are one batch of one class, and
// what comes out is [batch, class, box] for each box.
absl::Status NonMaxSuppression(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  const ValueId boxes = n.Unsqueeze(n.In(0), {0});
  const ValueId scores = n.Unsqueeze(n.In(1), {0, 1});
  const ValueId most =
      n.Reshape(n.Cast(n.In(2), n.InType(2), tensorflow::DT_INT64), {1});
  std::vector<ValueId> inputs = {boxes, scores, most};
  if (n.input_count() > 3) {
    inputs.push_back(n.Reshape(n.In(3), {1}));
  } else {
    OPTFARM_ASSIGN_OR_RETURN(const float overlap,
                             graph::GetFloatOr(n.def(), "iou_threshold", 0.5f));
    inputs.push_back(n.graph().AddFloats({overlap}, n.name()));
  }
  if (n.input_count() > 4) inputs.push_back(n.Reshape(n.In(4), {1}));
  const ValueId selected = n.Emit("NonMaxSuppression", std::move(inputs));
  const ValueId index = n.Squeeze(
      n.Emit("Gather", {selected, n.Ints({2})}, {{"axis", int64_t{1}}}), {1});
  n.Set(n.Cast(index, tensorflow::DT_INT64, tensorflow::DT_INT32));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Gather", Gather},
    {"GatherV2", GatherV2},
    {"GatherNd", GatherNd},
    {"ScatterNd", ScatterNd},
    {"TensorScatterUpdate", TensorScatterUpdate},
    {"OneHot", OneHot},
    {"TopK", TopK},
    {"TopKV2", TopK},
    {"Where", Where},
    {"NonMaxSuppression", NonMaxSuppression},
    {"NonMaxSuppressionV2", NonMaxSuppression},
    {"NonMaxSuppressionV3", NonMaxSuppression},
};

}  // namespace

absl::Span<const RaisingRow> IndexingRaisings() { return kRows; }

}  // namespace optfarm::formats
