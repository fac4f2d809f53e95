// The rules for combining knowledge of shapes, all checked against overflow.

#include "engine/graph/partial_shape.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace optfarm::graph {
namespace {

std::string DimText(int64_t dim) {
  return dim == kUnknownDim ? "?" : absl::StrCat(dim);
}

absl::Status RankError(const PartialShape& shape, absl::string_view relation,
                       int rank) {
  return absl::InvalidArgumentError(absl::StrCat("a shape of rank ", relation,
                                                 rank, " is needed, not ",
                                                 shape.ToString()));
}

}  // namespace

PartialShape::PartialShape(std::vector<int64_t> dims)
    : has_rank_(true), dims_(std::move(dims)) {
  OPTFARM_CHECK(dims_.size() <= kMaxRank);
  for (int64_t dim : dims_) OPTFARM_CHECK(dim >= kUnknownDim);
}

PartialShape PartialShape::OfRank(int rank) {
  return PartialShape(std::vector<int64_t>(rank, kUnknownDim));
}

absl::StatusOr<PartialShape> PartialShape::FromProto(
    const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) return Unknown();
  if (proto.dim_size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shape of rank ", proto.dim_size(), " is too large"));
  }
  std::vector<int64_t> dims;
  dims.reserve(proto.dim_size());
  for (const auto& dim : proto.dim()) {
    if (dim.size() < kUnknownDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("a shape cannot have the dimension ", dim.size()));
    }
    dims.push_back(dim.size());
  }
  return PartialShape(std::move(dims));
}

tensorflow::TensorShapeProto PartialShape::ToProto() const {
  tensorflow::TensorShapeProto proto;
  if (!has_rank_) proto.set_unknown_rank(true);
  for (int64_t dim : dims_) proto.add_dim()->set_size(dim);
  return proto;
}

absl::StatusOr<PartialShape> PartialShape::Parse(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text == "<unknown>") return Unknown();
  absl::string_view inner = text;
  if (absl::ConsumePrefix(&inner, "[") && !absl::ConsumeSuffix(&inner, "]")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the shape '", text, "' lacks its ']'"));
  }
  std::vector<int64_t> dims;
  if (absl::StripAsciiWhitespace(inner).empty()) return Scalar();
  for (absl::string_view piece : absl::StrSplit(inner, ',')) {
    piece = absl::StripAsciiWhitespace(piece);
    int64_t dim = kUnknownDim;
    if (piece != "?" && (!absl::SimpleAtoi(piece, &dim) || dim < kUnknownDim)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", piece, "' in the shape '", text,
                       "' is no dimension (a number, or ? for unknown)"));
    }
    dims.push_back(dim);
  }
  if (dims.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shape of rank ", dims.size(), " is too large"));
  }
  return PartialShape(std::move(dims));
}

std::string PartialShape::ToString() const {
  if (!has_rank_) return "<unknown>";
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", DimText(dims_[i]));
  }
  return text + "]";
}

int PartialShape::rank() const {
  OPTFARM_CHECK(has_rank_);
  return static_cast<int>(dims_.size());
}

int64_t PartialShape::dim(int i) const {
  if (!has_rank_) return kUnknownDim;
  if (i < 0) i += rank();
  OPTFARM_CHECK(i >= 0 && i < rank());
  return dims_[i];
}

void PartialShape::set_dim(int i, int64_t size) {
  if (i < 0) i += rank();
  OPTFARM_CHECK(has_rank_ && i >= 0 && i < rank() && size >= kUnknownDim);
  dims_[i] = size;
}

absl::Span<const int64_t> PartialShape::dims() const {
  OPTFARM_CHECK(has_rank_);
  return dims_;
}

bool PartialShape::is_static() const {
  return has_rank_ &&
         std::find(dims_.begin(), dims_.end(), kUnknownDim) == dims_.end();
}

std::optional<int64_t> PartialShape::elements() const {
  if (!is_static()) return std::nullopt;
  int64_t count = 1;
  for (int64_t dim : dims_) {
    if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return count;
}

PartialShape PartialShape::Slice(int begin, int end) const {
  if (!has_rank_) return *this;
  const int n = rank();
  if (begin < 0) begin += n;
  if (end < 0) end += n;
  begin = std::clamp(begin, 0, n);
  end = std::clamp(end, begin, n);
  return PartialShape(
      std::vector<int64_t>(dims_.begin() + begin, dims_.begin() + end));
}

absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b) {
  if (a == b || b == kUnknownDim) return a;
  if (a == kUnknownDim) return b;
  return absl::InvalidArgumentError(
      absl::StrCat("dimensions must be equal, but are ", a, " and ", b));
}

