// Slice, StridedSlice and ReverseV2: a regular selection of a tensor's
// elements, one begin, step and count per dimension.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Elements begin, begin + step, ... (count of them) of one dimension.
struct Selection {
  int64_t begin = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// A selection as runs of neighbouring elements in nested loops.
struct Runs {
  struct Loop {
    int64_t count = 0;
    // UNITS: elements.
    int64_t stride = 0;
  };
  // UNITS: elements.
  int64_t begin = 0;
  int64_t run = 1;
  // The outermost first; at least one.
  std::vector<Loop> loops;
};

Runs FindRuns(const Shape& shape, const std::vector<Selection>& selections) {
  Runs runs;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const Selection& s = selections[i];
    runs.begin += s.begin * stride;
    if (runs.run == stride && s.step == 1) {
      runs.run *= s.count;
    } else if (s.count != 1) {
      runs.loops.push_back({s.count, s.step * stride});
    }
    stride *= shape.dim(i);
  }
  if (runs.loops.empty()) runs.loops.push_back({1, 0});
  std::reverse(runs.loops.begin(), runs.loops.end());
  return runs;
}

template <typename T>
T* CopyRuns(const T* in, int64_t run, const Runs::Loop& loop,
            T* __restrict out) {
  if (run == 1) {
    for (int64_t k = 0; k < loop.count; ++k) out[k] = in[k * loop.stride];
    return out + loop.count;
  }
  constexpr int64_t kShort = 16;
  for (int64_t k = 0; k < loop.count; ++k, out += run) {
    const T* from = in + k * loop.stride;
    if (run > kShort) {
      std::copy_n(from, run, out);
      continue;
    }
    for (int64_t i = 0; i < run; ++i) out[i] = from[i];
  }
  return out;
}

template <typename T>
void CopySelected(const T* in, const Runs& runs, T* out) {
  const size_t outer = runs.loops.size() - 1;
  std::vector<int64_t> index(outer, 0);
  int64_t at = runs.begin;
  while (true) {
    out = CopyRuns(in + at, runs.run, runs.loops.back(), out);
    size_t i = outer;
    while (i > 0) {
      const Runs::Loop& loop = runs.loops[--i];
      at += loop.stride;
      if (++index[i] < loop.count) break;
      at -= loop.count * loop.stride;
      index[i] = 0;
      if (i == 0) return;
    }
    if (outer == 0) return;
  }
}

// The selected elements, under `shape`.
// REQUIRES: every selected index exists; `shape` has as many elements.
absl::StatusOr<Tensor> Select(const Tensor& in,
                              const std::vector<Selection>& selections,
                              const Shape& shape) {
  bool is_whole = true;
  for (int i = 0; i < in.rank(); ++i) {
    const Selection& s = selections[i];
    is_whole &= s.begin == 0 && s.step == 1 && s.count == in.dim(i);
  }
  if (is_whole) return in.Reshaped(shape);
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(in.dtype(), shape));
  if (shape.num_elements() == 0) return out;
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(in.dtype(), "input", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        CopySelected(in.data<T>(), FindRuns(in.shape(), selections),
                     out.data<T>());
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSlice(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& in = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> begin,
                             ReadIntegers(context->input(1), "begin"));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                             ReadIntegers(context->input(2), "size"));
    const size_t rank = static_cast<size_t>(in.rank());
    bool fits = begin.size() == rank && size.size() == rank;
    std::vector<Selection> selections;
    std::vector<int64_t> dims;
    for (int i = 0; fits && i < in.rank(); ++i) {
      fits = begin[i] >= 0 && begin[i] <= in.dim(i) && size[i] >= -1 &&
             size[i] <= in.dim(i) - begin[i];
      const int64_t count = size[i] == -1 ? in.dim(i) - begin[i] : size[i];
      selections.push_back({begin[i], 1, count});
      dims.push_back(count);
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("a slice from [", absl::StrJoin(begin, ","),
                       "] of size [", absl::StrJoin(size, ","),
                       "] does not lie within shape ", in.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Select(in, selections, shape));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

struct StridedMasks {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;
  int64_t shrink = 0;
};

// begin, end and strides as the node gives them; bit i of a mask is about
// entry i.
struct StridedSpec {
  std::vector<int64_t> begin;
  std::vector<int64_t> end;
  std::vector<int64_t> strides;
};

bool HasBit(int64_t mask, size_t bit) { return bit < 63 && (mask >> bit) & 1; }

// One entry of the specification over a dimension of `size`.
absl::StatusOr<Selection> SelectRange(const StridedSpec& spec,
                                      const StridedMasks& masks, size_t i,
                                      int64_t size) {
  const int64_t step = spec.strides[i];
  if (step == 0 || step == std::numeric_limits<int64_t>::min()) {
    return absl::InvalidArgumentError(
        absl::StrCat("strides[", i, "] is ", step, ", must not be 0"));
  }
  if (HasBit(masks.shrink, i)) {
    const int64_t index =
        spec.begin[i] < 0 ? spec.begin[i] + size : spec.begin[i];
    if (index < 0 || index >= size || step < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", spec.begin[i], " (entry ", i,
                       ") is not within a dimension of ", size,
                       step < 0 ? ", and its stride is negative" : ""));
    }
    return Selection{index, 1, 1};
  }
  // Positions may lie one before or after the elements, for an empty range.
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  const auto place = [&](int64_t position) {
    return std::clamp(position < 0 ? position + size : position, low, high);
  };
  const int64_t begin =
      HasBit(masks.begin, i) ? (step > 0 ? low : high) : place(spec.begin[i]);
  const int64_t end =
      HasBit(masks.end, i) ? (step > 0 ? high : low) : place(spec.end[i]);
  const int64_t span = step > 0 ? end - begin : begin - end;
  const int64_t width = step > 0 ? step : -step;
  return Selection{begin, step,
                   span <= 0 ? 0 : span / width + (span % width != 0)};
}

