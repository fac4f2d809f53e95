// Several diagonals at once: MatrixDiag, MatrixDiagPart and MatrixSetDiag in
// versions 2 and 3. Diagonals are rows of a matrix as wide as the longest;
// where a shorter one stands in its row is what `align` says, and all that
// version 3 adds.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// On each side of the main one.
constexpr int64_t kMostDiagonals = int64_t{1} << 31;

// Where diagonals that are shorter than the longest stand in their rows.
struct Alignment {
  bool upper_left = true;
  bool lower_left = true;
};

// The diagonals from `low` to `high` of matrices; 0 is the main one, above it
// numbers are positive.
struct Band {
  int64_t low = 0;
  int64_t high = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  Alignment alignment;

  int64_t count() const { return high - low + 1; }
  int64_t LengthOf(int64_t diagonal) const {
    return std::min(rows + std::min<int64_t>(diagonal, 0),
                    columns - std::max<int64_t>(diagonal, 0));
  }
  int64_t longest() const {
    return std::min(rows + std::min<int64_t>(high, 0),
                    columns - std::max<int64_t>(low, 0));
  }
  // Elements of its row before the diagonal's first.
  int64_t OffsetOf(int64_t diagonal) const {
    const bool is_left = (diagonal >= 0 && alignment.upper_left) ||
                         (diagonal <= 0 && alignment.lower_left);
    return is_left ? 0 : longest() - LengthOf(diagonal);
  }
  // Where element (row, column) stands among the diagonals of its matrix.
  // REQUIRES: its diagonal is one of the band.
  int64_t PlaceOf(int64_t row, int64_t column) const {
    const int64_t diagonal = column - row;
    return (high - diagonal) * longest() + OffsetOf(diagonal) +
           std::min(row, column);
  }
  bool Has(int64_t row, int64_t column) const {
    return column - row >= low && column - row <= high;
  }
};

absl::StatusOr<Alignment> ReadAlignment(const tensorflow::NodeDef& node) {
  if (node.op().back() == '2') return Alignment();
  OPTFARM_ASSIGN_OR_RETURN(const std::string align,
                           graph::GetStringOr(node, "align", "RIGHT_LEFT"));
  for (bool upper_left : {false, true}) {
    for (bool lower_left : {false, true}) {
      const std::string name = absl::StrCat(upper_left ? "LEFT" : "RIGHT", "_",
                                            lower_left ? "LEFT" : "RIGHT");
      if (name == align) return Alignment{upper_left, lower_left};
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("align '", align,
                   "' is none of LEFT_RIGHT, RIGHT_LEFT, "
                   "LEFT_LEFT and RIGHT_RIGHT"));
}

// `k` is one diagonal or the lowest and the highest of several.
absl::Status ReadDiagonals(const Tensor& k, Band* band) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                           ReadIntegers(k, "k"));
  if (numbers.empty() || numbers.size() > 2 ||
      numbers.front() > numbers.back()) {
    return absl::InvalidArgumentError(
        "'k' must be one number, or two of which the second is not less");
  }
  if (numbers.front() < -kMostDiagonals || numbers.back() > kMostDiagonals) {
    return absl::InvalidArgumentError("'k' is too large");
  }
  band->low = numbers.front();
  band->high = numbers.back();
  return absl::OkStatus();
}

// Matrices smaller than that are empty or have the main diagonal alone.
absl::Status CheckBand(const Band& band) {
  const auto is_in = [&](int64_t diagonal) {
    return diagonal == 0 || (-diagonal < band.rows && diagonal < band.columns);
  };
  if (is_in(band.low) && is_in(band.high)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "diagonals from ", band.low, " to ", band.high,
      " do not lie within matrices of ", band.rows, " x ", band.columns));
}

