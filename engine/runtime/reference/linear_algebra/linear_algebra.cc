// Determinants, inverses and solvers over the last two dimensions, through
// Eigen.

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <complex>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/linear_algebra/matrix_batch.h"

namespace optfarm::runtime {
namespace {

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

absl::StatusOr<std::unique_ptr<Kernel>> MakeDeterminant(
    const tensorflow::NodeDef& node) {
  const auto compute = [](KernelContext* context,
                          const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, MatrixBatchShape(input, {}));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), shape));
    return ForEachMatrix(input.dtype(), batch, [&](auto wide, int64_t n) {
      using T = decltype(wide);
      const T value = batch.rows == 0
                          ? T(1)
                          : Eigen::PartialPivLU<Matrix<T>>(
                                MatrixOf<Matrix<T>>(input, batch, n))
                                .determinant();
      StoreElement(value, n, out);
      return absl::OkStatus();
    });
  };
  return MakeMatrixKernel(node, {}, compute);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLogDeterminant(
    const tensorflow::NodeDef& node) {
  const auto compute = [](KernelContext* context,
                          const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, MatrixBatchShape(input, {}));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * sign,
                             context->AllocateOutput(0, input.dtype(), shape));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * log,
                             context->AllocateOutput(1, input.dtype(), shape));
    return ForEachMatrix(input.dtype(), batch, [&](auto wide, int64_t n) {
      using T = decltype(wide);
      T product_sign(1);
      double sum = 0;
      if (batch.rows > 0) {
        const Eigen::PartialPivLU<Matrix<T>> lu(
            MatrixOf<Matrix<T>>(input, batch, n));
        product_sign = T(static_cast<double>(lu.permutationP().determinant()));
        for (int64_t i = 0; i < batch.rows; ++i) {
          const T pivot = lu.matrixLU()(i, i);
          const double size = std::abs(pivot);
          sum += std::log(size);
          product_sign *= size > 0 ? pivot / size : T(0);
        }
      }
      StoreElement(product_sign, n, sign);
      StoreElement(T(sum), n, log);
      return absl::OkStatus();
    });
  };
  return MakeMatrixKernel(node, {1, 2}, compute);
}

// Matrix n of the batch, or its adjoint, decomposed.
// ERRORS: InvalidArgument when it has no inverse.
template <typename T>
absl::StatusOr<Eigen::PartialPivLU<Matrix<T>>> DecomposeInvertible(
    const Tensor& input, const MatrixBatch& batch, int64_t n, bool adjoint) {
  Matrix<T> matrix = MatrixOf<Matrix<T>>(input, batch, n);
  if (adjoint) matrix.adjointInPlace();
  Eigen::PartialPivLU<Matrix<T>> lu(matrix);
  if (IsSingular(lu)) return SingularMatrix();
  return lu;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInverse(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint,
                           graph::GetBoolOr(node, "adjoint", false));
  const auto compute = [adjoint](KernelContext* context,
                                 const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(
        input.dtype(), batch, [&](auto wide, int64_t n) -> absl::Status {
          using T = decltype(wide);
          OPTFARM_ASSIGN_OR_RETURN(
              const auto lu, DecomposeInvertible<T>(input, batch, n, adjoint));
          Store(Matrix<T>(lu.inverse()), n, out);
          return absl::OkStatus();
        });
  };
  return MakeMatrixKernel(node, {}, compute);
}

// The right-hand sides, checked against the matrices.
absl::StatusOr<MatrixBatch> ReadSides(const Tensor& rhs, const Tensor& matrix) {
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(matrix, rhs));
  OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch sides,
                           ReadMatrixBatch(rhs, "rhs", false));
  const int rank = matrix.rank();
  const auto a = matrix.shape().dims();
  const auto b = rhs.shape().dims();
  if (rhs.rank() != rank || a.subspan(0, rank - 1) != b.subspan(0, rank - 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rhs of shape ", rhs.shape().ToString(),
        " does not fit matrices of shape ", matrix.shape().ToString()));
  }
  return sides;
}

// A kernel that gives, for each matrix and its right-hand side,
// solve(wide, batch, sides, n), a matrix of the side's size or an error.
template <typename Solve>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSolver(
    const tensorflow::NodeDef& node, Solve solve) {
  const auto compute = [solve](KernelContext* context,
                               const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    const Tensor& rhs = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch sides, ReadSides(rhs, input));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, rhs.dtype(), rhs.shape()));
    if (rhs.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(
        input.dtype(), batch, [&](auto wide, int64_t n) -> absl::Status {
          using T = decltype(wide);
          OPTFARM_ASSIGN_OR_RETURN(
              const Matrix<T> result,
              solve(input, batch, n, MatrixOf<Matrix<T>>(rhs, sides, n)));
          Store(result, n, out);
          return absl::OkStatus();
        });
  };
  return MakeMatrixKernel(node, {2, 1}, compute);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSolve(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint,
                           graph::GetBoolOr(node, "adjoint", false));
  return MakeSolver(
      node,
      [adjoint](const Tensor& input, const MatrixBatch& batch, int64_t n,
                const auto& rhs)
          -> absl::StatusOr<std::remove_cvref_t<decltype(rhs)>> {
        using T = typename std::remove_cvref_t<decltype(rhs)>::Scalar;
        OPTFARM_ASSIGN_OR_RETURN(
            const auto lu, DecomposeInvertible<T>(input, batch, n, adjoint));
        return Matrix<T>(lu.solve(rhs));
      });
}

template <typename T>
Matrix<T> SolveTriangle(const Matrix<T>& matrix, const Matrix<T>& rhs,
                        bool lower, bool adjoint) {
  if (adjoint) return SolveTriangle<T>(matrix.adjoint(), rhs, !lower, false);
  if (lower) return matrix.template triangularView<Eigen::Lower>().solve(rhs);
  return matrix.template triangularView<Eigen::Upper>().solve(rhs);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangularSolve(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool lower,
                           graph::GetBoolOr(node, "lower", true));
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint,
                           graph::GetBoolOr(node, "adjoint", false));
  return MakeSolver(
      node,
      [lower, adjoint](const Tensor& input, const MatrixBatch& batch, int64_t n,
                       const auto& rhs)
          -> absl::StatusOr<std::remove_cvref_t<decltype(rhs)>> {
        using T = typename std::remove_cvref_t<decltype(rhs)>::Scalar;
        const auto matrix = MatrixOf<Matrix<T>>(input, batch, n);
        if ((matrix.diagonal().array() == T(0)).any()) return SingularMatrix();
        return SolveTriangle<T>(matrix, rhs, lower, adjoint);
      });
}

}  // namespace

void AddLinearAlgebraKernels(KernelCatalog* catalog) {
  catalog->Add("MatrixDeterminant", MakeDeterminant);
  catalog->Add("LogMatrixDeterminant", MakeLogDeterminant);
  catalog->Add("MatrixInverse", MakeInverse);
  catalog->Add("MatrixSolve", MakeSolve);
  catalog->Add("MatrixTriangularSolve", MakeTriangularSolve);
}

}  // namespace optfarm::runtime
