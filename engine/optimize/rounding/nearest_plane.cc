#include "engine/optimize/rounding/nearest_plane.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace optfarm::optimize {
namespace {

using RowMajor =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix = Eigen::MatrixXd;

Eigen::Map<const RowMajor> AsMatrix(const QuadraticForm& form) {
  const auto n = static_cast<Eigen::Index>(form.size);
  return {form.values.data(), n, n};
}

double Round(double value, double most) {
  return std::clamp(std::round(value), -most, most);
}

// Places sorted by their diagonal elements, the smallest first: those that
// matter most are rounded first, from the end, while the most others are left
// to make up for them.
std::vector<Eigen::Index> OrderOf(const QuadraticForm& form) {
  std::vector<Eigen::Index> order(form.size);
  std::iota(order.begin(), order.end(), Eigen::Index{0});
  const auto matrix = AsMatrix(form);
  std::stable_sort(order.begin(), order.end(),
                   [&](Eigen::Index a, Eigen::Index b) {
                     return matrix(a, a) < matrix(b, b);
                   });
  return order;
}

// The upper triangle R with form + damping = R'R in the given order; empty when
// there is none.
Matrix Factor(const QuadraticForm& form, const std::vector<Eigen::Index>& order,
              double damping) {
  const auto matrix = AsMatrix(form);
  const double added = damping * matrix.diagonal().mean();
  if (!(added > 0)) return {};
  const Eigen::Index n = matrix.rows();
  Matrix permuted(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      permuted(i, j) =
          matrix(std::max(order[i], order[j]), std::min(order[i], order[j]));
    }
    permuted(i, i) += added;
  }
  const Eigen::LLT<Matrix> factored(permuted);
  if (factored.info() != Eigen::Success) return {};
  return factored.matrixU();
}

}  // namespace

std::vector<double> RoundToNearestPlanes(const QuadraticForm& form,
                                         absl::Span<const double> targets,
                                         size_t columns, double damping,
                                         double most) {
  std::vector<double> rounded(targets.begin(), targets.end());
  for (double& value : rounded) value = Round(value, most);
  if (form.size == 0 || columns == 0) return rounded;
  const std::vector<Eigen::Index> order = OrderOf(form);
  const Matrix factor = Factor(form, order, damping);
  if (factor.size() == 0) return rounded;
  const auto n = static_cast<Eigen::Index>(form.size);
  const auto count = static_cast<Eigen::Index>(columns);
  const Eigen::Map<const RowMajor> wanted(targets.data(), n, count);
  Eigen::Map<RowMajor> result(rounded.data(), n, count);
  RowMajor errors = RowMajor::Zero(n, count);
  for (Eigen::Index i = n; i-- > 0;) {
    const Eigen::Index behind = n - 1 - i;
    const Eigen::RowVectorXd carried =
        factor.row(i).tail(behind) * errors.bottomRows(behind) / factor(i, i);
    for (Eigen::Index c = 0; c < count; ++c) {
      const double t = wanted(order[i], c);
      const double p = Round(t + carried(c), most);
      result(order[i], c) = p;
      errors(i, c) = t - p;
    }
  }
  return rounded;
}

std::vector<double> ErrorsUnder(const QuadraticForm& form,
                                absl::Span<const double> errors,
                                size_t columns) {
  std::vector<double> sums(columns, 0.0);
  if (form.size == 0 || columns == 0) return sums;
  const Eigen::Map<const RowMajor> e(errors.data(),
                                     static_cast<Eigen::Index>(form.size),
                                     static_cast<Eigen::Index>(columns));
  const Matrix product =
      AsMatrix(form).selfadjointView<Eigen::Lower>() * Matrix(e);
  for (size_t c = 0; c < columns; ++c) {
    const auto column = static_cast<Eigen::Index>(c);
    sums[c] = product.col(column).dot(e.col(column));
  }
  return sums;
}

}  // namespace optfarm::optimize
