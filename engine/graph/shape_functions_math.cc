// Shapes of arithmetic, comparison, reduction, random and linear algebra ops.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/shape_context.h"

namespace optfarm::graph {
namespace {

absl::Status BroadcastThree(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           BroadcastShapes(c.input(0), c.input(1)));
  OPTFARM_ASSIGN_OR_RETURN(out, BroadcastShapes(out, c.input(2)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The condition is a scalar, a vector along the first axis, or of the shape of
// the two choices.
absl::Status SelectShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           MergeShapes(c.input(1), c.input(2)));
  const PartialShape& condition = c.input(0);
  if (condition.has_rank() && out.has_rank() && condition.rank() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(out, MergeShapes(out, condition));
  } else if (condition.has_rank() && condition.rank() == 1 && out.has_rank() &&
             out.rank() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t first,
                             MergeDims(out.dim(0), condition.dim(0)));
    out.set_dim(0, first);
  } else if (!out.has_rank() && condition.has_rank() && condition.rank() > 1) {
    out = condition;
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status ReductionShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  OPTFARM_RETURN_IF_ERROR(WithRankAtMost(c.input(1), 1).status());
  OPTFARM_ASSIGN_OR_RETURN(const bool keep, c.Bool("keep_dims"));
  const std::optional<std::vector<int64_t>> axes = c.Known(1);
  if (!in.has_rank()) return absl::OkStatus();
  if (!axes.has_value()) {
    if (keep) c.set_output(0, PartialShape::OfRank(in.rank()));
    return absl::OkStatus();
  }
  std::vector<bool> reduced(in.rank(), false);
  for (int64_t axis : *axes) {
    if (axis < -in.rank() || axis >= in.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " is outside of ", in.ToString()));
    }
    reduced[axis < 0 ? axis + in.rank() : axis] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[i]) {
      dims.push_back(in.dim(i));
    } else if (keep) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status ArgMaxShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() <= 1) {
    c.set_output(0, PartialShape::Scalar());
    return absl::OkStatus();
  }
  const std::optional<int64_t> axis = c.KnownScalar(1);
  if (!axis.has_value()) {
    c.set_output(0, PartialShape::OfRank(in.rank() - 1));
    return absl::OkStatus();
  }
  if (*axis < -in.rank() || *axis >= in.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", *axis, " is outside of ", in.ToString()));
  }
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims.erase(dims.begin() + (*axis < 0 ? *axis + in.rank() : *axis));
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status SegmentShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape data,
                           WithRankAtLeast(c.input(0), 1));
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(PartialShape::Vector(kUnknownDim), data.Slice(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status UnsortedSegmentShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count, c.DimFromInput(2));
  const PartialShape& ids = c.input(1);
  if (!ids.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(PartialShape::Vector(count),
                                             c.input(0).Slice(ids.rank())));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) {
    OPTFARM_RETURN_IF_ERROR(WithRank(c.input(i), 0).status());
  }
  const std::optional<int64_t> start = c.KnownScalar(0);
  const std::optional<int64_t> limit = c.KnownScalar(1);
  const std::optional<int64_t> delta = c.KnownScalar(2);
  int64_t size = kUnknownDim;
  if (start.has_value() && limit.has_value() && delta.has_value()) {
    int64_t span = 0;
    if (*delta == 0 || __builtin_sub_overflow(*limit, *start, &span) ||
        span == std::numeric_limits<int64_t>::min() ||
        (span != 0 && (span < 0) != (*delta < 0))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no range goes from ", *start, " to ", *limit, " by ", *delta));
    }
    size = span / *delta + (span % *delta != 0 ? 1 : 0);
  }
  c.set_output(0, PartialShape::Vector(size));
  return absl::OkStatus();
}

absl::Status LinSpaceShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, c.DimFromInput(2));
  c.set_output(0, PartialShape::Vector(size));
  return absl::OkStatus();
}

absl::Status BroadcastArgsShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape a, WithRank(c.input(0), 1));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape b, WithRank(c.input(1), 1));
  const bool known = a.dim(0) != kUnknownDim && b.dim(0) != kUnknownDim;
  c.set_output(0, PartialShape::Vector(known ? std::max(a.dim(0), b.dim(0))
                                             : kUnknownDim));
  return absl::OkStatus();
}

absl::Status BroadcastGradientArgsShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Vector(kUnknownDim));
  c.set_output(1, PartialShape::Vector(kUnknownDim));
  return absl::OkStatus();
}

// A vector as long as a scalar input says.
absl::Status HistogramShape(ShapeContext& c) {
  const int size_input = c.node().op() == "Bincount" ? 1 : 2;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, c.DimFromInput(size_input));
  c.set_output(0, PartialShape::Vector(size));
  return absl::OkStatus();
}

