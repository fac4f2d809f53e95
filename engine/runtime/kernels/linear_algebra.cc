// Determinants, inverses and solvers over the last two dimensions, through
// Eigen.

#include <Eigen/Dense>
#include <algorithm>
#include <complex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/dtype_switch.h"
#include "engine/runtime/kernels/families.h"
#include "engine/runtime/kernels/matrix_batch.h"

namespace optfarm::runtime {
namespace {

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

absl::StatusOr<std::unique_ptr<Kernel>> MakeDeterminant(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "input", true));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, MatrixBatchShape(input, {}));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), shape));
    return VisitField(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        out->data<T>()[n] = batch.rows == 0
                                ? T(1)
                                : Eigen::PartialPivLU<Matrix<T>>(
                                      MatrixOf<Matrix<T>>(input, batch, n))
                                      .determinant();
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLogDeterminant(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "input", true));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, MatrixBatchShape(input, {}));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * sign,
                             context->AllocateOutput(0, input.dtype(), shape));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * log,
                             context->AllocateOutput(1, input.dtype(), shape));
    return VisitField(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        sign->data<T>()[n] = T(1);
        log->data<T>()[n] = T(0);
        if (batch.rows == 0) continue;
        const Eigen::PartialPivLU<Matrix<T>> lu(
            MatrixOf<Matrix<T>>(input, batch, n));
        T product_sign = T(lu.permutationP().determinant());
        auto sum = std::abs(T(0));
        for (int64_t i = 0; i < batch.rows; ++i) {
          const T pivot = lu.matrixLU()(i, i);
          const auto size = std::abs(pivot);
          sum += std::log(size);
          product_sign *= size > 0 ? pivot / size : T(0);
        }
        sign->data<T>()[n] = product_sign;
        log->data<T>()[n] = T(sum);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInverse(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint,
                           graph::GetBoolOr(node, "adjoint", false));
  return MakeKernel([adjoint](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "input", true));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    return VisitField(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        Matrix<T> matrix = MatrixOf<Matrix<T>>(input, batch, n);
        if (adjoint) matrix.adjointInPlace();
        const Eigen::PartialPivLU<Matrix<T>> lu(matrix);
        if (IsSingular(lu)) return SingularMatrix();
        Store<Matrix<T>>(Matrix<T>(lu.inverse()), n, out);
      }
      return absl::OkStatus();
    });
  });
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

absl::StatusOr<std::unique_ptr<Kernel>> MakeSolve(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint,
                           graph::GetBoolOr(node, "adjoint", false));
  return MakeKernel([adjoint](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    const Tensor& rhs = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "matrix", true));
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch sides, ReadSides(rhs, input));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, rhs.dtype(), rhs.shape()));
    if (rhs.num_elements() == 0) return absl::OkStatus();
    return VisitField(input.dtype(), "matrix", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        Matrix<T> matrix = MatrixOf<Matrix<T>>(input, batch, n);
        if (adjoint) matrix.adjointInPlace();
        const Eigen::PartialPivLU<Matrix<T>> lu(matrix);
        if (IsSingular(lu)) return SingularMatrix();
        Store<Matrix<T>>(
            Matrix<T>(lu.solve(MatrixOf<Matrix<T>>(rhs, sides, n))), n, out);
      }
      return absl::OkStatus();
    });
  });
}

template <typename T>
Matrix<T> SolveTriangle(const Matrix<T>& matrix, const Matrix<T>& rhs,
                        bool lower, bool adjoint) {
  if (lower && adjoint) {
    return matrix.template triangularView<Eigen::Lower>().adjoint().solve(rhs);
  }
  if (lower) return matrix.template triangularView<Eigen::Lower>().solve(rhs);
  if (adjoint) {
    return matrix.template triangularView<Eigen::Upper>().adjoint().solve(rhs);
  }
  return matrix.template triangularView<Eigen::Upper>().solve(rhs);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangularSolve(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  OPTFARM_ASSIGN_OR_RETURN(const bool lower,
                           graph::GetBoolOr(node, "lower", true));
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint,
                           graph::GetBoolOr(node, "adjoint", false));
  return MakeKernel([lower, adjoint](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    const Tensor& rhs = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "matrix", true));
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch sides, ReadSides(rhs, input));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, rhs.dtype(), rhs.shape()));
    if (rhs.num_elements() == 0) return absl::OkStatus();
    return VisitField(input.dtype(), "matrix", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        const Matrix<T> matrix = MatrixOf<Matrix<T>>(input, batch, n);
        if ((matrix.diagonal().array() == T(0)).any()) return SingularMatrix();
        Store<Matrix<T>>(
            SolveTriangle<T>(matrix, MatrixOf<Matrix<T>>(rhs, sides, n), lower,
                             adjoint),
            n, out);
      }
      return absl::OkStatus();
    });
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
