#include "engine/runtime/reference/linear_algebra/matrix_batch.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"

namespace optfarm::runtime {
namespace {

// Decompositions take cubic time; larger matrices are taken for an attack.
constexpr int64_t kMaxSize = 8192;

}  // namespace

absl::StatusOr<MatrixBatch> ReadMatrixBatch(const Tensor& tensor,
                                            absl::string_view name,
                                            bool must_be_square) {
  const int rank = tensor.rank();
  if (rank < 2 ||
      (must_be_square && tensor.dim(rank - 1) != tensor.dim(rank - 2)) ||
      tensor.dim(rank - 1) > kMaxSize || tensor.dim(rank - 2) > kMaxSize) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' must hold ", must_be_square ? "square " : "",
        "matrices of at most ", kMaxSize, " rows and columns, but has shape ",
        tensor.shape().ToString()));
  }
  return MatrixBatch{DimProduct(tensor.shape(), 0, rank - 2),
                     tensor.dim(rank - 2), tensor.dim(rank - 1)};
}

absl::StatusOr<Shape> MatrixBatchShape(const Tensor& tensor,
                                       std::initializer_list<int64_t> last) {
  std::vector<int64_t> dims(tensor.shape().dims().begin(),
                            tensor.shape().dims().end() - 2);
  dims.insert(dims.end(), last.begin(), last.end());
  return Shape::FromDims(dims);
}

absl::Status RequireFieldType(const tensorflow::NodeDef& node) {
  return RequireTypeAttr(node, "T", OPTFARM_FLOAT_AND_COMPLEX_TYPES);
}

absl::Status RequireMatrixOp(const KernelContext& context, int inputs,
                             int outputs) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, inputs));
  OPTFARM_RETURN_IF_ERROR(RequireOutputs(context, outputs));
  const DataType dtype = context.input(0).dtype();
  if (dtype == tensorflow::DT_FLOAT || dtype == tensorflow::DT_DOUBLE ||
      dtype == tensorflow::DT_COMPLEX64 || dtype == tensorflow::DT_COMPLEX128) {
    return absl::OkStatus();
  }
  return UnsupportedDtype("input", dtype);
}

absl::Status SingularMatrix() {
  return absl::InvalidArgumentError("a matrix is not invertible");
}

}  // namespace optfarm::runtime
