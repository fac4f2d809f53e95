#include "engine/transforms/pruning/low_rank.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace optfarm::transforms {
namespace {

// A difference that is nothing but the rounding of floats.
constexpr double kLeastTolerance = 1e-6;

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<float> Floats(const Matrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(matrix.data()[i]);
  }
  return values;
}

// How many of the largest of these squares, which ascend, have to stay so that
// the others sum up to at most `most`.
Eigen::Index RankFor(const Eigen::VectorXd& squares, double most) {
  double left_out = 0;
  for (Eigen::Index i = 0; i < squares.size(); ++i) {
    // Rounding may leave squares a little below zero.
    left_out += std::max(squares[i], 0.0);
    if (left_out > most) return squares.size() - i;
  }
  return 1;
}

}  // namespace

std::optional<LowRank> FindLowRank(absl::Span<const float> matrix,
                                   int64_t columns, double tolerance,
                                   int64_t most_rank) {
  const auto rows = static_cast<Eigen::Index>(matrix.size()) / columns;
  const Matrix wide =
      Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic,
                                     Eigen::RowMajor>>(matrix.data(), rows,
                                                       columns)
          .cast<double>();
  const double square = wide.squaredNorm();
  if (!std::isfinite(square)) return std::nullopt;
  // Of M^T M or M M^T the smaller one: its eigenvalues are the squares of the
  // singular values, its eigenvectors the singular vectors of one side.
  const bool is_tall = rows >= columns;
  const Matrix gram = is_tall ? Matrix(wide.transpose() * wide)
                              : Matrix(wide * wide.transpose());
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);
  if (solver.info() != Eigen::Success) return std::nullopt;
  const double share = std::max(tolerance, kLeastTolerance);
  const Eigen::Index rank =
      RankFor(solver.eigenvalues(), share * share * square);
  if (rank > most_rank) return std::nullopt;
  const Matrix vectors = solver.eigenvectors().rightCols(rank);
  // Square roots of singular values.
  const Eigen::VectorXd roots =
      solver.eigenvalues().tail(rank).cwiseMax(1e-300).cwiseSqrt().cwiseSqrt();
  const Eigen::VectorXd inverse = roots.cwiseInverse();
  LowRank result;
  result.rank = rank;
  if (is_tall) {
    result.first = Floats(wide * vectors * inverse.asDiagonal());
    result.second = Floats(roots.asDiagonal() * vectors.transpose());
  } else {
    result.first = Floats(vectors * roots.asDiagonal());
    result.second = Floats(inverse.asDiagonal() * (vectors.transpose() * wide));
  }
  return result;
}

}  // namespace optfarm::transforms
