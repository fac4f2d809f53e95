// Slice and StridedSlice.

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// What is cut out, an entry for each axis of the graph's tensor that is cut.
// Bounds that are not known are elements of inputs.
struct Cut {
  int axis = 0;
  // Index of the entry in the inputs.
  int64_t entry = 0;
  std::optional<int64_t> begin, end;
  int64_t stride = 1;
  // One element is taken and the axis goes.
  bool is_index = false;
};

ValueId Element(NodeRaiser& n, int input, int64_t entry) {
  const ValueId all =
      n.Cast(n.In(input), n.InType(input), tensorflow::DT_INT64);
  return n.Emit("Gather", {all, n.Ints({entry})}, {{"axis", int64_t{0}}});
}

ValueId Bounds(NodeRaiser& n, const std::vector<Cut>& cuts, bool is_end) {
  std::vector<int64_t> known;
  for (const Cut& cut : cuts) {
    const std::optional<int64_t>& bound = is_end ? cut.end : cut.begin;
    if (bound.has_value()) known.push_back(*bound);
  }
  if (known.size() == cuts.size()) return n.Ints(known);
  std::vector<ValueId> parts;
  for (const Cut& cut : cuts) {
    const std::optional<int64_t>& bound = is_end ? cut.end : cut.begin;
    if (bound.has_value()) {
      parts.push_back(n.Ints({*bound}));
    } else if (is_end && cut.is_index) {
      // One after the beginning; an index of -1 reaches to the end.
      const ValueId begin = Element(n, 1, cut.entry);
      const ValueId next = n.Emit("Add", {begin, n.Ints({1})});
      const ValueId is_last = n.Emit("Equal", {next, n.Ints({0})});
      parts.push_back(n.Emit("Where", {is_last, n.Ints({kEnd}), next}));
    } else {
      parts.push_back(Element(n, is_end ? 2 : 1, cut.entry));
    }
  }
  return parts.size() == 1
             ? parts[0]
             : n.Emit("Concat", std::move(parts), {{"axis", int64_t{0}}});
}

// Emits the cut and takes out the axes that go.
ValueId EmitCuts(NodeRaiser& n, const std::vector<Cut>& cuts,
                 AxisOrder* order) {
  ValueId x = n.In(0, *order);
  if (cuts.empty()) return x;
  std::vector<int64_t> axes, strides, squeezed;
  std::vector<int> gone;
  for (const Cut& cut : cuts) {
    axes.push_back(AxisInFile(*order, cut.axis));
    strides.push_back(cut.stride);
    if (!cut.is_index) continue;
    gone.push_back(cut.axis);
    squeezed.push_back(axes.back());
  }
  x = n.Emit("Slice", {x, Bounds(n, cuts, false), Bounds(n, cuts, true),
                       n.Ints(axes), n.Ints(strides)});
  if (squeezed.empty()) return x;
  std::sort(squeezed.begin(), squeezed.end());
  *order = OrderWithout(*order, gone);
  return n.Squeeze(x, squeezed);
}

absl::Status Slice(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  const auto begin = n.graph().IntegersOf(n.input(1));
  const auto size = n.graph().IntegersOf(n.input(2));
  AxisOrder order = n.OrderOf(0);
  if (begin.has_value() && size.has_value() && begin->size() == size->size()) {
    std::vector<Cut> cuts;
    for (size_t i = 0; i < begin->size(); ++i) {
      if ((*begin)[i] == 0 && (*size)[i] < 0) continue;
      Cut cut{.axis = static_cast<int>(i),
              .begin = (*begin)[i],
              .end = (*size)[i] < 0 ? kEnd : (*begin)[i] + (*size)[i]};
      cuts.push_back(cut);
    }
    const ValueId x = EmitCuts(n, cuts, &order);
    n.Set(x, order);
    return absl::OkStatus();
  }
  const ValueId first = n.InAsInt64(1);
  const ValueId count = n.InAsInt64(2);
  const ValueId takes_rest = n.Emit("Less", {count, n.Ints({0})});
  const ValueId end = n.Emit(
      "Where", {takes_rest, n.Ints({kEnd}), n.Emit("Add", {first, count})});
  n.Set(n.Emit("Slice", {n.In(0), first, end}));
  return absl::OkStatus();
}

// --- StridedSlice ------------------------------------------------------------

struct SliceMasks {
  int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
};

