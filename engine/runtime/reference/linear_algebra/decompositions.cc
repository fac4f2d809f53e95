// Decompositions of the matrices in the last two dimensions, through Eigen:
// Cholesky, Lu, Qr, eigenvectors. What is not unique (signs and order of
// vectors) may differ from TensorFlow's.

#include <Eigen/Dense>
#include <algorithm>
#include <complex>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/linear_algebra/matrix_batch.h"

namespace optfarm::runtime {
namespace {

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

absl::StatusOr<std::unique_ptr<Kernel>> MakeCholesky(
    const tensorflow::NodeDef& node) {
  const auto compute = [](KernelContext* context,
                          const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(
        input.dtype(), batch, [&](auto wide, int64_t n) -> absl::Status {
          using T = decltype(wide);
          const Eigen::LLT<Matrix<T>> llt(MatrixOf<Matrix<T>>(input, batch, n));
          if (llt.info() != Eigen::Success) {
            return absl::InvalidArgumentError(
                "a matrix is not positive definite");
          }
          Store(Matrix<T>(llt.matrixL()), n, out);
          return absl::OkStatus();
        });
  };
  return MakeMatrixKernel(node, {}, compute);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLu(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "output_idx_type", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType index,
      graph::GetTypeOr(node, "output_idx_type", tensorflow::DT_INT32));
  const auto compute = [index](KernelContext* context,
                               const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape rows,
                             MatrixBatchShape(input, {batch.rows}));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * order,
                             context->AllocateOutput(1, index, rows));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(
        input.dtype(), batch, [&](auto wide, int64_t n) -> absl::Status {
          using T = decltype(wide);
          const Eigen::PartialPivLU<Matrix<T>> lu(
              MatrixOf<Matrix<T>>(input, batch, n));
          if (IsSingular(lu)) return SingularMatrix();
          Store(lu.matrixLU(), n, out);
          // Which row of the input each row of the product is.
          const Eigen::PermutationMatrix<Eigen::Dynamic> inverse =
              lu.permutationP().transpose();
          return VisitInteger(index, "p", [&](auto tag) -> absl::Status {
            using Index = typename decltype(tag)::type;
            std::copy_n(inverse.indices().data(), batch.rows,
                        order->data<Index>() + n * batch.rows);
            return absl::OkStatus();
          });
        });
  };
  return MakeMatrixKernel(node, {1, 2}, compute);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeQr(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool is_full,
                           graph::GetBoolOr(node, "full_matrices", false));
  const auto compute = [is_full](KernelContext* context,
                                 const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    const int64_t inner = is_full ? batch.rows : batch.smaller();
    OPTFARM_ASSIGN_OR_RETURN(const Shape q_shape,
                             MatrixBatchShape(input, {batch.rows, inner}));
    OPTFARM_ASSIGN_OR_RETURN(const Shape r_shape,
                             MatrixBatchShape(input, {inner, batch.columns}));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * q, context->AllocateOutput(0, input.dtype(), q_shape));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * r, context->AllocateOutput(1, input.dtype(), r_shape));
    if (q_shape.num_elements() == 0 && r_shape.num_elements() == 0) {
      return absl::OkStatus();
    }
    return ForEachMatrix(input.dtype(), batch, [&](auto wide, int64_t n) {
      using T = decltype(wide);
      const Eigen::HouseholderQR<Matrix<T>> qr(
          MatrixOf<Matrix<T>>(input, batch, n));
      Matrix<T> orthogonal = Matrix<T>::Identity(batch.rows, inner);
      orthogonal.applyOnTheLeft(qr.householderQ());
      Store(orthogonal, n, q);
      Matrix<T> upper = Matrix<T>::Zero(inner, batch.columns);
      for (int64_t i = 0; i < batch.smaller(); ++i) {
        upper.row(i).tail(batch.columns - i) =
            qr.matrixQR().row(i).tail(batch.columns - i);
      }
      Store(upper, n, r);
      return absl::OkStatus();
    });
  };
  return MakeMatrixKernel(node, {1, 2, false}, compute);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeEigenvectors(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool compute_v,
                           graph::GetBoolOr(node, "compute_v", true));
  const auto compute = [compute_v](KernelContext* context,
                                   const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape values,
                             MatrixBatchShape(input, {batch.rows}));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * e,
                             context->AllocateOutput(0, input.dtype(), values));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * v,
        context->AllocateOutput(1, input.dtype(),
                                compute_v ? input.shape() : Shape{0}));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(
        input.dtype(), batch, [&](auto wide, int64_t n) -> absl::Status {
          using T = decltype(wide);
          const Eigen::SelfAdjointEigenSolver<Matrix<T>> solver(
              MatrixOf<Matrix<T>>(input, batch, n),
              compute_v ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
          if (solver.info() != Eigen::Success) {
            return absl::InvalidArgumentError(
                "the eigenvalues of a matrix did not converge");
          }
          for (int64_t i = 0; i < batch.rows; ++i) {
            StoreElement(T(solver.eigenvalues()(i)), n * batch.rows + i, e);
          }
          if (compute_v) Store(Matrix<T>(solver.eigenvectors()), n, v);
          return absl::OkStatus();
        });
  };
  return MakeMatrixKernel(node, {}, compute);
}

}  // namespace

void AddDecompositionKernels(KernelCatalog* catalog) {
  catalog->Add("Cholesky", MakeCholesky);
  catalog->Add("Lu", MakeLu);
  catalog->Add("Qr", MakeQr);
  catalog->Add("SelfAdjointEigV2", MakeEigenvectors);
  AddSingularValueKernels(catalog);
}

}  // namespace optfarm::runtime
