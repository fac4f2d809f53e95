// MatMul and BatchMatMul.

#include <algorithm>
#include <complex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/linear_algebra/matrix_product.h"

namespace optfarm::runtime {
namespace {

struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
};

// The last two dimensions of both, checked against each other.
struct Sizes {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
};

absl::StatusOr<Sizes> MatchSizes(const Tensor& a, const Tensor& b,
                                 const Product& product) {
  const int ra = a.rank();
  const int rb = b.rank();
  Sizes sizes{a.dim(ra - 2), a.dim(ra - 1), b.dim(rb - 1)};
  int64_t inner_b = b.dim(rb - 2);
  if (product.transpose_a) std::swap(sizes.rows, sizes.inner);
  if (product.transpose_b) std::swap(sizes.columns, inner_b);
  if (sizes.inner != inner_b) {
    return absl::InvalidArgumentError(absl::StrCat(
        "matrices of shapes ", a.shape().ToString(),
        product.transpose_a ? " (transposed)" : "", " and ",
        b.shape().ToString(), product.transpose_b ? " (transposed)" : "",
        " cannot be multiplied: ", sizes.inner, " is not ", inner_b));
  }
  return sizes;
}

template <typename T>
void MultiplyBatch(const Tensor& a, const Tensor& b, const Product& product,
                   const Sizes& s, const std::vector<int64_t>& from_a,
                   const std::vector<int64_t>& from_b, ThreadPool* pool,
                   Tensor* out) {
  for (size_t i = 0; i < from_a.size(); ++i) {
    LeaveIfRunEnded();
    const Factor<T> left{a.data<T>() + from_a[i] * s.rows * s.inner, s.rows,
                         s.inner, product.transpose_a};
    const Factor<T> right{b.data<T>() + from_b[i] * s.inner * s.columns,
                          s.inner, s.columns, product.transpose_b};
    T* to = out->data<T>() + static_cast<int64_t>(i) * s.rows * s.columns;
    Multiply(left, right, pool, to);
  }
}

// Every type that this build has but int8: Eigen's product is much code for
// each.
template <typename Visitor>
absl::Status VisitFactor(DataType dtype, Visitor visit) {
  return VisitNumberOrComplex(dtype, "a", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, int8_t> ||
                  !IsTypeSelected(DataTypeOf<T>::kValue)) {
      return UnsupportedDtype("a", DataTypeOf<T>::kValue);
    } else {
      return visit(tag);
    }
  });
}

absl::Status MultiplyAll(const Tensor& a, const Tensor& b,
                         const Product& product, const Sizes& sizes,
                         const std::vector<int64_t>& from_a,
                         const std::vector<int64_t>& from_b, ThreadPool* pool,
                         Tensor* out) {
  if (out->num_elements() == 0) return absl::OkStatus();
  return VisitFactor(a.dtype(), [&](auto tag) -> absl::Status {
    MultiplyBatch<typename decltype(tag)::type>(a, b, product, sizes, from_a,
                                                from_b, pool, out);
    return absl::OkStatus();
  });
}

absl::Status RequireProductType(const tensorflow::NodeDef& node) {
  return RequireTypeAttr(
      node, "T",
      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT16,
       tensorflow::DT_INT32, tensorflow::DT_INT64, tensorflow::DT_UINT8,
       tensorflow::DT_UINT16, tensorflow::DT_UINT32, tensorflow::DT_UINT64,
       tensorflow::DT_COMPLEX64, tensorflow::DT_COMPLEX128});
}

// The adjoint of a complex matrix is conjugated besides.
absl::StatusOr<Tensor> Conjugated(const Tensor& x) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(x.dtype(), x.shape()));
  OPTFARM_RETURN_IF_ERROR(
      VisitComplex(x.dtype(), "x", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        std::transform(x.data<T>(), x.data<T>() + x.num_elements(),
                       out.data<T>(), [](const T& v) { return std::conj(v); });
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatMul(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireProductType(node));
  Product product;
  OPTFARM_ASSIGN_OR_RETURN(product.transpose_a,
                           graph::GetBoolOr(node, "transpose_a", false));
  OPTFARM_ASSIGN_OR_RETURN(product.transpose_b,
                           graph::GetBoolOr(node, "transpose_b", false));
  return MakeKernel([product](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& a = context->input(0);
    const Tensor& b = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(a, b));
    OPTFARM_RETURN_IF_ERROR(RequireRank(a, "a", 2));
    OPTFARM_RETURN_IF_ERROR(RequireRank(b, "b", 2));
    OPTFARM_ASSIGN_OR_RETURN(const Sizes sizes, MatchSizes(a, b, product));
    const int64_t dims[] = {sizes.rows, sizes.columns};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, a.dtype(), shape));
    return MultiplyAll(a, b, product, sizes, {0}, {0}, context->pool(), out);
  });
}

