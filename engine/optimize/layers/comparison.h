// How far a tensor of the optimized graph is from the original's: error, signal
// to noise, and whether the answers stay the same. Pure arithmetic.

#ifndef OPTFARM_ENGINE_OPTIMIZE_LAYERS_COMPARISON_H_
#define OPTFARM_ENGINE_OPTIMIZE_LAYERS_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// The number of classes when a tensor's rows are scores of classes: its last
// dimension, if that is at least 2 and all between the first and the last are
// 1; else -1.
int64_t ClassesOf(const runtime::Tensor& tensor);

// Numbers of the `most` largest elements of a row, largest first; of equal
// ones the first. NaN is smaller than everything.
std::vector<int64_t> LargestElements(absl::Span<const float> row, size_t most);

// The elements of a numeric or bool tensor as float.
// ERRORS: InvalidArgument for other dtypes.
absl::StatusOr<runtime::Tensor> ToFloat(const runtime::Tensor& tensor);

// Adds up the differences of one tensor over samples.
class TensorComparer {
 public:
  // ERRORS: InvalidArgument when the shapes differ or the dtype has no numbers.
  absl::Status Add(const runtime::Tensor& original,
                   const runtime::Tensor& result);

  // Counts a tensor that the result has in another shape as lost: all of it is
  // noise, and no row agrees.
  // ERRORS: InvalidArgument when the dtype has no numbers.
  absl::Status AddLost(const runtime::Tensor& original);

  // Name and op are the caller's.
  v1::TensorComparison Result() const;

 private:
  // Adds values when all of them are finite; else nothing, and returns false.
  bool AddFinite(absl::Span<const float> from, absl::Span<const float> to);
  void AddAny(absl::Span<const float> from, absl::Span<const float> to);
  void AddRows(absl::Span<const float> original, absl::Span<const float> result,
               int64_t classes);

  int64_t samples_ = 0;
  int64_t elements_ = 0;
  int64_t non_finite_ = 0;
  int64_t rows_ = 0;
  int64_t rows_agreeing_ = 0;
  bool has_classes_ = true;
  double max_error_ = 0;
  double error_sum_ = 0;
  double max_value_ = 0;
  double signal_ = 0;
  double noise_ = 0;
};

// Counts right answers over labelled samples.
class AccuracyCounter {
 public:
  // `scores` holds one row. REQUIRES: float.
  void Add(const runtime::Tensor& scores, int64_t label);
  v1::Accuracy Result() const;

 private:
  int64_t samples_ = 0;
  int64_t top1_ = 0;
  int64_t top5_ = 0;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_LAYERS_COMPARISON_H_