absl::StatusOr<Band> BandOf(const Tensor& input, const Tensor& k,
                            const Alignment& alignment) {
  if (input.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'input' must have rank 2 or more, but has shape ",
                     input.shape().ToString()));
  }
  Band band;
  band.alignment = alignment;
  band.rows = input.dim(input.rank() - 2);
  band.columns = input.dim(input.rank() - 1);
  OPTFARM_RETURN_IF_ERROR(ReadDiagonals(k, &band));
  OPTFARM_RETURN_IF_ERROR(CheckBand(band));
  return band;
}

// `batch` dimensions, then those of the diagonals: a single one has no number.
absl::StatusOr<Shape> DiagonalsShape(absl::Span<const int64_t> batch,
                                     const Band& band) {
  std::vector<int64_t> dims(batch.begin(), batch.end());
  if (band.count() > 1) dims.push_back(band.count());
  dims.push_back(band.longest());
  return Shape::FromDims(dims);
}

absl::Status RequirePadding(const Tensor& padding, const Tensor& values) {
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(padding, "padding_value"));
  return RequireSameDtype(values, padding);
}

// A kernel of `inputs` inputs; compute(context, alignment) does the rest.
template <typename Compute>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBandKernel(
    const tensorflow::NodeDef& node, int inputs, Compute compute) {
  OPTFARM_ASSIGN_OR_RETURN(const Alignment alignment, ReadAlignment(node));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, inputs));
    return compute(context, alignment);
  });
}

absl::Status ComputeDiagPart(KernelContext* context,
                             const Alignment& alignment) {
  const Tensor& input = context->input(0);
  const Tensor& padding = context->input(2);
  OPTFARM_RETURN_IF_ERROR(RequirePadding(padding, input));
  OPTFARM_ASSIGN_OR_RETURN(const Band band,
                           BandOf(input, context->input(1), alignment));
  const auto batch = input.shape().dims().first(input.rank() - 2);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, DiagonalsShape(batch, band));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, input.dtype(), shape));
  const int64_t matrices = DimProduct(input.shape(), 0, input.rank() - 2);
  return VisitBySize(input.dtype(), "input", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    std::fill_n(out->data<T>(), shape.num_elements(), *padding.data<T>());
    for (int64_t n = 0; n < matrices; ++n) {
      const T* from = input.data<T>() + n * band.rows * band.columns;
      T* to = out->data<T>() + n * band.count() * band.longest();
      for (int64_t d = band.low; d <= band.high; ++d) {
        const int64_t row = std::max<int64_t>(-d, 0);
        for (int64_t i = 0; i < band.LengthOf(d); ++i) {
          to[band.PlaceOf(row + i, row + i + d)] =
              from[(row + i) * band.columns + row + i + d];
        }
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDiagPart(
    const tensorflow::NodeDef& node) {
  return MakeBandKernel(node, 3, ComputeDiagPart);
}

// What stands in `size` when it is -1.
absl::Status ReadMatrixSize(const KernelContext& context, Band* band,
                            int64_t longest) {
  OPTFARM_ASSIGN_OR_RETURN(band->rows,
                           ReadInteger(context.input(2), "num_rows"));
  OPTFARM_ASSIGN_OR_RETURN(band->columns,
                           ReadInteger(context.input(3), "num_cols"));
  const int64_t rows = longest - std::min<int64_t>(band->high, 0);
  const int64_t columns = longest + std::max<int64_t>(band->low, 0);
  if (band->rows == -1 && band->columns == -1) {
    band->rows = band->columns = std::max(rows, columns);
  } else if (band->rows == -1) {
    band->rows = rows;
  } else if (band->columns == -1) {
    band->columns = columns;
  }
  if (band->rows >= rows && band->columns >= columns &&
      (band->rows == rows || band->columns == columns)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "diagonals from ", band->low, " to ", band->high, " of length ", longest,
      " are not those of matrices of ", band->rows, " x ", band->columns));
}

// The band of the matrices that input 0 holds the diagonals of.
absl::StatusOr<Band> BandOfDiagonals(const KernelContext& context,
                                     const Alignment& alignment) {
  const Tensor& diagonal = context.input(0);
  Band band;
  band.alignment = alignment;
  OPTFARM_RETURN_IF_ERROR(ReadDiagonals(context.input(1), &band));
  const int own = band.count() > 1 ? 2 : 1;
  if (diagonal.rank() < own ||
      (own == 2 && diagonal.dim(diagonal.rank() - 2) != band.count())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'diagonal' of shape ", diagonal.shape().ToString(),
                     " does not hold diagonals ", band.low, " to ", band.high));
  }
  OPTFARM_RETURN_IF_ERROR(
      ReadMatrixSize(context, &band, diagonal.dim(diagonal.rank() - 1)));
  OPTFARM_RETURN_IF_ERROR(CheckBand(band));
  return band;
}

