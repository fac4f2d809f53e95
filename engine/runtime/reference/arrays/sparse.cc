// Sparse tensors, which TensorFlow passes as three dense ones (indices, values,
// shape): SparseToDense, SparseTensorDenseAdd, SparseTensorDenseMatMul,
// SparseReorder, SparseReshape, SparseFillEmptyRows.

#include <algorithm>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// The indices as rows, checked to lie within the shape.
struct SparseIndices {
  std::vector<int64_t> values;
  int64_t count = 0;
  int rank = 0;
  const int64_t* row(int64_t i) const { return values.data() + i * rank; }
};

absl::StatusOr<Shape> ReadShape(const Tensor& tensor, absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                           ReadIntegers(tensor, name));
  return Shape::FromDims(dims);
}

// A vector counts as rows of one number, a scalar as one such row.
absl::StatusOr<SparseIndices> ReadIndices(const Tensor& tensor,
                                          const Shape& shape) {
  SparseIndices indices;
  OPTFARM_ASSIGN_OR_RETURN(indices.values, tensor.AsInt64s());
  indices.count = tensor.rank() == 0 ? 1 : tensor.dim(0);
  const int64_t rank = tensor.rank() < 2 ? 1 : tensor.dim(1);
  if (tensor.rank() > 2 || rank != shape.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "indices of shape ", tensor.shape().ToString(),
        " do not point into a tensor of shape ", shape.ToString()));
  }
  indices.rank = shape.rank();
  for (size_t i = 0; i < indices.values.size(); ++i) {
    const int axis = static_cast<int>(i % indices.rank);
    if (indices.values[i] < 0 || indices.values[i] >= shape.dim(axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", indices.values[i], " for dimension ", axis,
                       " is not within shape ", shape.ToString()));
    }
  }
  return indices;
}

int64_t PlaceOf(const int64_t* row, const Shape& shape) {
  int64_t at = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    at = at * shape.dim(axis) + row[axis];
  }
  return at;
}