absl::Status AccumulateShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(AllInputsAlike(c));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  OPTFARM_ASSIGN_OR_RETURN(shape, MergeShapes(shape, c.output(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status MultinomialShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape logits, WithRank(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t samples, c.DimFromInput(1));
  c.set_output(0, PartialShape::Matrix(logits.dim(0), samples));
  return absl::OkStatus();
}

// A sample of the given shape for every parameter.
absl::Status SamplePerParameterShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape shape, c.ShapeFromInput(0));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(shape, c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

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

absl::Status BatchMatMulShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const bool adj_x, c.Bool("adj_x"));
  OPTFARM_ASSIGN_OR_RETURN(const bool adj_y, c.Bool("adj_y"));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape x,
                           WithRankAtLeast(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape y,
                           WithRankAtLeast(c.input(1), 2));
  if (!x.has_rank() || !y.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape matrix,
                           MatrixProduct(x, y, adj_x, adj_y));
  OPTFARM_ASSIGN_OR_RETURN(
      const PartialShape batch,
      c.node().op() == "BatchMatMul"
          ? MergeShapes(x.Slice(0, -2), y.Slice(0, -2))
          : BroadcastShapes(x.Slice(0, -2), y.Slice(0, -2)));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, ConcatenateShapes(batch, matrix));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
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

