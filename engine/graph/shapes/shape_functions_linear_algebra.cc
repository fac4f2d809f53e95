// Shapes of products and of what is done to matrices.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

// --- Products ----------------------------------------------------------------

// The product's last two axes for operands whose last two axes are matrices.
absl::StatusOr<PartialShape> MatrixProduct(const PartialShape& a,
                                           const PartialShape& b,
                                           bool transpose_a, bool transpose_b) {
  const int64_t inner_a = a.dim(transpose_a ? -2 : -1);
  const int64_t inner_b = b.dim(transpose_b ? -1 : -2);
  if (!MergeDims(inner_a, inner_b).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "matrices ", a.ToString(), " and ", b.ToString(),
        " do not fit: their inner dimensions are ", inner_a, " and ", inner_b));
  }
  return PartialShape::Matrix(a.dim(transpose_a ? -1 : -2),
                              b.dim(transpose_b ? -2 : -1));
}

// The lowest and the highest diagonal of input `i`; nullopt when not known.
std::optional<std::pair<int64_t, int64_t>> KnownDiagonals(ShapeContext& c,
                                                          int i) {
  const auto numbers = c.Known(i);
  if (!numbers.has_value() || numbers->empty() || numbers->size() > 2 ||
      numbers->front() > numbers->back()) {
    return std::nullopt;
  }
  return std::pair(numbers->front(), numbers->back());
}

}  // namespace

namespace {

// How the batches of the two inputs go together.
using Batches = absl::StatusOr<PartialShape> (*)(const PartialShape&,
                                                 const PartialShape&);

absl::Status ProductsShape(ShapeContext& c, Batches batches) {
  OPTFARM_ASSIGN_OR_RETURN(const bool adj_x, c.Bool("adj_x"));
  OPTFARM_ASSIGN_OR_RETURN(const bool adj_y, c.Bool("adj_y"));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape x,
                           WithRankAtLeast(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape y,
                           WithRankAtLeast(c.input(1), 2));
  if (!x.has_rank() || !y.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape matrix,
                           MatrixProduct(x, y, adj_x, adj_y));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape batch,
                           batches(x.Slice(0, -2), y.Slice(0, -2)));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, ConcatenateShapes(batch, matrix));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status BatchMatMulShape(ShapeContext& c) {
  return ProductsShape(c, MergeShapes);
}

absl::Status BatchMatMulV2Shape(ShapeContext& c) {
  return ProductsShape(c, BroadcastShapes);
}

// Equations without an ellipsis; others give an unknown shape.
absl::Status EinsumShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(std::string equation, c.String("equation"));
  equation.erase(std::remove(equation.begin(), equation.end(), ' '),
                 equation.end());
  if (equation.find('.') != std::string::npos) return absl::OkStatus();
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) return absl::OkStatus();
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (static_cast<int>(terms.size()) != c.input_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the equation '", equation, "' has ", terms.size(),
                     " terms for ", c.input_count(), " inputs"));
  }
  absl::flat_hash_map<char, int64_t> sizes;
  for (int i = 0; i < c.input_count(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        const PartialShape in,
        WithRank(c.input(i), static_cast<int>(terms[i].size())));
    for (size_t k = 0; k < terms[i].size(); ++k) {
      int64_t& size = sizes.try_emplace(terms[i][k], kUnknownDim).first->second;
      OPTFARM_ASSIGN_OR_RETURN(size,
                               MergeDims(size, in.dim(static_cast<int>(k))));
    }
  }
  std::vector<int64_t> dims;
  for (char label : sides[1]) {
    const auto it = sizes.find(label);
    if (it == sizes.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the equation '", equation, "' has an output axis of no input"));
    }
    dims.push_back(it->second);
  }
  if (dims.size() <= kMaxRank) c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

// --- Matrices ----------------------------------------------------------------