absl::StatusOr<PartialShape> MergeShapes(const PartialShape& a,
                                         const PartialShape& b) {
  if (!a.has_rank()) return b;
  if (!b.has_rank()) return a;
  if (a.rank() != b.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("shapes ", a.ToString(),
                                                   " and ", b.ToString(),
                                                   " have different ranks"));
  }
  std::vector<int64_t> dims(a.rank());
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i) && a.dim(i) != kUnknownDim &&
        b.dim(i) != kUnknownDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                       " differ in dimension ", i));
    }
    dims[i] = std::max(a.dim(i), b.dim(i));
  }
  return PartialShape(std::move(dims));
}

PartialShape CommonShape(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) {
    return PartialShape::Unknown();
  }
  PartialShape common = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) common.set_dim(i, kUnknownDim);
  }
  return common;
}

absl::StatusOr<PartialShape> WithRank(const PartialShape& shape, int rank) {
  if (!shape.has_rank()) return PartialShape::OfRank(rank);
  if (shape.rank() != rank) return RankError(shape, "", rank);
  return shape;
}

absl::StatusOr<PartialShape> WithRankAtLeast(const PartialShape& shape,
                                             int rank) {
  if (shape.has_rank() && shape.rank() < rank) {
    return RankError(shape, "at least ", rank);
  }
  return shape;
}

absl::StatusOr<PartialShape> WithRankAtMost(const PartialShape& shape,
                                            int rank) {
  if (shape.has_rank() && shape.rank() > rank) {
    return RankError(shape, "at most ", rank);
  }
  return shape;
}

absl::StatusOr<PartialShape> ConcatenateShapes(const PartialShape& a,
                                               const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape::Unknown();
  if (a.rank() + b.rank() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shape of rank ", a.rank() + b.rank(), " is too large"));
  }
  std::vector<int64_t> dims(a.dims().begin(), a.dims().end());
  dims.insert(dims.end(), b.dims().begin(), b.dims().end());
  return PartialShape(std::move(dims));
}

absl::StatusOr<PartialShape> BroadcastShapes(const PartialShape& a,
                                             const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape::Unknown();
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(rank);
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a.dim(-i) : 1;
    const int64_t y = i <= b.rank() ? b.dim(-i) : 1;
    int64_t& out = dims[rank - i];
    if (x == y || y == 1) {
      out = x;
    } else if (x == 1) {
      out = y;
    } else if (x == kUnknownDim || y == kUnknownDim) {
      // A size above 1 can only meet itself or 1.
      out = std::max(x, y) > 1 ? std::max(x, y) : kUnknownDim;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                       " cannot be broadcast together"));
    }
  }
  return PartialShape(std::move(dims));
}

absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b) {
  if (a == kUnknownDim || b == kUnknownDim) return kUnknownDim;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dimension ", a, " + ", b, " is out of range"));
  }
  return sum;
}

absl::StatusOr<int64_t> SubtractDims(int64_t a, int64_t b) {
  if (a == kUnknownDim || b == kUnknownDim) return kUnknownDim;
  if (a < b) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dimension ", a, " - ", b, " is negative"));
  }
  return a - b;
}

absl::StatusOr<int64_t> MultiplyDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kUnknownDim || b == kUnknownDim) return kUnknownDim;
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dimension ", a, " x ", b, " is out of range"));
  }
  return product;
}

absl::StatusOr<int64_t> DivideDimsEvenly(int64_t a, int64_t b) {
  if (a == kUnknownDim || b == kUnknownDim) return kUnknownDim;
  OPTFARM_CHECK(b > 0);
  if (a % b != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dimension ", a, " is not divisible by ", b));
  }
  return a / b;
}

bool PartialValue::is_known() const {
  return std::all_of(elements.begin(), elements.end(),
                     [](const auto& e) { return e.has_value(); });
}

}  // namespace optfarm::graph
