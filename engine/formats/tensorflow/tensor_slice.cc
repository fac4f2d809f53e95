#include "engine/formats/tensorflow/tensor_slice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/ordered_code.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats {
namespace {

using tensorflow::TensorSliceProto;

// What tensors have at most; more is damage.
constexpr uint64_t kMaxRank = 254;

// Where two extents meet; length 0 when they do not.
TensorSlice::Extent Meet(const TensorSlice::Extent& a,
                         const TensorSlice::Extent& b) {
  const int64_t start = std::max(a.start, b.start);
  const int64_t end = std::min(a.start + a.length, b.start + b.length);
  return {start, std::max<int64_t>(end - start, 0)};
}

absl::Status CheckExtent(const TensorSlice::Extent& extent, int64_t size,
                         size_t axis) {
  // An axis without elements has one possible extent.
  const bool fits = extent.start >= 0 && extent.length >= (size == 0 ? 0 : 1) &&
                    extent.start <= size &&
                    extent.length <= size - extent.start;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a part that starts at ", extent.start, " and has ", extent.length,
      " elements is not in axis ", axis, ", which has ", size));
}

absl::StatusOr<TensorSlice> ParseSlice(absl::string_view text,
                                       absl::Span<const int64_t> shape) {
  TensorSlice slice;
  std::vector<absl::string_view> pieces;
  if (!text.empty()) pieces = absl::StrSplit(text, ':');
  if (pieces.size() != shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has ", pieces.size(),
                     " extents, the tensor has rank ", shape.size()));
  }
  for (size_t axis = 0; axis < pieces.size(); ++axis) {
    TensorSlice::Extent extent{0, shape[axis]};
    if (pieces[axis] != "-") {
      const std::vector<absl::string_view> ends =
          absl::StrSplit(pieces[axis], ',');
      if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &extent.start) ||
          !absl::SimpleAtoi(ends[1], &extent.length)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", pieces[axis], "' is neither '-' nor 'start,length'"));
      }
    }
    OPTFARM_RETURN_IF_ERROR(CheckExtent(extent, shape[axis], axis));
    slice.extents.push_back(extent);
  }
  return slice;
}

}  // namespace

std::vector<int64_t> TensorSlice::Shape() const {
  std::vector<int64_t> shape;
  for (const Extent& extent : extents) shape.push_back(extent.length);
  return shape;
}

int64_t TensorSlice::Volume() const {
  int64_t volume = 1;
  for (const Extent& extent : extents) {
    // Beside an empty axis the others may be of any size.
    if (extent.length == 0) return 0;
  }
  for (const Extent& extent : extents) volume *= extent.length;
  return volume;
}

std::string TensorSlice::ToString() const {
  return absl::StrJoin(extents, ":", [](std::string* out, const Extent& e) {
    absl::StrAppend(out, e.start, ",", e.length);
  });
}

TensorSlice WholeTensor(absl::Span<const int64_t> shape) {
  TensorSlice slice;
  for (const int64_t size : shape) slice.extents.push_back({0, size});
  return slice;
}

absl::StatusOr<TensorSlice> ResolveSlice(const TensorSliceProto& slice,
                                         absl::Span<const int64_t> shape) {
  if (static_cast<size_t>(slice.extent_size()) != shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part of rank ", slice.extent_size(),
                     " cannot be of a tensor of rank ", shape.size()));
  }
  TensorSlice resolved;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const auto& proto = slice.extent(static_cast<int>(axis));
    const bool whole = proto.has_length_case() ==
                           TensorSliceProto::Extent::HAS_LENGTH_NOT_SET ||
                       proto.length() == -1;
    const TensorSlice::Extent extent{proto.start(),
                                     whole ? shape[axis] : proto.length()};
    OPTFARM_RETURN_IF_ERROR(CheckExtent(extent, shape[axis], axis));
    resolved.extents.push_back(extent);
  }
  return resolved;
}

