// Ops that join, cut, pad and turn tensors without arithmetic.

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// --- Order -------------------------------------------------------------------

// Nothing is emitted: the file's tensor stays, the order of its axes changes.
absl::Status Transpose(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> perm,
                           n.Integers(1, "the permutation"));
  const int rank = static_cast<int>(perm.size());
  AxisOrder forward;
  std::vector<bool> seen(perm.size(), false);
  for (int64_t axis : perm) {
    OPTFARM_ASSIGN_OR_RETURN(const int counted, n.Axis(axis, rank));
    if (seen[static_cast<size_t>(counted)]) {
      return absl::InvalidArgumentError("its permutation names an axis twice");
    }
    seen[static_cast<size_t>(counted)] = true;
    forward.push_back(counted);
  }
  AxisOrder order = n.OrderOf(0);
  const ValueId x = n.In(0, order);
  if (order.empty()) {
    order.resize(perm.size());
    std::iota(order.begin(), order.end(), 0);
  }
  if (order.size() != perm.size()) {
    return absl::InvalidArgumentError("its permutation has another rank");
  }
  // Result axis i is input axis perm[i]; the file's axis i is input axis
  // order[i].
  const AxisOrder back = Inverted(forward);
  for (int& axis : order) axis = back[static_cast<size_t>(axis)];
  n.Set(x, order);
  return absl::OkStatus();
}

// --- Joining and splitting ---------------------------------------------------

absl::Status Join(NodeRaiser& n, int first, int count, int axis_input) {
  OPTFARM_RETURN_IF_ERROR(
      n.RequireInputs(std::max(first + count, axis_input + 1)));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t given,
                           n.Integer(axis_input, "the axis"));
  std::vector<int> inputs(static_cast<size_t>(count));
  std::iota(inputs.begin(), inputs.end(), first);
  const AxisOrder order = CommonOrder(n, inputs);
  int64_t axis = given;
  if (!order.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(const int in_graph,
                             n.Axis(given, static_cast<int>(order.size())));
    axis = AxisInFile(order, in_graph);
  }
  std::vector<ValueId> parts;
  for (int input : inputs) parts.push_back(n.In(input, order));
  n.Set(n.Emit("Concat", std::move(parts), {{"axis", axis}}), order);
  return absl::OkStatus();
}

absl::Status ConcatV2(NodeRaiser& n) {
  return Join(n, 0, n.input_count() - 1, n.input_count() - 1);
}

absl::Status Concat(NodeRaiser& n) {
  return Join(n, 1, n.input_count() - 1, 0);
}

absl::Status Pack(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(n.def(), "axis", 0));
  std::vector<ValueId> parts;
  for (int i = 0; i < n.input_count(); ++i) {
    parts.push_back(n.Unsqueeze(n.In(i), {axis}));
  }
  n.Set(parts.size() == 1
            ? parts[0]
            : n.Emit("Concat", std::move(parts), {{"axis", axis}}));
  return absl::OkStatus();
}

std::vector<ValueId> SplitInto(NodeRaiser& n, ValueId x,
                               const std::vector<int64_t>& sizes,
                               int64_t axis) {
  if (sizes.size() == 1) return {x};
  return n.EmitMany("Split", {x, n.Ints(sizes)}, static_cast<int>(sizes.size()),
                    {{"axis", axis}});
}

absl::Status Unpack(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count, graph::GetInt(n.def(), "num"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(n.def(), "axis", 0));
  if (count < 1 || count > graph::kMaxNodeArity) {
    return absl::InvalidArgumentError(absl::StrCat("attribute num is ", count));
  }
  const std::vector<ValueId> parts = SplitInto(
      n, n.In(0), std::vector<int64_t>(static_cast<size_t>(count), 1), axis);
  for (size_t i = 0; i < parts.size(); ++i) {
    n.SetPort(static_cast<int>(i), n.Squeeze(parts[i], {axis}));
  }
  return absl::OkStatus();
}

// The result of splitting input `x` along a constant axis.
absl::Status SplitAlong(NodeRaiser& n, int x, int axis_input,
                        std::vector<int64_t> sizes) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t given,
                           n.Integer(axis_input, "the axis"));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  OPTFARM_ASSIGN_OR_RETURN(const int axis, n.Axis(given, rank));
  const int64_t whole = n.InShape(x).dim(axis);
  const auto count = static_cast<int64_t>(sizes.size());
  int64_t sum = 0;
  for (int64_t size : sizes) sum += std::max<int64_t>(size, 0);
  for (int64_t& size : sizes) {
    if (size >= 0) continue;
    if (whole < 0) {
      return absl::FailedPreconditionError(
          "the size of what it splits is not known before the graph runs");
    }
    // All parts are to be equal, or this one takes the rest.
    size = sum == 0 ? whole / count : whole - sum;
  }
  const AxisOrder order = n.OrderOf(x);
  const std::vector<ValueId> parts =
      SplitInto(n, n.In(x, order), sizes, AxisInFile(order, axis));
  for (size_t i = 0; i < parts.size(); ++i) {
    n.SetPort(static_cast<int>(i), parts[i], order);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PartCount(const NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                           graph::GetInt(n.def(), "num_split"));
  if (count >= 1 && count <= graph::kMaxNodeArity) return count;
  return absl::InvalidArgumentError(
      absl::StrCat("attribute num_split is ", count));
}

absl::Status Split(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count, PartCount(n));
  return SplitAlong(n, 1, 0,
                    std::vector<int64_t>(static_cast<size_t>(count), -1));
}

