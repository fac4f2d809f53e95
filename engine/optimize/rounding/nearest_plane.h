// Whole numbers near real ones, under a quadratic form: each is rounded after
// the errors of those before it were taken into account. With the second
// moments of a layer's inputs as the form it is what GPTQ does (Frantar et al.
// 2022), with the form's Cholesky factor Babai's nearest plane (1986). Formulas
// 29 and 30 of docs/quantization.md.

#ifndef OPTFARM_ENGINE_OPTIMIZE_ROUNDING_NEAREST_PLANE_H_
#define OPTFARM_ENGINE_OPTIMIZE_ROUNDING_NEAREST_PLANE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace optfarm::optimize {

// A symmetric matrix: rows one after another, of which the part up to the
// diagonal counts.
struct QuadraticForm {
  size_t size = 0;
  std::vector<double> values;
};

// Whole numbers p, at most `most` in magnitude, that make
// (t - p)' form (t - p) small, for each of the `columns` of `targets`, which
// has form.size rows; p has the same order. `damping` times the mean of the
// diagonal is added to the diagonal, so that directions in which the form knows
// nothing keep p near t. All targets are rounded to the nearest number when
// the form is not a positive one.
// THREADS: uses one; the same numbers on every call.
std::vector<double> RoundToNearestPlanes(const QuadraticForm& form,
                                         absl::Span<const double> targets,
                                         size_t columns, double damping,
                                         double most);

// e' form e of each column of `errors`.
std::vector<double> ErrorsUnder(const QuadraticForm& form,
                                absl::Span<const double> errors,
                                size_t columns);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_ROUNDING_NEAREST_PLANE_H_
