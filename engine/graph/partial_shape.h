// What is known of a tensor's shape before the graph runs: nothing, its rank,
// or also some or all of its dimensions; and the rules for combining such
// knowledge. Also a partly known integer tensor, for the tensors that carry
// shapes.

#ifndef OPTFARM_ENGINE_GRAPH_PARTIAL_SHAPE_H_
#define OPTFARM_ENGINE_GRAPH_PARTIAL_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

namespace optfarm::graph {

// A dimension whose size is not known.
inline constexpr int64_t kUnknownDim = -1;

// The largest rank a shape may have, as in TensorFlow.
inline constexpr int kMaxRank = 254;

// A value: cheap to copy for the ranks models have.
class PartialShape {
 public:
  // Unknown rank.
  PartialShape() = default;
  // REQUIRES: at most kMaxRank dimensions, each >= 0 or kUnknownDim.
  explicit PartialShape(std::vector<int64_t> dims);

  static PartialShape Unknown() { return PartialShape(); }
  static PartialShape OfRank(int rank);
  static PartialShape Scalar() { return PartialShape(std::vector<int64_t>()); }
  static PartialShape Vector(int64_t size) { return PartialShape({size}); }
  static PartialShape Matrix(int64_t rows, int64_t columns) {
    return PartialShape(std::vector<int64_t>{rows, columns});
  }

  // ERRORS: InvalidArgument for a dimension below -1 or too many of them.
  static absl::StatusOr<PartialShape> FromProto(
      const tensorflow::TensorShapeProto& proto);
  tensorflow::TensorShapeProto ToProto() const;

  // Parses "1,224,224,3" or "[1,224,224,3]"; "?" or "-1" is an unknown
  // dimension, "" or "[]" a scalar, "<unknown>" an unknown rank.
  // ERRORS: InvalidArgument.
  static absl::StatusOr<PartialShape> Parse(absl::string_view text);
  // "[1,?,3]", "[]" or "<unknown>".
  std::string ToString() const;

  bool has_rank() const { return has_rank_; }
  // REQUIRES: has_rank().
  int rank() const;
  // Dimension i; a negative i counts from the end. kUnknownDim when the rank is
  // unknown. REQUIRES: i is within a known rank.
  int64_t dim(int i) const;
  // REQUIRES: as dim(), and has_rank().
  void set_dim(int i, int64_t size);
  // REQUIRES: has_rank().
  absl::Span<const int64_t> dims() const;

  // Whether rank and all dimensions are known.
  bool is_static() const;
  // Number of elements; nullopt when not static or beyond 63 bits.
  std::optional<int64_t> elements() const;

  // Dimensions begin..end-1 (negative counts from the end, both are clamped);
  // unknown rank stays unknown.
  PartialShape Slice(int begin, int end = kMaxRank) const;

  friend bool operator==(const PartialShape&, const PartialShape&) = default;

 private:
  bool has_rank_ = false;
  std::vector<int64_t> dims_;
};

// --- Combining ---------------------------------------------------------------
// All errors are InvalidArgument and name the sizes that do not fit.

// What is known when both are said of one tensor.
absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b);
absl::StatusOr<PartialShape> MergeShapes(const PartialShape& a,
                                         const PartialShape& b);
// What is sure when the tensor is one or the other.
PartialShape CommonShape(const PartialShape& a, const PartialShape& b);
// The shape with its rank asserted.
absl::StatusOr<PartialShape> WithRank(const PartialShape& shape, int rank);
absl::StatusOr<PartialShape> WithRankAtLeast(const PartialShape& shape,
                                             int rank);
absl::StatusOr<PartialShape> WithRankAtMost(const PartialShape& shape,
                                            int rank);
// a's dimensions, then b's; unknown when either rank is, an error when the
// result has more than kMaxRank.
absl::StatusOr<PartialShape> ConcatenateShapes(const PartialShape& a,
                                               const PartialShape& b);
// The shape of an elementwise operation, as numpy broadcasts.
absl::StatusOr<PartialShape> BroadcastShapes(const PartialShape& a,
                                             const PartialShape& b);

// Arithmetic on dimensions; unknown when either side is (a product with 0 is
// 0). Negative results and overflow are errors.
absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> SubtractDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> MultiplyDims(int64_t a, int64_t b);
// REQUIRES: b > 0 or unknown. An error when b does not divide a.
absl::StatusOr<int64_t> DivideDimsEvenly(int64_t a, int64_t b);

// --- Values ------------------------------------------------------------------

// A whole-number tensor of known shape, some of whose elements are known.
struct PartialValue {
  std::vector<int64_t> dims;
  // Row-major; as many as the product of dims.
  std::vector<std::optional<int64_t>> elements;

  static PartialValue Scalar(std::optional<int64_t> value) {
    return {{}, {value}};
  }
  static PartialValue Vector(std::vector<std::optional<int64_t>> values) {
    const int64_t size = static_cast<int64_t>(values.size());
    return {{size}, std::move(values)};
  }
  int rank() const { return static_cast<int>(dims.size()); }
  bool is_known() const;
};

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_PARTIAL_SHAPE_H_