absl::Status RequireValues(const Tensor& values, const SparseIndices& indices,
                           bool may_be_scalar) {
  if (may_be_scalar && values.rank() == 0) return absl::OkStatus();
  return RequireShape(values, "values", Shape{indices.count});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeToDense(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    const Tensor& values = context->input(2);
    const Tensor& empty = context->input(3);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ReadShape(context->input(1), "output_shape"));
    OPTFARM_ASSIGN_OR_RETURN(const SparseIndices indices,
                             ReadIndices(context->input(0), shape));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(values, empty));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(empty, "default_value"));
    OPTFARM_RETURN_IF_ERROR(RequireValues(values, indices, true));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, values.dtype(), shape));
    return VisitBySize(values.dtype(), "values", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::fill_n(out->data<T>(), shape.num_elements(), *empty.data<T>());
      for (int64_t i = 0; i < indices.count; ++i) {
        out->data<T>()[PlaceOf(indices.row(i), shape)] =
            values.data<T>()[values.rank() == 0 ? 0 : i];
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDenseAdd(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    const Tensor& values = context->input(1);
    const Tensor& dense = context->input(3);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ReadShape(context->input(2), "a_shape"));
    OPTFARM_RETURN_IF_ERROR(RequireShape(dense, "b", shape));
    OPTFARM_ASSIGN_OR_RETURN(const SparseIndices indices,
                             ReadIndices(context->input(0), shape));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(values, dense));
    OPTFARM_RETURN_IF_ERROR(RequireValues(values, indices, false));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dense.dtype(), shape));
    return VisitNumber(dense.dtype(), "b", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::copy_n(dense.data<T>(), dense.num_elements(), out->data<T>());
      for (int64_t i = 0; i < indices.count; ++i) {
        T& to = out->data<T>()[PlaceOf(indices.row(i), shape)];
        if constexpr (std::is_integral_v<T>) {
          to = static_cast<T>(static_cast<uint64_t>(to) +
                              static_cast<uint64_t>(values.data<T>()[i]));
        } else {
          to += values.data<T>()[i];
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDenseMatMul(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint_a,
                           graph::GetBoolOr(node, "adjoint_a", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool adjoint_b,
                           graph::GetBoolOr(node, "adjoint_b", false));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    const Tensor& values = context->input(1);
    const Tensor& b = context->input(3);
    OPTFARM_ASSIGN_OR_RETURN(const Shape a,
                             ReadShape(context->input(2), "a_shape"));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(values, b));
    OPTFARM_RETURN_IF_ERROR(RequireRank(b, "b", 2));
    if (a.rank() != 2 || a.dim(adjoint_a ? 0 : 1) != b.dim(adjoint_b ? 1 : 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("matrices of shapes ", a.ToString(), " and ",
                       b.shape().ToString(), " cannot be multiplied"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const SparseIndices indices,
                             ReadIndices(context->input(0), a));
    OPTFARM_RETURN_IF_ERROR(RequireValues(values, indices, false));
    const int64_t columns = b.dim(adjoint_b ? 0 : 1);
    const int64_t dims[] = {a.dim(adjoint_a ? 1 : 0), columns};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(b.dtype(), shape));
    OPTFARM_RETURN_IF_ERROR(
        VisitFloat(b.dtype(), "b", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          for (int64_t i = 0; i < indices.count; ++i) {
            const int64_t row = indices.row(i)[adjoint_a ? 1 : 0];
            const int64_t inner = indices.row(i)[adjoint_a ? 0 : 1];
            const T value = values.data<T>()[i];
            for (int64_t c = 0; c < columns; ++c) {
              const T factor = adjoint_b ? b.data<T>()[c * b.dim(1) + inner]
                                         : b.data<T>()[inner * columns + c];
              out.data<T>()[row * columns + c] += value * factor;
            }
          }
          return absl::OkStatus();
        }));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// Entries in the order of their places.
absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& values = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ReadShape(context->input(2), "input_shape"));
    OPTFARM_RETURN_IF_ERROR(RequireRank(context->input(0), "input_indices", 2));
    OPTFARM_ASSIGN_OR_RETURN(const SparseIndices indices,
                             ReadIndices(context->input(0), shape));
    OPTFARM_RETURN_IF_ERROR(RequireValues(values, indices, false));
    std::vector<int64_t> order(indices.count);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::lexicographical_compare(
          indices.row(a), indices.row(a) + indices.rank, indices.row(b),
          indices.row(b) + indices.rank);
    });
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * rows, context->AllocateOutput(0, tensorflow::DT_INT64,
                                               context->input(0).shape()));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(1, values.dtype(), values.shape()));
    int64_t* to = rows->data<int64_t>();
    for (int64_t from : order) {
      to = std::copy_n(indices.row(from), indices.rank, to);
    }
    return VisitBySize(values.dtype(), "values", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < order.size(); ++i) {
        out->data<T>()[i] = values.data<T>()[order[i]];
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReshape(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ReadShape(context->input(1), "input_shape"));
    OPTFARM_RETURN_IF_ERROR(RequireRank(context->input(0), "input_indices", 2));
    OPTFARM_ASSIGN_OR_RETURN(const SparseIndices indices,
                             ReadIndices(context->input(0), shape));
    OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                             ReadIntegers(context->input(2), "new_shape"));
    const auto unknown = std::find(dims.begin(), dims.end(), -1);
    if (unknown != dims.end()) {
      *unknown = 1;
      OPTFARM_ASSIGN_OR_RETURN(const Shape rest, Shape::FromDims(dims));
      if (rest.num_elements() > 0) {
        *unknown = shape.num_elements() / rest.num_elements();
      }
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape reshaped, Shape::FromDims(dims));
    if (reshaped.num_elements() != shape.num_elements()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a sparse tensor of shape ", shape.ToString(),
                       " cannot become ", reshaped.ToString()));
    }
    const int64_t index_dims[] = {indices.count, reshaped.rank()};
    OPTFARM_ASSIGN_OR_RETURN(const Shape index_shape,
                             Shape::FromDims(index_dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_INT64, index_shape));
    for (int64_t i = 0; i < indices.count; ++i) {
      int64_t rest = PlaceOf(indices.row(i), shape);
      for (int axis = reshaped.rank() - 1; axis >= 0; --axis) {
        out->data<int64_t>()[i * reshaped.rank() + axis] =
            rest % reshaped.dim(axis);
        rest /= reshaped.dim(axis);
      }
    }
    context->SetOutput(1, Tensor::FromValues<int64_t>(
                              Shape{static_cast<int64_t>(dims.size())}, dims));
    return absl::OkStatus();
  });
}