absl::StatusOr<std::optional<ShapeAndSlice>> ParseShapeAndSlice(
    absl::string_view text) {
  if (text.empty()) return std::optional<ShapeAndSlice>();
  ShapeAndSlice result;
  // Sizes, each followed by a blank, then the slice.
  std::vector<absl::string_view> pieces = absl::StrSplit(text, ' ');
  const absl::string_view slice = pieces.back();
  pieces.pop_back();
  tensorflow::TensorShapeProto shape;
  for (const absl::string_view piece : pieces) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(piece, &size)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape and slice '", text, "': '", piece, "' is no size"));
    }
    result.shape.push_back(size);
    shape.add_dim()->set_size(size);
  }
  const std::string what = absl::StrCat("shape and slice '", text, "'");
  const absl::Status countable = graph::ElementCount(shape).status();
  if (!countable.ok()) return Annotate(countable, what);
  absl::StatusOr<TensorSlice> parsed = ParseSlice(slice, result.shape);
  if (!parsed.ok()) return Annotate(parsed.status(), what);
  result.slice = *std::move(parsed);
  return std::optional<ShapeAndSlice>(std::move(result));
}

std::string EncodeSliceKey(absl::string_view name,
                           const TensorSliceProto& slice) {
  std::string key;
  AppendOrderedUint(0, &key);
  AppendOrderedString(name, &key);
  AppendOrderedUint(static_cast<uint64_t>(slice.extent_size()), &key);
  for (const auto& extent : slice.extent()) {
    const bool whole = extent.has_length_case() ==
                       TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    AppendOrderedInt(extent.start(), &key);
    AppendOrderedInt(whole ? -1 : extent.length(), &key);
  }
  return key;
}

bool ParseSliceKey(absl::string_view key, std::string* name,
                   TensorSliceProto* slice) {
  uint64_t zero = 0, rank = 0;
  if (!TakeOrderedUint(&key, &zero) || zero != 0 ||
      !TakeOrderedString(&key, name) || !TakeOrderedUint(&key, &rank) ||
      rank > kMaxRank) {
    return false;
  }
  slice->Clear();
  for (uint64_t axis = 0; axis < rank; ++axis) {
    int64_t start = 0, length = 0;
    if (!TakeOrderedInt(&key, &start) || !TakeOrderedInt(&key, &length)) {
      return false;
    }
    auto* extent = slice->add_extent();
    extent->set_start(start);
    if (length != -1) extent->set_length(length);
  }
  return key.empty();
}

void ForEachSharedRun(const TensorSlice& a, const TensorSlice& b,
                      const SharedRun& run) {
  const size_t rank = a.extents.size();
  if (!Overlap(a, b)) return;
  if (rank == 0) return run(0, 0, 1);
  std::vector<TensorSlice::Extent> shared(rank);
  // Elements between neighbours along each axis, in either box.
  std::vector<int64_t> step_a(rank, 1), step_b(rank, 1);
  for (size_t axis = rank; axis-- > 0;) {
    shared[axis] = Meet(a.extents[axis], b.extents[axis]);
    if (axis + 1 == rank) continue;
    step_a[axis] = step_a[axis + 1] * a.extents[axis + 1].length;
    step_b[axis] = step_b[axis + 1] * b.extents[axis + 1].length;
  }
  // Axes from `flat` on are whole in both boxes: one run covers them and the
  // part of the axis before.
  size_t flat = rank - 1;
  while (flat > 0 && shared[flat] == a.extents[flat] &&
         shared[flat] == b.extents[flat]) {
    --flat;
  }
  const int64_t count = shared[flat].length * step_a[flat];
  std::vector<int64_t> index(flat, 0);
  while (true) {
    int64_t in_a = 0, in_b = 0;
    for (size_t axis = 0; axis <= flat; ++axis) {
      const int64_t at = shared[axis].start + (axis < flat ? index[axis] : 0);
      in_a += (at - a.extents[axis].start) * step_a[axis];
      in_b += (at - b.extents[axis].start) * step_b[axis];
    }
    run(in_a, in_b, count);
    size_t axis = flat;
    while (axis > 0 && ++index[axis - 1] == shared[axis - 1].length) {
      index[--axis] = 0;
    }
    if (axis == 0) return;
  }
}

bool Overlap(const TensorSlice& a, const TensorSlice& b) {
  for (size_t axis = 0; axis < a.extents.size(); ++axis) {
    if (Meet(a.extents[axis], b.extents[axis]).length == 0) return false;
  }
  return true;
}

}  // namespace optfarm::formats