absl::Status DiagShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(c.input(0), c.input(0)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status DiagPartShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() % 2 != 0) {
    return absl::InvalidArgumentError("the rank must be even");
  }
  const int half = in.rank() / 2;
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           MergeShapes(in.Slice(0, half), in.Slice(half)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status MatrixDiagShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in,
                           WithRankAtLeast(c.input(0), 1));
  if (!in.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(in, PartialShape::Vector(in.dim(-1))));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status MatrixDiagPartShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in,
                           WithRankAtLeast(c.input(0), 2));
  if (!in.has_rank()) return absl::OkStatus();
  const bool known = in.dim(-1) != kUnknownDim && in.dim(-2) != kUnknownDim;
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(
          in.Slice(0, -2),
          PartialShape::Vector(known ? std::min(in.dim(-1), in.dim(-2))
                                     : kUnknownDim)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status BandedDiagPartShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in,
                           WithRankAtLeast(c.input(0), 2));
  const auto diagonals = KnownDiagonals(c, 1);
  if (!in.has_rank() || !diagonals.has_value()) return absl::OkStatus();
  const auto [low, high] = *diagonals;
  std::vector<int64_t> own;
  if (low < high) own.push_back(high - low + 1);
  const bool known = in.dim(-1) != kUnknownDim && in.dim(-2) != kUnknownDim;
  const int64_t longest = std::min(in.dim(-2) + std::min<int64_t>(high, 0),
                                   in.dim(-1) - std::max<int64_t>(low, 0));
  own.push_back(known && longest >= 0 ? longest : kUnknownDim);
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(in.Slice(0, -2), PartialShape(std::move(own))));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// What the sizes of the matrices are is left to the run.
absl::Status BandedDiagShape(ShapeContext& c) {
  const auto diagonals = KnownDiagonals(c, 1);
  if (!diagonals.has_value()) return absl::OkStatus();
  const int own = diagonals->first < diagonals->second ? 2 : 1;
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in,
                           WithRankAtLeast(c.input(0), own));
  if (!in.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(in.Slice(0, -own),
                        PartialShape::Matrix(kUnknownDim, kUnknownDim)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status DeterminantShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in,
                           WithRankAtLeast(c.input(0), 2));
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, in.Slice(0, -2));
  }
  return absl::OkStatus();
}

absl::Status SquareMatrixUnchanged(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape in, WithRankAtLeast(c.input(0), 2));
  if (in.has_rank()) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t size,
                             MergeDims(in.dim(-1), in.dim(-2)));
    in.set_dim(-1, size);
    in.set_dim(-2, size);
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

absl::Status MatrixSolveShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape rhs, WithRankAtLeast(c.input(1), 2));
  c.set_output(0, std::move(rhs));
  return absl::OkStatus();
}

absl::Status LuShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(SquareMatrixUnchanged(c));
  c.set_output(1, c.output(0).Slice(0, -1));
  return absl::OkStatus();
}

absl::Status SvdShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in,
                           WithRankAtLeast(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const bool vectors, c.Bool("compute_uv"));
  OPTFARM_ASSIGN_OR_RETURN(const bool full, c.Bool("full_matrices"));
  if (!in.has_rank()) return absl::OkStatus();
  const int64_t m = in.dim(-2);
  const int64_t n = in.dim(-1);
  const int64_t p =
      m == kUnknownDim || n == kUnknownDim ? kUnknownDim : std::min(m, n);
  const PartialShape batch = in.Slice(0, -2);
  const PartialShape parts[] = {
      PartialShape::Vector(p),
      vectors ? PartialShape::Matrix(m, full ? m : p) : PartialShape::Vector(0),
      vectors ? PartialShape::Matrix(n, full ? n : p)
              : PartialShape::Vector(0)};
  for (int i = 0; i < 3; ++i) {
    if (i > 0 && !vectors) {
      c.set_output(i, parts[i]);
      continue;
    }
    OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                             ConcatenateShapes(batch, parts[i]));
    c.set_output(i, std::move(out));
  }
  return absl::OkStatus();
}

absl::Status MatMulShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const bool transpose_a, c.Bool("transpose_a"));
  OPTFARM_ASSIGN_OR_RETURN(const bool transpose_b, c.Bool("transpose_b"));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape a, WithRank(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape b, WithRank(c.input(1), 2));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           MatrixProduct(a, b, transpose_a, transpose_b));
  c.set_output(0, std::move(out));
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

}  // namespace optfarm::graph