// Entries by row, with one in each row that had none.
struct FilledRows {
  // Of each entry, its place among the given ones; -1 for an added one.
  std::vector<int64_t> order;
  std::vector<int64_t> rows;
  // Of each given entry, where it is now.
  std::vector<int64_t> places;
};

// Sets is_empty[r] to whether row r had no entry.
FilledRows FillRows(const SparseIndices& indices, int64_t row_count,
                    bool* is_empty) {
  std::vector<std::vector<int64_t>> rows(row_count);
  for (int64_t i = 0; i < indices.count; ++i) {
    rows[indices.row(i)[0]].push_back(i);
  }
  FilledRows filled;
  filled.places.resize(indices.count);
  for (int64_t r = 0; r < row_count; ++r) {
    is_empty[r] = rows[r].empty();
    if (rows[r].empty()) rows[r].push_back(-1);
    for (int64_t i : rows[r]) {
      if (i >= 0) {
        filled.places[i] = static_cast<int64_t>(filled.order.size());
      }
      filled.order.push_back(i);
      filled.rows.push_back(r);
    }
  }
  return filled;
}

// The indices of all entries, one a row.
absl::StatusOr<Tensor> IndicesOf(const FilledRows& filled,
                                 const SparseIndices& given, int rank) {
  const int64_t count = static_cast<int64_t>(filled.order.size());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims({count, rank}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Zeros(tensorflow::DT_INT64, shape));
  for (int64_t k = 0; k < count; ++k) {
    int64_t* to = out.data<int64_t>() + k * rank;
    const int64_t from = filled.order[k];
    if (from >= 0) std::copy_n(given.row(from), rank, to);
    to[0] = filled.rows[k];
  }
  return out;
}

// A row without an entry gets one with the default, at column 0.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFillEmptyRows(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 4));
    const Tensor& values = context->input(1);
    const Tensor& empty = context->input(3);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ReadShape(context->input(2), "dense_shape"));
    OPTFARM_RETURN_IF_ERROR(RequireRank(context->input(0), "indices", 2));
    OPTFARM_ASSIGN_OR_RETURN(const SparseIndices indices,
                             ReadIndices(context->input(0), shape));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(values, empty));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(empty, "default_value"));
    OPTFARM_RETURN_IF_ERROR(RequireValues(values, indices, false));
    // More rows are taken for an attack on memory.
    if (shape.rank() < 1 || shape.dim(0) > (int64_t{1} << 24)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the rows of shape ", shape.ToString(), " are too many, or none"));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * is_empty,
        context->AllocateOutput(2, tensorflow::DT_BOOL, Shape{shape.dim(0)}));
    const FilledRows filled =
        FillRows(indices, shape.dim(0), is_empty->data<bool>());
    const int64_t count = static_cast<int64_t>(filled.order.size());
    OPTFARM_ASSIGN_OR_RETURN(Tensor out_indices,
                             IndicesOf(filled, indices, shape.rank()));
    context->SetOutput(0, std::move(out_indices));
    context->SetOutput(
        3, Tensor::FromValues<int64_t>(Shape{indices.count}, filled.places));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(1, values.dtype(), Shape{count}));
    return VisitBySize(values.dtype(), "values", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t from = filled.order[k];
        out->data<T>()[k] =
            from < 0 ? *empty.data<T>() : values.data<T>()[from];
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddSparseKernels(KernelCatalog* catalog) {
  catalog->Add("SparseToDense", MakeToDense);
  catalog->Add("SparseTensorDenseAdd", MakeDenseAdd);
  catalog->Add("SparseTensorDenseMatMul", MakeDenseMatMul);
  catalog->Add("SparseReorder", MakeReorder);
  catalog->Add("SparseReshape", MakeReshape);
  catalog->Add("SparseFillEmptyRows", MakeFillEmptyRows);
}

}  // namespace optfarm::runtime
