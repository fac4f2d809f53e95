// Decompositions of the matrices in the last two dimensions, through Eigen:
// Cholesky, Lu, Qr, Svd, eigenvectors. What is not unique (signs and order of
// vectors) may differ from TensorFlow's.

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

absl::StatusOr<std::unique_ptr<Kernel>> MakeCholesky(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  return MakeKernel([](KernelContext* context) -> absl::Status {
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
        const Eigen::LLT<Matrix<T>> llt(MatrixOf<Matrix<T>>(input, batch, n));
        if (llt.info() != Eigen::Success) {
          return absl::InvalidArgumentError(
              "a matrix is not positive definite");
        }
        Store<Matrix<T>>(Matrix<T>(llt.matrixL()), n, out);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLu(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "output_idx_type", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType index,
      graph::GetTypeOr(node, "output_idx_type", tensorflow::DT_INT32));
  return MakeKernel([index](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "input", true));
    OPTFARM_ASSIGN_OR_RETURN(const Shape rows,
                             MatrixBatchShape(input, {batch.rows}));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * order,
                             context->AllocateOutput(1, index, rows));
    if (input.num_elements() == 0) return absl::OkStatus();
    return VisitField(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        const Eigen::PartialPivLU<Matrix<T>> lu(
            MatrixOf<Matrix<T>>(input, batch, n));
        if (IsSingular(lu)) return SingularMatrix();
        Store<Matrix<T>>(lu.matrixLU(), n, out);
        // Which row of the input each row of the product is.
        const Eigen::PermutationMatrix<Eigen::Dynamic> inverse =
            lu.permutationP().transpose();
        for (int64_t i = 0; i < batch.rows; ++i) {
          const int64_t row = inverse.indices()(i);
          if (index == tensorflow::DT_INT64) {
            order->data<int64_t>()[n * batch.rows + i] = row;
          } else {
            order->data<int32_t>()[n * batch.rows + i] =
                static_cast<int32_t>(row);
          }
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeQr(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_full,
                           graph::GetBoolOr(node, "full_matrices", false));
  return MakeKernel([is_full](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "input", false));
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
    return VisitField(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        const Eigen::HouseholderQR<Matrix<T>> qr(
            MatrixOf<Matrix<T>>(input, batch, n));
        const Matrix<T> identity = Matrix<T>::Identity(batch.rows, inner);
        Store<Matrix<T>>(Matrix<T>(qr.householderQ() * identity), n, q);
        Matrix<T> upper = Matrix<T>::Zero(inner, batch.columns);
        upper.topRows(std::min(inner, batch.rows)) =
            qr.matrixQR().topRows(std::min(inner, batch.rows));
        Store<Matrix<T>>(
            Matrix<T>(upper.template triangularView<Eigen::Upper>()), n, r);
      }
      return absl::OkStatus();
    });
  });
}

struct SvdAttrs {
  bool compute_uv = true;
  bool is_full = false;
};

template <typename T>
void ComputeSvd(const Tensor& input, const MatrixBatch& batch,
                const SvdAttrs& attrs, Tensor* s, Tensor* u, Tensor* v) {
  const unsigned options =
      !attrs.compute_uv ? 0u
      : attrs.is_full   ? unsigned{Eigen::ComputeFullU | Eigen::ComputeFullV}
                        : unsigned{Eigen::ComputeThinU | Eigen::ComputeThinV};
  for (int64_t n = 0; n < batch.count; ++n) {
    const Eigen::JacobiSVD<Matrix<T>> svd(MatrixOf<Matrix<T>>(input, batch, n),
                                          options);
    Store<Matrix<T>>(Matrix<T>(svd.singularValues().template cast<T>()), n, s);
    if (!attrs.compute_uv) continue;
    Store<Matrix<T>>(Matrix<T>(svd.matrixU()), n, u);
    Store<Matrix<T>>(Matrix<T>(svd.matrixV()), n, v);
  }
}

template <typename T>
bool IsFinite(const Tensor& tensor) {
  for (const T& value : tensor.flat<T>()) {
    if (!std::isfinite(std::abs(value))) return false;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSvd(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  SvdAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.compute_uv,
                           graph::GetBoolOr(node, "compute_uv", true));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_full,
                           graph::GetBoolOr(node, "full_matrices", false));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 3));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "input", false));
    const int64_t left = attrs.is_full ? batch.rows : batch.smaller();
    const int64_t right = attrs.is_full ? batch.columns : batch.smaller();
    Shape u_shape{0};
    Shape v_shape{0};
    OPTFARM_ASSIGN_OR_RETURN(const Shape s_shape,
                             MatrixBatchShape(input, {batch.smaller()}));
    if (attrs.compute_uv) {
      OPTFARM_ASSIGN_OR_RETURN(u_shape,
                               MatrixBatchShape(input, {batch.rows, left}));
      OPTFARM_ASSIGN_OR_RETURN(v_shape,
                               MatrixBatchShape(input, {batch.columns, right}));
    }
    const DataType dtype = input.dtype();
    OPTFARM_ASSIGN_OR_RETURN(Tensor * s,
                             context->AllocateOutput(0, dtype, s_shape));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * u,
                             context->AllocateOutput(1, dtype, u_shape));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * v,
                             context->AllocateOutput(2, dtype, v_shape));
    return VisitField(dtype, "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      if (input.num_elements() == 0 || !IsFinite<T>(input)) {
        for (Tensor* out : {s, u, v}) {
          std::fill_n(out->data<T>(), out->num_elements(),
                      T(std::numeric_limits<float>::quiet_NaN()));
        }
        return absl::OkStatus();
      }
      ComputeSvd<T>(input, batch, attrs, s, u, v);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeEigenvectors(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  OPTFARM_ASSIGN_OR_RETURN(const bool compute_v,
                           graph::GetBoolOr(node, "compute_v", true));
  return MakeKernel([compute_v](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const MatrixBatch batch,
                             ReadMatrixBatch(input, "input", true));
    OPTFARM_ASSIGN_OR_RETURN(const Shape values,
                             MatrixBatchShape(input, {batch.rows}));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * e,
                             context->AllocateOutput(0, input.dtype(), values));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * v,
        context->AllocateOutput(1, input.dtype(),
                                compute_v ? input.shape() : Shape{0}));
    if (input.num_elements() == 0) return absl::OkStatus();
    return VisitField(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t n = 0; n < batch.count; ++n) {
        const Eigen::SelfAdjointEigenSolver<Matrix<T>> solver(
            MatrixOf<Matrix<T>>(input, batch, n),
            compute_v ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
        if (solver.info() != Eigen::Success) {
          return absl::InvalidArgumentError(
              "the eigenvalues of a matrix did not converge");
        }
        Store<Matrix<T>>(Matrix<T>(solver.eigenvalues().template cast<T>()), n,
                         e);
        if (compute_v) Store<Matrix<T>>(Matrix<T>(solver.eigenvectors()), n, v);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddDecompositionKernels(KernelCatalog* catalog) {
  catalog->Add("Cholesky", MakeCholesky);
  catalog->Add("Lu", MakeLu);
  catalog->Add("Qr", MakeQr);
  catalog->Add("Svd", MakeSvd);
  catalog->Add("SelfAdjointEigV2", MakeEigenvectors);
}

}  // namespace optfarm::runtime