absl::StatusOr<SliceMasks> ReadMasks(const NodeRaiser& n) {
  SliceMasks masks;
  for (const auto& [name, value] : {std::pair("begin_mask", &masks.begin),
                                    {"end_mask", &masks.end},
                                    {"ellipsis_mask", &masks.ellipsis},
                                    {"new_axis_mask", &masks.new_axis},
                                    {"shrink_axis_mask", &masks.shrink}}) {
    OPTFARM_ASSIGN_OR_RETURN(*value, graph::GetIntOr(n.def(), name, 0));
  }
  return masks;
}

struct PlannedSlice {
  std::vector<Cut> cuts;
  // Of the result.
  std::vector<int64_t> new_axes;
};

// Known elements of input `index`.
std::vector<std::optional<int64_t>> Elements(NodeRaiser& n, int index,
                                             size_t count) {
  std::vector<std::optional<int64_t>> elements(count);
  if (const auto known = n.graph().IntegersOf(n.input(index))) {
    for (size_t i = 0; i < std::min(count, known->size()); ++i) {
      elements[i] = (*known)[i];
    }
  } else if (const graph::PartialValue* value =
                 n.graph().shapes().ValueOf(n.input(index))) {
    for (size_t i = 0; i < std::min(count, value->elements.size()); ++i) {
      elements[i] = value->elements[i];
    }
  }
  return elements;
}

// One written index, on axis `axis` of the input.
Cut CutOf(int axis, int64_t entry, std::optional<int64_t> begin,
          std::optional<int64_t> end, int64_t stride, const SliceMasks& masks) {
  const int64_t bit = int64_t{1} << entry;
  Cut cut{.axis = axis,
          .entry = entry,
          .begin = begin,
          .end = end,
          .stride = stride};
  if ((masks.shrink & bit) != 0) {
    cut.is_index = true;
    cut.stride = 1;
    cut.end = std::nullopt;
    if (begin.has_value()) cut.end = *begin == -1 ? kEnd : *begin + 1;
    return cut;
  }
  if ((masks.begin & bit) != 0) cut.begin = stride > 0 ? 0 : kEnd;
  if ((masks.end & bit) != 0) cut.end = stride > 0 ? kEnd : -kEnd;
  return cut;
}

absl::StatusOr<PlannedSlice> PlanSlice(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const SliceMasks masks, ReadMasks(n));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                           n.Integers(3, "its strides"));
  if (strides.size() > 62) {
    return absl::InvalidArgumentError("it has too many indices");
  }
  const auto begins = Elements(n, 1, strides.size());
  const auto ends = Elements(n, 2, strides.size());
  PlannedSlice plan;
  int axis = 0;
  int64_t result_axis = 0;
  const auto count = static_cast<int64_t>(strides.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bit = int64_t{1} << i;
    const auto at = static_cast<size_t>(i);
    if ((masks.ellipsis & bit) != 0) {
      OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
      int64_t others = 0;
      for (int64_t j = i + 1; j < count; ++j) {
        others += (masks.new_axis >> j & 1) == 0 ? 1 : 0;
      }
      const int64_t skipped = std::max<int64_t>(rank - axis - others, 0);
      axis += static_cast<int>(skipped);
      result_axis += skipped;
    } else if ((masks.new_axis & bit) != 0) {
      plan.new_axes.push_back(result_axis++);
    } else {
      if (strides[at] == 0) {
        return absl::InvalidArgumentError("one of its strides is 0");
      }
      const Cut cut =
          CutOf(axis++, i, begins[at], ends[at], strides[at], masks);
      if (!cut.is_index) ++result_axis;
      const bool takes_all =
          cut.begin == 0 && cut.end == kEnd && cut.stride == 1;
      if (!takes_all) plan.cuts.push_back(cut);
    }
  }
  return plan;
}

absl::Status StridedSlice(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(4));
  OPTFARM_ASSIGN_OR_RETURN(const PlannedSlice plan, PlanSlice(n));
  AxisOrder order = plan.new_axes.empty() ? n.OrderOf(0) : AxisOrder();
  ValueId x = EmitCuts(n, plan.cuts, &order);
  if (!plan.new_axes.empty()) x = n.Unsqueeze(x, plan.new_axes);
  n.Set(x, order);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Slice", Slice},
    {"StridedSlice", StridedSlice},
};

}  // namespace

absl::Span<const RaisingRow> SlicingRaisings() { return kRows; }

}  // namespace optfarm::formats