absl::Status SplitV(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                           n.Integers(1, "the sizes of the parts"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count, PartCount(n));
  if (static_cast<int64_t>(sizes.size()) != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", sizes.size(), " sizes for ", count, " parts"));
  }
  if (std::count_if(sizes.begin(), sizes.end(),
                    [](int64_t size) { return size < 0; }) > 1) {
    return absl::InvalidArgumentError("more than one part takes the rest");
  }
  return SplitAlong(n, 0, 2, std::move(sizes));
}

// --- Padding -----------------------------------------------------------------

// How ONNX calls what the new elements are; empty when it has no such mode.
std::string PadMode(const NodeRaiser& n, int64_t largest) {
  if (n.node().op() != "MirrorPad") return "constant";
  const std::string mode = graph::GetStringOr(n.def(), "mode", "").value_or("");
  if (mode == "REFLECT") return "reflect";
  // One step of mirroring with the edge repeats the edge.
  return mode == "SYMMETRIC" && largest <= 1 ? "edge" : "";
}

absl::Status Pad(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                           n.Integers(1, "the padding"));
  const size_t rank = paddings.size() / 2;
  std::vector<int64_t> before, after;
  for (size_t axis = 0; axis < rank; ++axis) {
    before.push_back(paddings[2 * axis]);
    after.push_back(paddings[2 * axis + 1]);
  }
  const int64_t largest =
      paddings.empty() ? 0
                       : *std::max_element(paddings.begin(), paddings.end());
  const std::string mode = PadMode(n, largest);
  if (mode.empty()) {
    return absl::UnimplementedError(
        "ONNX's Pad does not mirror the edge itself (SYMMETRIC) by more than "
        "one element");
  }
  const AxisOrder order = n.OrderOf(0);
  if (!order.empty() && order.size() != rank) {
    return absl::InvalidArgumentError("its padding is of another rank");
  }
  std::vector<int64_t> pads = Permuted(before, order);
  const std::vector<int64_t> ends = Permuted(after, order);
  pads.insert(pads.end(), ends.begin(), ends.end());
  std::vector<ValueId> inputs = {n.In(0, order), n.Ints(pads)};
  if (n.node().inputs().size() > 2) inputs.push_back(n.In(2));
  n.Set(n.Emit("Pad", std::move(inputs), {{"mode", mode}}), order);
  return absl::OkStatus();
}

absl::Status Tile(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  const auto repeats = n.graph().IntegersOf(n.input(1));
  if (!repeats.has_value()) {
    n.Set(n.Emit("Tile", {n.In(0), n.InAsInt64(1)}));
    return absl::OkStatus();
  }
  const AxisOrder order = n.OrderOf(0);
  if (!order.empty() && order.size() != repeats->size()) {
    return absl::InvalidArgumentError("its multiples are of another rank");
  }
  n.Set(n.Emit("Tile", {n.In(0, order), n.Ints(Permuted(*repeats, order))}),
        order);
  return absl::OkStatus();
}

// --- Turning around ----------------------------------------------------------

absl::Status ReverseAxes(NodeRaiser& n, const std::vector<int64_t>& axes) {
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  const AxisOrder order = n.OrderOf(0);
  std::vector<int64_t> in_file;
  for (int64_t axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int in_graph, n.Axis(axis, rank));
    in_file.push_back(AxisInFile(order, in_graph));
  }
  const ValueId x = n.In(0, order);
  if (in_file.empty()) {
    n.Set(x, order);
    return absl::OkStatus();
  }
  const std::vector<int64_t> back(in_file.size(), -1);
  const std::vector<int64_t> ends(in_file.size(), -kEnd);
  n.Set(n.Emit("Slice",
               {x, n.Ints(back), n.Ints(ends), n.Ints(in_file), n.Ints(back)}),
        order);
  return absl::OkStatus();
}

absl::Status ReverseV2(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                           n.Integers(1, "which axes are reversed"));
  return ReverseAxes(n, axes);
}

absl::Status ReverseSequence(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t time,
                           graph::GetInt(n.def(), "seq_dim"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch,
                           graph::GetIntOr(n.def(), "batch_dim", 0));
  if (time + batch != 1 || time < 0 || batch < 0) {
    return absl::UnimplementedError(
        "ONNX's ReverseSequence takes batch and time as the first two axes");
  }
  n.Set(n.Emit("ReverseSequence", {n.In(0), n.InAsInt64(1)},
               {{"time_axis", time}, {"batch_axis", batch}}));
  return absl::OkStatus();
}

// --- Between depth and space -------------------------------------------------

absl::Status DepthBlocks(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t block,
                           graph::GetInt(n.def(), "block_size"));
  OPTFARM_ASSIGN_OR_RETURN(const graph::DataFormat format,
                           graph::GetDataFormat(n.def()));
  const AxisOrder order =
      format == graph::DataFormat::kNchw ? AxisOrder() : ChannelsSecond(4);
  // DepthToSpace's own default takes blocks before channels, as TensorFlow.
  n.Set(n.Emit(n.onnx_op(), {n.In(0, order)}, {{"blocksize", block}}), order);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Transpose", Transpose},
    {"Concat", Concat},
    {"ConcatV2", ConcatV2},
    {"Pack", Pack},
    {"Unpack", Unpack},
    {"Split", Split},
    {"SplitV", SplitV},
    {"Pad", Pad},
    {"PadV2", Pad},
    {"MirrorPad", Pad},
    {"Tile", Tile},
    {"ReverseV2", ReverseV2},
    {"ReverseSequence", ReverseSequence},
    {"SpaceToDepth", DepthBlocks, "SpaceToDepth"},
    {"DepthToSpace", DepthBlocks, "DepthToSpace"},
};

}  // namespace

absl::Span<const RaisingRow> MovingRaisings() { return kRows; }

}  // namespace optfarm::formats
