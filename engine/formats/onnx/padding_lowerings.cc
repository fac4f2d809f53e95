// Pad in all its modes.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// What is added in front of and behind each dimension; less than 0 cuts off.
struct Pads {
  std::vector<int64_t> before, after;
};

absl::StatusOr<Pads> KnownPads(const std::vector<int64_t>& values, int rank) {
  Pads pads;
  if (values.size() != 2 * static_cast<size_t>(rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", values.size(), " pads for ", rank, " dimensions"));
  }
  const auto middle = values.begin() + rank;
  pads.before.assign(values.begin(), middle);
  pads.after.assign(middle, values.end());
  return pads;
}

Endpoint Table(NodeLowering& n, const Pads& pads) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < pads.before.size(); ++i) {
    rows.push_back(std::max<int64_t>(0, pads.before[i]));
    rows.push_back(std::max<int64_t>(0, pads.after[i]));
  }
  return n.Add("Reshape",
               {n.Int64s(rows),
                n.Int32s({static_cast<int64_t>(pads.before.size()), 2})});
}

// Takes off what negative pads take off.
Endpoint Cut(NodeLowering& n, Endpoint x, const Pads& pads) {
  std::vector<int64_t> begin, end, step;
  int64_t keeps_end = 0;
  bool cuts = false;
  for (size_t i = 0; i < pads.before.size(); ++i) {
    begin.push_back(std::max<int64_t>(0, -pads.before[i]));
    end.push_back(std::min<int64_t>(0, pads.after[i]));
    step.push_back(1);
    if (end.back() == 0) keeps_end |= int64_t{1} << i;
    cuts = cuts || begin.back() != 0 || end.back() != 0;
  }
  if (!cuts) return x;
  return n.Add("StridedSlice",
               {x, n.Int32s(begin), n.Int32s(end), n.Int32s(step)},
               {{"end_mask", keeps_end}});
}

// One dimension by the elements that each new one repeats: edge and wrap, and
// reflection beyond the whole image.
absl::StatusOr<Endpoint> PadByIndices(NodeLowering& n, Endpoint x,
                                      const Pads& pads,
                                      absl::string_view mode) {
  const PartialShape known = n.shape(x);
  for (size_t i = 0; i < pads.before.size(); ++i) {
    const int64_t before = std::max<int64_t>(0, pads.before[i]);
    const int64_t after = std::max<int64_t>(0, pads.after[i]);
    if (before == 0 && after == 0) continue;
    const int64_t size = known.dim(static_cast<int>(i));
    if (size < 1 || before > (1 << 24) || after > (1 << 24) ||
        size > (1 << 24)) {
      return absl::UnimplementedError(
          absl::StrCat("mode ", mode, " needs a dimension of known size"));
    }
    std::vector<int64_t> indices;
    const int64_t period = std::max<int64_t>(1, 2 * size - 2);
    for (int64_t at = -before; at < size + after; ++at) {
      if (mode == "edge") {
        indices.push_back(std::clamp<int64_t>(at, 0, size - 1));
      } else if (mode == "wrap") {
        indices.push_back((at % size + size) % size);
      } else {
        const int64_t place = (at % period + period) % period;
        indices.push_back(std::min(place, period - place) % size);
      }
    }
    x = n.Add("GatherV2",
              {x, n.Int32s(indices), n.Int32(static_cast<int64_t>(i))});
  }
  return x;
}

absl::Status PadByKnown(NodeLowering& n, Endpoint x, const Pads& pads,
                        const std::string& mode, Endpoint value) {
  x = Cut(n, x, pads);
  if (mode == "constant") {
    n.SetOutput(0, n.Add("PadV2", {x, Table(n, pads), value}));
    return absl::OkStatus();
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap") {
    return absl::UnimplementedError(
        absl::StrCat("mode '", mode, "' is not supported"));
  }
  const PartialShape& known = n.shape(x);
  bool is_mirror = mode == "reflect" && known.has_rank();
  for (size_t i = 0; i < pads.before.size() && is_mirror; ++i) {
    const int64_t size = known.dim(static_cast<int>(i));
    const int64_t most = std::max(pads.before[i], pads.after[i]);
    if (size >= 0 && most >= size) is_mirror = false;
  }
  if (is_mirror) {
    n.SetOutput(0,
                n.Add("MirrorPad", {x, Table(n, pads)}, {{"mode", "REFLECT"}}));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint y, PadByIndices(n, x, pads, mode));
  n.SetOutput(0, y == x ? n.Add("Identity", {x}) : y);
  return absl::OkStatus();
}

absl::Status LowerPadOfAttributes(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  OPTFARM_ASSIGN_OR_RETURN(
      const Pads pads,
      KnownPads(n.Ints(n.opset() < 2 ? "paddings" : "pads"), rank));
  return PadByKnown(n, x, pads, n.String("mode", "constant"),
                    n.ScalarLike(x, double{n.Float("value", 0)}));
}

// Pads of all dimensions from those of some of them.
absl::StatusOr<std::vector<int64_t>> Spread(const std::vector<int64_t>& some,
                                            std::vector<int64_t> axes,
                                            int rank) {
  if (some.size() != 2 * axes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", some.size(), " pads for ", axes.size(), " axes"));
  }
  std::vector<int64_t> all(2 * static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, NodeLowering::Axis(axes[i], rank));
    all[static_cast<size_t>(axis)] = some[i];
    all[static_cast<size_t>(axis + rank)] = some[i + axes.size()];
  }
  return all;
}

absl::Status LowerPad(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const std::string mode = n.String("mode", "constant");
  const Endpoint value = n.has_input(2)
                             ? n.Add("Reshape", {n.input(2), n.Int32s({})})
                             : n.ScalarLike(x, 0);
  auto known = n.KnownInts(n.input(1));
  if (known.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
    if (n.has_input(3)) {
      OPTFARM_ASSIGN_OR_RETURN(const auto axes, n.RequireInts(3));
      OPTFARM_ASSIGN_OR_RETURN(known, Spread(*known, axes, rank));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Pads pads, KnownPads(*known, rank));
    return PadByKnown(n, x, pads, mode, value);
  }
  const Endpoint axes =
      n.has_input(3) ? n.Cast(n.input(3), tensorflow::DT_INT64) : n.Int64s({});
  n.SetOutput(0,
              n.Add("PadAxes",
                    {x, n.Cast(n.input(1), tensorflow::DT_INT64), value, axes},
                    {{"mode", mode}}));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"Pad", LowerPadOfAttributes, 1, 10},
    {"Pad", LowerPad, 11},
};

}  // namespace

absl::Span<const LoweringRow> PaddingLowerings() { return kRows; }

}  // namespace optfarm::formats