// Which matrix of `shape` each matrix of the result takes, by broadcasting the
// leading dimensions.
std::vector<int64_t> MatrixIndexes(const Shape& shape, const Shape& out,
                                   int64_t count) {
  std::vector<int64_t> indexes(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t stride = 1;
    for (int k = 0; k < shape.rank() - 2; ++k) {
      const int64_t size = shape.dim(shape.rank() - 3 - k);
      const int64_t out_size = out.dim(out.rank() - 3 - k);
      if (size > 1) indexes[i] += rest % out_size * stride;
      stride *= size;
      rest /= out_size;
    }
  }
  return indexes;
}

absl::StatusOr<Shape> BatchShape(const Tensor& a, const Tensor& b,
                                 const Sizes& sizes, bool may_broadcast) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(rank);
  for (int k = 0; k < rank - 2; ++k) {
    const int64_t da = k < a.rank() - 2 ? a.dim(a.rank() - 3 - k) : 1;
    const int64_t db = k < b.rank() - 2 ? b.dim(b.rank() - 3 - k) : 1;
    const bool fits = da == db || (may_broadcast && (da == 1 || db == 1));
    if (!fits || (!may_broadcast && a.rank() != b.rank())) {
      return absl::InvalidArgumentError(
          absl::StrCat("batches of shapes ", a.shape().ToString(), " and ",
                       b.shape().ToString(), " do not match"));
    }
    dims[rank - 3 - k] = da == 1 ? db : da;
  }
  dims[rank - 2] = sizes.rows;
  dims[rank - 1] = sizes.columns;
  return Shape::FromDims(dims);
}

template <bool kMayBroadcast>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBatchMatMul(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireProductType(node));
  Product product;
  OPTFARM_ASSIGN_OR_RETURN(product.transpose_a,
                           graph::GetBoolOr(node, "adj_x", false));
  OPTFARM_ASSIGN_OR_RETURN(product.transpose_b,
                           graph::GetBoolOr(node, "adj_y", false));
  return MakeKernel([product](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    Tensor a = context->input(0);
    Tensor b = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(a, b));
    const bool is_complex = a.dtype() == tensorflow::DT_COMPLEX64 ||
                            a.dtype() == tensorflow::DT_COMPLEX128;
    if (is_complex && product.transpose_a) {
      OPTFARM_ASSIGN_OR_RETURN(a, Conjugated(a));
    }
    if (is_complex && product.transpose_b) {
      OPTFARM_ASSIGN_OR_RETURN(b, Conjugated(b));
    }
    if (a.rank() < 2 || b.rank() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("x and y must have rank 2 or more, but have shapes ",
                       a.shape().ToString(), " and ", b.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Sizes sizes, MatchSizes(a, b, product));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             BatchShape(a, b, sizes, kMayBroadcast));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, a.dtype(), shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t count = DimProduct(shape, 0, shape.rank() - 2);
    return MultiplyAll(
        a, b, product, sizes, MatrixIndexes(a.shape(), shape, count),
        MatrixIndexes(b.shape(), shape, count), context->pool(), out);
  });
}

// Version 3 may multiply two types into a third; one type is what graphs have.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBatchMatMulV3(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType type, graph::GetType(node, "Ta"));
  for (const char* name : {"Tb", "Tout"}) {
    OPTFARM_ASSIGN_OR_RETURN(const DataType other, graph::GetType(node, name));
    if (other != type) return UnsupportedDtype(name, other);
  }
  tensorflow::NodeDef second = node;
  graph::SetType(&second, "T", type);
  return MakeBatchMatMul<true>(second);
}

}  // namespace

void AddMatMulKernels(KernelCatalog* catalog) {
  catalog->Add("MatMul", MakeMatMul);
  catalog->Add("BatchMatMul", MakeBatchMatMul<false>);
  catalog->Add("BatchMatMulV2", MakeBatchMatMul<true>);
  catalog->Add("BatchMatMulV3", MakeBatchMatMulV3);
}

}  // namespace optfarm::runtime