struct StridedPlan {
  std::vector<Selection> selections;
  std::vector<int64_t> dims;
};

absl::StatusOr<StridedPlan> PlanStrided(const Shape& in,
                                        const StridedSpec& spec,
                                        const StridedMasks& masks) {
  // Entries that stand for dimensions of the input; the rest of the input goes
  // to the ellipsis, which is at the end when there is none.
  const size_t entries = spec.begin.size();
  size_t named = 0;
  size_t ellipsis = entries;
  for (size_t i = 0; i < entries; ++i) {
    if (HasBit(masks.ellipsis, i)) {
      if (ellipsis != entries) {
        return absl::InvalidArgumentError("ellipsis_mask has several bits");
      }
      ellipsis = i;
    } else if (!HasBit(masks.new_axis, i)) {
      ++named;
    }
  }
  const size_t rank = static_cast<size_t>(in.rank());
  if (named > rank) {
    return absl::InvalidArgumentError(
        absl::StrCat(named, " dimensions are sliced, but the input has shape ",
                     in.ToString()));
  }
  StridedPlan plan;
  const auto keep = [&](size_t count) {
    for (size_t k = 0; k < count; ++k) {
      const int64_t size = in.dim(static_cast<int>(plan.selections.size()));
      plan.selections.push_back({0, 1, size});
      plan.dims.push_back(size);
    }
  };
  for (size_t i = 0; i < entries; ++i) {
    if (i == ellipsis) {
      keep(rank - named);
    } else if (HasBit(masks.new_axis, i)) {
      plan.dims.push_back(1);
    } else {
      const int64_t size = in.dim(static_cast<int>(plan.selections.size()));
      OPTFARM_ASSIGN_OR_RETURN(const Selection selection,
                               SelectRange(spec, masks, i, size));
      plan.selections.push_back(selection);
      if (!HasBit(masks.shrink, i)) plan.dims.push_back(selection.count);
    }
  }
  keep(rank - plan.selections.size());
  return plan;
}

absl::StatusOr<StridedMasks> ReadMasks(const tensorflow::NodeDef& node) {
  StridedMasks masks;
  OPTFARM_ASSIGN_OR_RETURN(masks.begin, graph::GetIntOr(node, "begin_mask", 0));
  OPTFARM_ASSIGN_OR_RETURN(masks.end, graph::GetIntOr(node, "end_mask", 0));
  OPTFARM_ASSIGN_OR_RETURN(masks.ellipsis,
                           graph::GetIntOr(node, "ellipsis_mask", 0));
  OPTFARM_ASSIGN_OR_RETURN(masks.new_axis,
                           graph::GetIntOr(node, "new_axis_mask", 0));
  OPTFARM_ASSIGN_OR_RETURN(masks.shrink,
                           graph::GetIntOr(node, "shrink_axis_mask", 0));
  return masks;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStridedSlice(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const StridedMasks masks, ReadMasks(node));
  return MakeKernel([masks](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    const Tensor& in = context->input(0);
    StridedSpec spec;
    OPTFARM_ASSIGN_OR_RETURN(spec.begin,
                             ReadIntegers(context->input(1), "begin"));
    OPTFARM_ASSIGN_OR_RETURN(spec.end, ReadIntegers(context->input(2), "end"));
    OPTFARM_ASSIGN_OR_RETURN(spec.strides,
                             ReadIntegers(context->input(3), "strides"));
    if (spec.begin.size() != spec.end.size() ||
        spec.begin.size() != spec.strides.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "begin, end and strides have ", spec.begin.size(), ", ",
          spec.end.size(), " and ", spec.strides.size(), " values"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const StridedPlan plan,
                             PlanStrided(in.shape(), spec, masks));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(plan.dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Select(in, plan.selections, shape));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReverse(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& in = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                             ReadIntegers(context->input(1), "axis"));
    std::vector<Selection> selections;
    for (int64_t size : in.shape().dims()) selections.push_back({0, 1, size});
    for (int64_t value : axes) {
      OPTFARM_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(value, in.rank()));
      const int64_t size = in.dim(axis);
      selections[axis] = {std::max<int64_t>(size - 1, 0), -1, size};
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Select(in, selections, in.shape()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddSlicingKernels(KernelCatalog* catalog) {
  catalog->Add("Slice", MakeSlice);
  catalog->Add("StridedSlice", MakeStridedSlice);
  catalog->Add("ReverseV2", MakeReverse);
}

}  // namespace optfarm::runtime