// All elements of `out`, which holds matrices: those of the band from their
// diagonals, element i from outside(i) else.
template <typename T, typename Outside>
void FillMatrices(const Band& band, const T* diagonals, Outside outside,
                  Tensor* out) {
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    const int64_t column = i % band.columns;
    const int64_t row = i / band.columns % band.rows;
    const int64_t n = i / band.columns / band.rows;
    out->data<T>()[i] = band.Has(row, column)
                            ? diagonals[n * band.count() * band.longest() +
                                        band.PlaceOf(row, column)]
                            : outside(i);
  }
}

absl::Status ComputeDiag(KernelContext* context, const Alignment& alignment) {
  const Tensor& diagonal = context->input(0);
  const Tensor& padding = context->input(4);
  OPTFARM_RETURN_IF_ERROR(RequirePadding(padding, diagonal));
  OPTFARM_ASSIGN_OR_RETURN(const Band band,
                           BandOfDiagonals(*context, alignment));
  const int own = band.count() > 1 ? 2 : 1;
  const auto batch = diagonal.shape().dims().first(diagonal.rank() - own);
  std::vector<int64_t> dims(batch.begin(), batch.end());
  dims.push_back(band.rows);
  dims.push_back(band.columns);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, diagonal.dtype(), shape));
  return VisitBySize(
      diagonal.dtype(), "diagonal", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        const T pad = *padding.data<T>();
        FillMatrices(
            band, diagonal.data<T>(), [pad](int64_t) { return pad; }, out);
        return absl::OkStatus();
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDiag(
    const tensorflow::NodeDef& node) {
  return MakeBandKernel(node, 5, ComputeDiag);
}

absl::Status ComputeSetDiag(KernelContext* context,
                            const Alignment& alignment) {
  const Tensor& input = context->input(0);
  const Tensor& diagonal = context->input(1);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(input, diagonal));
  OPTFARM_ASSIGN_OR_RETURN(const Band band,
                           BandOf(input, context->input(2), alignment));
  const auto batch = input.shape().dims().first(input.rank() - 2);
  OPTFARM_ASSIGN_OR_RETURN(const Shape wanted, DiagonalsShape(batch, band));
  OPTFARM_RETURN_IF_ERROR(RequireShape(diagonal, "diagonal", wanted));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
  return VisitBySize(input.dtype(), "input", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* outside = input.data<T>();
    FillMatrices(
        band, diagonal.data<T>(), [outside](int64_t i) { return outside[i]; },
        out);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSetDiag(
    const tensorflow::NodeDef& node) {
  return MakeBandKernel(node, 3, ComputeSetDiag);
}

}  // namespace

void AddBandedDiagonalKernels(KernelCatalog* catalog) {
  catalog->Add("MatrixDiagV2", MakeDiag);
  catalog->Add("MatrixDiagV3", MakeDiag);
  catalog->Add("MatrixDiagPartV2", MakeDiagPart);
  catalog->Add("MatrixDiagPartV3", MakeDiagPart);
  catalog->Add("MatrixSetDiagV2", MakeSetDiag);
  catalog->Add("MatrixSetDiagV3", MakeSetDiag);
}

}  // namespace optfarm::runtime
