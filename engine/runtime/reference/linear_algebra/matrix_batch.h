// Tensors whose last two dimensions are matrices: what the kernels of linear
// algebra share. They compute in double precision whatever the tensors hold:
// Eigen's decompositions are much code for each type, and few graphs have them.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_LINEAR_ALGEBRA_MATRIX_BATCH_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_LINEAR_ALGEBRA_MATRIX_BATCH_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

struct MatrixBatch {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t smaller() const { return std::min(rows, columns); }
  int64_t size() const { return rows * columns; }
};

// ERRORS: InvalidArgument for a rank below 2, matrices that are not square
// where they must be, or larger than 8192 rows or columns.
absl::StatusOr<MatrixBatch> ReadMatrixBatch(const Tensor& tensor,
                                            absl::string_view name,
                                            bool must_be_square);

// The leading dimensions of `tensor`, then `last`. REQUIRES: rank 2 or more.
absl::StatusOr<Shape> MatrixBatchShape(const Tensor& tensor,
                                       std::initializer_list<int64_t> last);

// ERRORS: Unimplemented when the node's T is no float or complex type.
absl::Status RequireFieldType(const tensorflow::NodeDef& node);

// As RequireInputs and RequireOutputs; the first input's dtype is one of the
// four that the kernels compute.
absl::Status RequireMatrixOp(const KernelContext& context, int inputs,
                             int outputs);

// What a solver says of a matrix without an inverse.
absl::Status SingularMatrix();

// What a kernel wants of its node.
struct MatrixOp {
  int inputs = 1;
  int outputs = 1;
  // Of input 0.
  bool must_be_square = true;
};

// A kernel for nodes whose T is a float or complex type: `compute` gets the
// context, whose inputs and outputs were counted, and the batch of input 0.
template <typename Compute>
absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixKernel(
    const tensorflow::NodeDef& node, const MatrixOp& op, Compute compute) {
  OPTFARM_RETURN_IF_ERROR(RequireFieldType(node));
  return MakeKernel([op, compute](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireMatrixOp(*context, op.inputs, op.outputs));
    OPTFARM_ASSIGN_OR_RETURN(
        const MatrixBatch batch,
        ReadMatrixBatch(context->input(0), "input", op.must_be_square));
    return compute(context, batch);
  });
}

// Calls `visit` with a value of the type to compute in: double or
// std::complex<double>.
template <typename Visitor>
auto VisitWide(DataType dtype, Visitor visit) {
  const bool is_real =
      dtype == tensorflow::DT_FLOAT || dtype == tensorflow::DT_DOUBLE;
  return is_real ? visit(double()) : visit(std::complex<double>());
}

// Calls `visit(wide, n)` for each matrix of the batch until one fails; `wide`
// is as above. Leaves a run that is to end.
template <typename Visitor>
absl::Status ForEachMatrix(DataType dtype, const MatrixBatch& batch,
                           Visitor visit) {
  return VisitWide(dtype, [&](auto wide) -> absl::Status {
    for (int64_t n = 0; n < batch.count; ++n) {
      LeaveIfRunEnded();
      OPTFARM_RETURN_IF_ERROR(visit(wide, n));
    }
    return absl::OkStatus();
  });
}

// Calls `visit` with the tensor's elements as they are stored, of which Wide,
// double or std::complex<double>, is the wide type.
template <typename Wide, typename Visitor>
void VisitStored(const Tensor& tensor, Visitor visit) {
  using Narrow = std::conditional_t<std::is_same_v<Wide, double>, float,
                                    std::complex<float>>;
  if (tensor.dtype() == DataTypeOf<Wide>::kValue) {
    visit(tensor.data<Wide>());
  } else {
    visit(tensor.data<Narrow>());
  }
}

// Matrix n of the batch, as an Eigen::Matrix stored by rows: its type is the
// template's argument because Eigen stays out of headers.
template <typename Matrix>
Matrix MatrixOf(const Tensor& tensor, const MatrixBatch& batch, int64_t n) {
  Matrix matrix(batch.rows, batch.columns);
  VisitStored<typename Matrix::Scalar>(tensor, [&](const auto* from) {
    std::copy_n(from + n * batch.size(), batch.size(), matrix.data());
  });
  return matrix;
}

// Writes matrix n of `out`, which holds matrices of the size of `value`.
template <typename Matrix>
void Store(const Matrix& value, int64_t n, Tensor* out) {
  VisitStored<typename Matrix::Scalar>(*out, [&](const auto* begin) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(begin)>>;
    std::transform(value.data(), value.data() + value.size(),
                   out->data<T>() + n * value.size(),
                   [](const auto& element) { return T(element); });
  });
}

// Element n of `out`.
template <typename Wide>
void StoreElement(const Wide& value, int64_t n, Tensor* out) {
  VisitStored<Wide>(*out, [&](const auto* begin) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(begin)>>;
    out->data<T>()[n] = T(value);
  });
}

// Svd (singular_values.cc), part of the decompositions' family.
void AddSingularValueKernels(KernelCatalog* catalog);

// Of an Eigen::PartialPivLU.
template <typename Lu>
bool IsSingular(const Lu& lu) {
  return !(lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_LINEAR_ALGEBRA_MATRIX_BATCH_H_
