// Signatures of matrix products, decompositions and Fourier transforms. The
// notation is explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view LinearAlgebraOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Products.
MatMul(a: T, b: T) -> (product: T)
  | transpose_a: bool = false; transpose_b: bool = false;
    T: {complexfloating, int32, int64, uint8, uint16, uint32, uint64};
    late grad_a: bool = false; late grad_b: bool = false
SparseMatMul(a: Ta, b: Tb) -> (product: float)
  | transpose_a: bool = false; transpose_b: bool = false;
    a_is_sparse: bool = false; b_is_sparse: bool = false;
    Ta: {float, bfloat16} = float; Tb: {float, bfloat16} = float
BatchMatMul(x: T, y: T) -> (output: T)
  | T: {complexfloating, int32, int64}; adj_x: bool = false;
    adj_y: bool = false; late grad_x: bool = false; late grad_y: bool = false
BatchMatMulV2(x: T, y: T) -> (output: T)
  | T: {complexfloating, int16, int32, int64, uint8, uint16, uint32, uint64};
    adj_x: bool = false; adj_y: bool = false; late grad_x: bool = false;
    late grad_y: bool = false
BatchMatMulV3(x: Ta, y: Tb) -> (output: Tout)
  | Ta: type; Tb: type; Tout: type; adj_x: bool = false; adj_y: bool = false;
    late grad_x: bool = false; late grad_y: bool = false
Einsum(inputs: N*T) -> (output: T) | equation: string; N: int >= 1; T: type

# Diagonals and bands.
Diag(diagonal: T) -> (output: T)
  | T: {complexfloating, int32, int64}
DiagPart(input: T) -> (diagonal: T)
  | T: {complexfloating, int32, int64}
MatrixDiag(diagonal: T) -> (output: T) | T: type
MatrixDiagV2(
  diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T)
  -> (output: T) | T: type
MatrixDiagV3(
  diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T)
  -> (output: T)
  | T: type; align: string {LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT}
    = RIGHT_LEFT
MatrixDiagPart(input: T) -> (diagonal: T) | T: type
MatrixDiagPartV2(input: T, k: int32, padding_value: T) -> (diagonal: T)
  | T: type
MatrixDiagPartV3(input: T, k: int32, padding_value: T) -> (diagonal: T)
  | T: type; align: string {LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT}
    = RIGHT_LEFT
MatrixSetDiag(input: T, diagonal: T) -> (output: T) | T: type
MatrixSetDiagV2(input: T, diagonal: T, k: int32) -> (output: T) | T: type
MatrixSetDiagV3(input: T, diagonal: T, k: int32) -> (output: T)
  | T: type; align: string {LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT}
    = RIGHT_LEFT
MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> (band: T)
  | T: type; late Tindex: {index} = int64

# Decompositions and solvers.
MatrixDeterminant(input: T) -> (output: T)
  | T: {half, float, double, complex64, complex128}
LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T)
  | T: {half, float, double, complex64, complex128}
MatrixInverse(input: T) -> (output: T)
  | adjoint: bool = false; T: {half, double, float, complex64, complex128}
MatrixSolve(matrix: T, rhs: T) -> (output: T)
  | adjoint: bool = false; T: {half, double, float, complex64, complex128}
MatrixTriangularSolve(matrix: T, rhs: T) -> (output: T)
  | lower: bool = true; adjoint: bool = false; T: {complexfloating}
Cholesky(input: T) -> (output: T)
  | T: {half, double, float, complex64, complex128}
Qr(input: T) -> (q: T, r: T)
  | full_matrices: bool = false; T: {half, double, float, complex64, complex128}
Svd(input: T) -> (s: T, u: T, v: T)
  | compute_uv: bool = true; full_matrices: bool = false;
    T: {half, double, float, complex64, complex128}
SelfAdjointEigV2(input: T) -> (e: T, v: T)
  | compute_v: bool = true; T: {half, double, float, complex64, complex128}
Lu(input: T) -> (lu: T, p: output_idx_type)
  | output_idx_type: {index} = int32;
    T: {half, double, float, complex64, complex128}

# Fourier transforms.
FFT, IFFT, FFT2D, IFFT2D, FFT3D, IFFT3D(input: Tcomplex) -> (output: Tcomplex)
  | Tcomplex: {complex64, complex128} = complex64
RFFT, RFFT2D, RFFT3D(input: Treal, fft_length: int32) -> (output: Tcomplex)
  | late Treal: {float, double} = float;
    late Tcomplex: {complex64, complex128} = complex64
IRFFT, IRFFT2D, IRFFT3D(input: Tcomplex, fft_length: int32) -> (output: Treal)
  | late Treal: {float, double} = float;
    late Tcomplex: {complex64, complex128} = complex64
)";
  return kText;
}

}  // namespace optfarm::graph
