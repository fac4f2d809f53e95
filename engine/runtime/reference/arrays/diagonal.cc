// Diagonals and bands: Diag, DiagPart, MatrixDiag, MatrixDiagPart,
// MatrixSetDiag, MatrixBandPart; the last two dimensions are a matrix.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

std::vector<int64_t> DimsOf(const Tensor& tensor) {
  return {tensor.shape().dims().begin(), tensor.shape().dims().end()};
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDiag(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& diagonal = context->input(0);
    if (diagonal.rank() < 1) {
      return absl::InvalidArgumentError("'diagonal' must not be a scalar");
    }
    std::vector<int64_t> dims = DimsOf(diagonal);
    dims.insert(dims.end(), diagonal.shape().dims().begin(),
                diagonal.shape().dims().end());
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Zeros(diagonal.dtype(), shape));
    const int64_t size = diagonal.num_elements();
    OPTFARM_RETURN_IF_ERROR(VisitBySize(
        diagonal.dtype(), "diagonal", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          for (int64_t i = 0; i < size; ++i) {
            out.data<T>()[i * size + i] = diagonal.data<T>()[i];
          }
          return absl::OkStatus();
        }));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDiagPart(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    const int half = input.rank() / 2;
    const auto dims = input.shape().dims();
    if (half < 1 || input.rank() % 2 != 0 ||
        dims.subspan(0, half) != dims.subspan(half)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor of shape ", input.shape().ToString(),
                       " has no diagonal: its dimensions must come twice"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             Shape::FromDims(dims.subspan(0, half)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), shape));
    const int64_t size = shape.num_elements();
    return VisitBySize(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < size; ++i) {
        out->data<T>()[i] = input.data<T>()[i * size + i];
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixDiag(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& diagonal = context->input(0);
    if (diagonal.rank() < 1) {
      return absl::InvalidArgumentError("'diagonal' must not be a scalar");
    }
    std::vector<int64_t> dims = DimsOf(diagonal);
    const int64_t size = dims.back();
    dims.push_back(size);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Zeros(diagonal.dtype(), shape));
    OPTFARM_RETURN_IF_ERROR(VisitBySize(
        diagonal.dtype(), "diagonal", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          for (int64_t i = 0; i < diagonal.num_elements(); ++i) {
            out.data<T>()[i * size + i % size] = diagonal.data<T>()[i];
          }
          return absl::OkStatus();
        }));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// Sizes of the matrices in the last two dimensions.
struct Matrices {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t diagonal() const { return std::min(rows, columns); }
};

absl::StatusOr<Matrices> ReadMatrices(const Tensor& tensor) {
  const int rank = tensor.rank();
  if (rank < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'input' must have rank 2 or more, but has shape ",
                     tensor.shape().ToString()));
  }
  return Matrices{DimProduct(tensor.shape(), 0, rank - 2), tensor.dim(rank - 2),
                  tensor.dim(rank - 1)};
}

absl::StatusOr<Shape> DiagonalShape(const Tensor& tensor, const Matrices& m) {
  std::vector<int64_t> dims = DimsOf(tensor);
  dims.pop_back();
  dims.back() = m.diagonal();
  return Shape::FromDims(dims);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixDiagPart(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Matrices m, ReadMatrices(input));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, DiagonalShape(input, m));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), shape));
    return VisitBySize(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      T* to = out->data<T>();
      for (int64_t n = 0; n < m.count; ++n) {
        for (int64_t i = 0; i < m.diagonal(); ++i) {
          *to++ = input.data<T>()[(n * m.rows + i) * m.columns + i];
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixSetDiag(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    const Tensor& diagonal = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(input, diagonal));
    OPTFARM_ASSIGN_OR_RETURN(const Matrices m, ReadMatrices(input));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, DiagonalShape(input, m));
    OPTFARM_RETURN_IF_ERROR(RequireShape(diagonal, "diagonal", shape));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    return VisitBySize(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::copy_n(input.data<T>(), input.num_elements(), out->data<T>());
      const T* from = diagonal.data<T>();
      for (int64_t n = 0; n < m.count; ++n) {
        for (int64_t i = 0; i < m.diagonal(); ++i) {
          out->data<T>()[(n * m.rows + i) * m.columns + i] = *from++;
        }
      }
      return absl::OkStatus();
    });
  });
}

// Keeps the diagonals from `num_lower` below to `num_upper` above; a negative
// number keeps all on its side.
absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixBandPart(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Matrices m, ReadMatrices(input));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t lower,
                             ReadInteger(context->input(1), "num_lower"));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t upper,
                             ReadInteger(context->input(2), "num_upper"));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    return VisitBySize(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < input.num_elements(); ++i) {
        const int64_t row = i / m.columns % m.rows;
        const int64_t column = i % m.columns;
        const bool is_in = (lower < 0 || row - column <= lower) &&
                           (upper < 0 || column - row <= upper);
        out->data<T>()[i] = is_in ? input.data<T>()[i] : T();
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddDiagonalKernels(KernelCatalog* catalog) {
  catalog->Add("Diag", MakeDiag);
  catalog->Add("DiagPart", MakeDiagPart);
  catalog->Add("MatrixDiag", MakeMatrixDiag);
  catalog->Add("MatrixDiagPart", MakeMatrixDiagPart);
  catalog->Add("MatrixSetDiag", MakeMatrixSetDiag);
  catalog->Add("MatrixBandPart", MakeMatrixBandPart);
}

}  // namespace optfarm::runtime