constexpr ShapeRule kRules[] = {
    {"Abs", UnchangedShape},
    {"Neg", UnchangedShape},
    {"Inv", UnchangedShape},
    {"Reciprocal", UnchangedShape},
    {"Square", UnchangedShape},
    {"Sign", UnchangedShape},
    {"Round", UnchangedShape},
    {"Sqrt", UnchangedShape},
    {"Rsqrt", UnchangedShape},
    {"Exp", UnchangedShape},
    {"Expm1", UnchangedShape},
    {"Log", UnchangedShape},
    {"Log1p", UnchangedShape},
    {"Sinh", UnchangedShape},
    {"Cosh", UnchangedShape},
    {"Tanh", UnchangedShape},
    {"Asinh", UnchangedShape},
    {"Acosh", UnchangedShape},
    {"Atanh", UnchangedShape},
    {"Sigmoid", UnchangedShape},
    {"Sin", UnchangedShape},
    {"Cos", UnchangedShape},
    {"Tan", UnchangedShape},
    {"Asin", UnchangedShape},
    {"Acos", UnchangedShape},
    {"Atan", UnchangedShape},
    {"Lgamma", UnchangedShape},
    {"Digamma", UnchangedShape},
    {"Erf", UnchangedShape},
    {"Erfc", UnchangedShape},
    {"Erfinv", UnchangedShape},
    {"Ndtri", UnchangedShape},
    {"Ceil", UnchangedShape},
    {"Floor", UnchangedShape},
    {"Rint", UnchangedShape},
    {"BesselI0", UnchangedShape},
    {"BesselI1", UnchangedShape},
    {"BesselI0e", UnchangedShape},
    {"BesselI1e", UnchangedShape},
    {"IsNan", UnchangedShape},
    {"IsInf", UnchangedShape},
    {"IsFinite", UnchangedShape},
    {"ComplexAbs", UnchangedShape},
    {"Real", UnchangedShape},
    {"Imag", UnchangedShape},
    {"Angle", UnchangedShape},
    {"Conj", UnchangedShape},
    {"Cast", UnchangedShape},
    {"LogicalNot", UnchangedShape},
    {"Invert", UnchangedShape},
    {"PopulationCount", UnchangedShape},
    {"Bucketize", UnchangedShape},
    {"InvGrad", UnchangedShape},
    {"ReciprocalGrad", UnchangedShape},
    {"SqrtGrad", UnchangedShape},
    {"RsqrtGrad", UnchangedShape},
    {"SigmoidGrad", UnchangedShape},
    {"TanhGrad", UnchangedShape},
    {"Complex", BroadcastTwo},
    {"Add", BroadcastTwo},
    {"AddV2", BroadcastTwo},
    {"Sub", BroadcastTwo},
    {"Mul", BroadcastTwo},
    {"MulNoNan", BroadcastTwo},
    {"Div", BroadcastTwo},
    {"RealDiv", BroadcastTwo},
    {"FloorDiv", BroadcastTwo},
    {"TruncateDiv", BroadcastTwo},
    {"DivNoNan", BroadcastTwo},
    {"SquaredDifference", BroadcastTwo},
    {"Xlogy", BroadcastTwo},
    {"Xlog1py", BroadcastTwo},
    {"Xdivy", BroadcastTwo},
    {"Maximum", BroadcastTwo},
    {"Minimum", BroadcastTwo},
    {"Mod", BroadcastTwo},
    {"TruncateMod", BroadcastTwo},
    {"FloorMod", BroadcastTwo},
    {"Pow", BroadcastTwo},
    {"Atan2", BroadcastTwo},
    {"Igamma", BroadcastTwo},
    {"Igammac", BroadcastTwo},
    {"Polygamma", BroadcastTwo},
    {"Zeta", BroadcastTwo},
    {"NextAfter", BroadcastTwo},
    {"Cross", UnchangedShape},
    {"Betainc", BroadcastThree},
    {"Less", BroadcastTwo},
    {"LessEqual", BroadcastTwo},
    {"Greater", BroadcastTwo},
    {"GreaterEqual", BroadcastTwo},
    {"Equal", BroadcastTwo},
    {"NotEqual", BroadcastTwo},
    {"ApproximateEqual", BroadcastTwo},
    {"LogicalAnd", BroadcastTwo},
    {"LogicalOr", BroadcastTwo},
    {"BitwiseAnd", BroadcastTwo},
    {"BitwiseOr", BroadcastTwo},
    {"BitwiseXor", BroadcastTwo},
    {"LeftShift", BroadcastTwo},
    {"RightShift", BroadcastTwo},
    {"Select", SelectShape},
    {"SelectV2", BroadcastThree},
    {"ClipByValue", UnchangedShape},
    {"AddN", AllInputsAlike},
    {"AccumulateNV2", AccumulateShape},
    {"Sum", ReductionShape},
    {"Mean", ReductionShape},
    {"Prod", ReductionShape},
    {"Min", ReductionShape},
    {"Max", ReductionShape},
    {"EuclideanNorm", ReductionShape},
    {"All", ReductionShape},
    {"Any", ReductionShape},
    {"ReduceJoin", ReductionShape},
    {"ArgMax", ArgMaxShape},
    {"ArgMin", ArgMaxShape},
    {"Cumsum", UnchangedShape},
    {"Cumprod", UnchangedShape},
    {"CumulativeLogsumexp", UnchangedShape},
    {"SegmentSum", SegmentShape},
    {"SegmentProd", SegmentShape},
    {"SegmentMean", SegmentShape},
    {"SegmentMin", SegmentShape},
    {"SegmentMax", SegmentShape},
    {"SparseSegmentSum", SegmentShape},
    {"SparseSegmentMean", SegmentShape},
    {"SparseSegmentSqrtN", SegmentShape},
    {"UnsortedSegmentSum", UnsortedSegmentShape},
    {"UnsortedSegmentProd", UnsortedSegmentShape},
    {"UnsortedSegmentMin", UnsortedSegmentShape},
    {"UnsortedSegmentMax", UnsortedSegmentShape},
    {"HistogramFixedWidth", HistogramShape},
    {"Bincount", HistogramShape},
    {"Range", RangeShape},
    {"LinSpace", LinSpaceShape},
    {"BroadcastArgs", BroadcastArgsShape},
    {"BroadcastGradientArgs", BroadcastGradientArgsShape},
    {"RandomUniform", ShapeInInput0},
    {"RandomStandardNormal", ShapeInInput0},
    {"TruncatedNormal", ShapeInInput0},
    {"RandomUniformInt", ShapeInInput0},
    {"ParameterizedTruncatedNormal", ShapeInInput0},
    {"RandomShuffle", UnchangedShape},
    {"Multinomial", MultinomialShape},
    {"StatelessMultinomial", MultinomialShape},
    {"RandomGamma", SamplePerParameterShape},
    {"RandomPoisson", SamplePerParameterShape},
    {"RandomPoissonV2", SamplePerParameterShape},
    {"StatelessRandomUniform", ShapeInInput0},
    {"StatelessRandomNormal", ShapeInInput0},
    {"StatelessTruncatedNormal", ShapeInInput0},
    {"StatelessRandomUniformInt", ShapeInInput0},
    {"MatMul", MatMulShape},
    {"SparseMatMul", MatMulShape},
    {"BatchMatMul", BatchMatMulShape},
    {"BatchMatMulV2", BatchMatMulShape},
    {"BatchMatMulV3", BatchMatMulShape},
    {"Einsum", EinsumShape},
    {"Diag", DiagShape},
    {"DiagPart", DiagPartShape},
    {"MatrixDiag", MatrixDiagShape},
    {"MatrixDiagPart", MatrixDiagPartShape},
    {"MatrixSetDiag", UnchangedShape},
    {"MatrixSetDiagV2", UnchangedShape},
    {"MatrixSetDiagV3", UnchangedShape},
    {"MatrixBandPart", UnchangedShape},
    {"MatrixDeterminant", DeterminantShape},
    {"LogMatrixDeterminant", DeterminantShape},
    {"MatrixInverse", SquareMatrixUnchanged},
    {"Cholesky", SquareMatrixUnchanged},
    {"MatrixSolve", MatrixSolveShape},
    {"MatrixTriangularSolve", MatrixSolveShape},
    {"Lu", LuShape},
    {"Svd", SvdShape},
    {"FFT", UnchangedShape},
    {"IFFT", UnchangedShape},
    {"FFT2D", UnchangedShape},
    {"IFFT2D", UnchangedShape},
    {"FFT3D", UnchangedShape},
    {"IFFT3D", UnchangedShape},
};

}  // namespace

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

absl::Span<const ShapeRule> MathShapeRules() { return kRules; }

}  // namespace optfarm::graph
