// Tensors whose last two dimensions are matrices: what the kernels of linear
// algebra share.

#ifndef OPTFARM_ENGINE_RUNTIME_KERNELS_MATRIX_BATCH_H_
#define OPTFARM_ENGINE_RUNTIME_KERNELS_MATRIX_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/kernels/dtype_switch.h"
#include "engine/runtime/run_bounds.h"
#include "engine/runtime/tensor.h"
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

// What a solver says of a matrix without an inverse.
absl::Status SingularMatrix();

// Matrix n of the batch, as an Eigen::Matrix stored by rows: its type is the
// template's argument because Eigen stays out of headers. Leaves a run that is
// to end.
template <typename Matrix>
Matrix MatrixOf(const Tensor& tensor, const MatrixBatch& batch, int64_t n) {
  LeaveIfRunEnded();
  using T = typename Matrix::Scalar;
  return Matrix::Map(tensor.data<T>() + n * batch.size(), batch.rows,
                     batch.columns);
}

// Writes matrix n of `out`, which holds matrices of the size of `value`.
template <typename Matrix, typename Value>
void Store(const Value& value, int64_t n, Tensor* out) {
  using T = typename Matrix::Scalar;
  const int64_t size = value.rows() * value.cols();
  Matrix::Map(out->data<T>() + n * size, value.rows(), value.cols()) = value;
}

// Of an Eigen::PartialPivLU.
template <typename Lu>
bool IsSingular(const Lu& lu) {
  return !(lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0);
}

// Float and complex types.
template <typename Visitor>
absl::Status VisitField(DataType dtype, absl::string_view name, Visitor visit) {
  if (dtype == tensorflow::DT_FLOAT || dtype == tensorflow::DT_DOUBLE) {
    return VisitFloat(dtype, name, visit);
  }
  return VisitComplex(dtype, name, visit);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNELS_MATRIX_BATCH_H_
