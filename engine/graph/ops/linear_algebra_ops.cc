// Rows of matrix products, decompositions and Fourier transforms. op_row.h says
// what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/ops/quantized_forms.h"
#include "engine/graph/shapes/multiply_adds.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr OpRow kRows[] = {
    // Products.
    {.names = "MatMul",
     .signature = R"((a: T, b: T) -> (product: T)
       | transpose_a: bool = false; transpose_b: bool = false;
       T: {complexfloating, int32, int64, uint8, uint16, uint32, uint64};
       late grad_a: bool = false; late grad_b: bool = false)",
     .shape = MatMulShape,
     .demand = InputDemand::kMatrixDepth,
     .layer = {.product = LayerProduct::kMatrix},
     .multiply_adds = MatMulMultiplyAdds,
     .quantized = &kQuantizedMatMulForm},
    {.names = "SparseMatMul",
     .signature = R"((a: Ta, b: Tb) -> (product: float)
       | transpose_a: bool = false; transpose_b: bool = false;
       a_is_sparse: bool = false; b_is_sparse: bool = false;
       Ta: {float, bfloat16} = float; Tb: {float, bfloat16} = float)",
     .shape = MatMulShape},
    {.names = "BatchMatMul",
     .signature = R"((x: T, y: T) -> (output: T)
       | T: {complexfloating, int32, int64}; adj_x: bool = false;
       adj_y: bool = false; late grad_x: bool = false; late grad_y: bool = false)",
     .shape = BatchMatMulShape},
    {.names = "BatchMatMulV2",
     .signature = R"((x: T, y: T) -> (output: T)
       | T: {complexfloating, int16, int32, int64, uint8, uint16, uint32, uint64};
       adj_x: bool = false; adj_y: bool = false; late grad_x: bool = false;
       late grad_y: bool = false)",
     .shape = BatchMatMulV2Shape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "BatchMatMulV3",
     .signature = R"((x: Ta, y: Tb) -> (output: Tout)
       | Ta: type; Tb: type; Tout: type; adj_x: bool = false; adj_y: bool = false;
       late grad_x: bool = false; late grad_y: bool = false)",
     .shape = BatchMatMulV2Shape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Einsum",
     .signature = "(inputs: N*T) -> (output: T) | equation: string; N: int >= "
                  "1; T: type",
     .shape = EinsumShape,
     .origin = Origin::kLaterTensorFlow},

    // Diagonals and bands.
    {.names = "Diag",
     .signature = R"((diagonal: T) -> (output: T)
       | T: {complexfloating, int32, int64})",
     .shape = DiagShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "DiagPart",
     .signature = R"((input: T) -> (diagonal: T)
       | T: {complexfloating, int32, int64})",
     .shape = DiagPartShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "MatrixDiag",
     .signature = "(diagonal: T) -> (output: T) | T: type",
     .shape = MatrixDiagShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "MatrixDiagV2",
     .signature = R"((
       diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T)
       -> (output: T) | T: type)",
     .shape = BandedDiagShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "MatrixDiagV3",
     .signature = R"((
       diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T)
       -> (output: T)
       | T: type; align: string {LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT}
       = RIGHT_LEFT)",
     .shape = BandedDiagShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "MatrixDiagPart",
     .signature = "(input: T) -> (diagonal: T) | T: type",
     .shape = MatrixDiagPartShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "MatrixDiagPartV2",
     .signature = R"((input: T, k: int32, padding_value: T) -> (diagonal: T)
       | T: type)",
     .shape = BandedDiagPartShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "MatrixDiagPartV3",
     .signature = R"((input: T, k: int32, padding_value: T) -> (diagonal: T)
       | T: type; align: string {LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT}
       = RIGHT_LEFT)",
     .shape = BandedDiagPartShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "MatrixSetDiag",
     .signature = "(input: T, diagonal: T) -> (output: T) | T: type",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "MatrixSetDiagV2",
     .signature = "(input: T, diagonal: T, k: int32) -> (output: T) | T: type",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "MatrixSetDiagV3",
     .signature = R"((input: T, diagonal: T, k: int32) -> (output: T)
       | T: type; align: string {LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT}
       = RIGHT_LEFT)",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "MatrixBandPart",
     .signature =
         R"((input: T, num_lower: Tindex, num_upper: Tindex) -> (band: T)
       | T: type; late Tindex: {index} = int64)",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement},

    // Decompositions and solvers.
    {.names = "MatrixDeterminant",
     .signature = R"((input: T) -> (output: T)
       | T: {half, float, double, complex64, complex128})",
     .shape = DeterminantShape},
    {.names = "LogMatrixDeterminant",
     .signature = R"((input: T) -> (sign: T, log_abs_determinant: T)
       | T: {half, float, double, complex64, complex128})",
     .shape = DeterminantShape},
    {.names = "MatrixInverse",
     .signature = R"((input: T) -> (output: T)
       | adjoint: bool = false; T: {half, double, float, complex64, complex128})",
     .shape = SquareMatrixUnchanged},
    {.names = "MatrixSolve",
     .signature = R"((matrix: T, rhs: T) -> (output: T)
       | adjoint: bool = false; T: {half, double, float, complex64, complex128})",
     .shape = MatrixSolveShape},
    {.names = "MatrixTriangularSolve",
     .signature = R"((matrix: T, rhs: T) -> (output: T)
       | lower: bool = true; adjoint: bool = false; T: {complexfloating})",
     .shape = MatrixSolveShape},
    {.names = "Cholesky",
     .signature = R"((input: T) -> (output: T)
       | T: {half, double, float, complex64, complex128})",
     .shape = SquareMatrixUnchanged},
    {.names = "Qr", .signature = R"((input: T) -> (q: T, r: T)
       | full_matrices: bool = false; T: {half, double, float, complex64, complex128})"},
    {.names = "Svd",
     .signature = R"((input: T) -> (s: T, u: T, v: T)
       | compute_uv: bool = true; full_matrices: bool = false;
       T: {half, double, float, complex64, complex128})",
     .shape = SvdShape},
    {.names = "SelfAdjointEigV2", .signature = R"((input: T) -> (e: T, v: T)
       | compute_v: bool = true; T: {half, double, float, complex64, complex128})"},
    {.names = "Lu",
     .signature = R"((input: T) -> (lu: T, p: output_idx_type)
       | output_idx_type: {index} = int32;
       T: {half, double, float, complex64, complex128})",
     .shape = LuShape,
     .origin = Origin::kLaterTensorFlow},

    // Fourier transforms.
    {.names = "FFT, IFFT, FFT2D, IFFT2D, FFT3D, IFFT3D",
     .signature = R"((input: Tcomplex) -> (output: Tcomplex)
       | Tcomplex: {complex64, complex128} = complex64)",
     .shape = UnchangedShape},
    {.names = "RFFT, RFFT2D, RFFT3D",
     .signature = R"((input: Treal, fft_length: int32) -> (output: Tcomplex)
       | late Treal: {float, double} = float;
       late Tcomplex: {complex64, complex128} = complex64)"},
    {.names = "IRFFT, IRFFT2D, IRFFT3D",
     .signature = R"((input: Tcomplex, fft_length: int32) -> (output: Treal)
       | late Treal: {float, double} = float;
       late Tcomplex: {complex64, complex128} = complex64)"},
};

}  // namespace

absl::Span<const OpRow> LinearAlgebraOps() { return kRows; }

}  // namespace optfarm::graph
