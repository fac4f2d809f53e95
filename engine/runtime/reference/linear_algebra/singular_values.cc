// Svd of the matrices in the last two dimensions, through Eigen: apart from the
// other decompositions because it is as much to compile as all of them. What is
// not unique (signs of vectors) may differ from TensorFlow's.

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/linear_algebra/matrix_batch.h"

namespace optfarm::runtime {
namespace {

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct SvdAttrs {
  bool compute_uv = true;
  bool is_full = false;

  unsigned options() const {
    if (!compute_uv) return 0;
    return is_full ? unsigned{Eigen::ComputeFullU | Eigen::ComputeFullV}
                   : unsigned{Eigen::ComputeThinU | Eigen::ComputeThinV};
  }
};

// The three results of a batch.
struct SvdOutputs {
  Tensor* s;
  Tensor* u;
  Tensor* v;
};

absl::StatusOr<SvdOutputs> AllocateSvd(const SvdAttrs& attrs,
                                       const MatrixBatch& batch,
                                       KernelContext* context) {
  const Tensor& input = context->input(0);
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
  SvdOutputs out;
  OPTFARM_ASSIGN_OR_RETURN(out.s, context->AllocateOutput(0, dtype, s_shape));
  OPTFARM_ASSIGN_OR_RETURN(out.u, context->AllocateOutput(1, dtype, u_shape));
  OPTFARM_ASSIGN_OR_RETURN(out.v, context->AllocateOutput(2, dtype, v_shape));
  return out;
}

void FillWithNan(Tensor* out) {
  VisitWide(out->dtype(), [out](auto wide) {
    using T = decltype(wide);
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      StoreElement(T(std::numeric_limits<double>::quiet_NaN()), i, out);
    }
  });
}

template <typename T>
void ComputeSvd(const Matrix<T>& matrix, const SvdAttrs& attrs, int64_t n,
                const SvdOutputs& out) {
  const Eigen::JacobiSVD<Matrix<T>> svd(matrix, attrs.options());
  for (int64_t i = 0; i < svd.singularValues().size(); ++i) {
    StoreElement(T(svd.singularValues()(i)),
                 n * svd.singularValues().size() + i, out.s);
  }
  if (!attrs.compute_uv) return;
  Store(Matrix<T>(svd.matrixU()), n, out.u);
  Store(Matrix<T>(svd.matrixV()), n, out.v);
}

bool IsFinite(const Tensor& tensor) {
  bool is_finite = true;
  VisitWide(tensor.dtype(), [&](auto wide) {
    VisitStored<decltype(wide)>(tensor, [&](const auto* elements) {
      is_finite =
          std::all_of(elements, elements + tensor.num_elements(),
                      [](const auto& e) { return std::isfinite(std::abs(e)); });
    });
  });
  return is_finite;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSvd(
    const tensorflow::NodeDef& node) {
  SvdAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.compute_uv,
                           graph::GetBoolOr(node, "compute_uv", true));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_full,
                           graph::GetBoolOr(node, "full_matrices", false));
  const auto compute = [attrs](KernelContext* context,
                               const MatrixBatch& batch) -> absl::Status {
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const SvdOutputs out,
                             AllocateSvd(attrs, batch, context));
    if (input.num_elements() == 0 || !IsFinite(input)) {
      for (Tensor* tensor : {out.s, out.u, out.v}) FillWithNan(tensor);
      return absl::OkStatus();
    }
    return ForEachMatrix(input.dtype(), batch, [&](auto wide, int64_t n) {
      using T = decltype(wide);
      ComputeSvd<T>(MatrixOf<Matrix<T>>(input, batch, n), attrs, n, out);
      return absl::OkStatus();
    });
  };
  return MakeMatrixKernel(node, {1, 3, false}, compute);
}

}  // namespace

void AddSingularValueKernels(KernelCatalog* catalog) {
  catalog->Add("Svd", MakeSvd);
}

}  // namespace optfarm::runtime
