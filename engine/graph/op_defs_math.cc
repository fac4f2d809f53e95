// Signatures of elementwise arithmetic, comparison, reduction and segment ops.
// The notation is explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view MathOpSignatures() {
  static constexpr absl::string_view kText = R"(
# One input, one output.
Abs(x: T) -> (y: T) | T: {floating, int8, int16, int32, int64}
Neg(x: T) -> (y: T) | T: {complexfloating, int8, int16, int32, int64}
Inv, Reciprocal, Square(x: T) -> (y: T)
  | T: {complexfloating, int8, int16, int32, int64}
Sign(x: T) -> (y: T) | T: {complexfloating, int8, int16, int32, int64}
Round(x: T) -> (y: T) | T: {complexfloating, int8, int16, int32, int64}
Sqrt, Rsqrt, Exp, Expm1, Log, Log1p, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh,
  Sigmoid, Sin, Cos(x: T) -> (y: T) | T: {complexfloating}
Tan, Asin, Acos, Atan(x: T) -> (y: T)
  | T: {complexfloating, int8, int16, int32, int64}
Lgamma, Digamma, Erf, Erfc, Erfinv, Ndtri, Ceil, Floor, Rint(x: T) -> (y: T)
  | T: {floating}
BesselI0, BesselI1, BesselI0e, BesselI1e(x: T) -> (y: T) | T: {floating}
IsNan, IsInf, IsFinite(x: T) -> (y: bool) | T: {floating}
ComplexAbs(x: T) -> (y: Tout)
  | T: {complex64, complex128} = complex64; Tout: {float, double} = float
Real, Imag, Angle(input: T) -> (output: Tout)
  | T: {complex64, complex128} = complex64; Tout: {float, double} = float
Conj(input: T) -> (output: T)
  | T: {complex64, complex128, variant} = complex64
Complex(real: T, imag: T) -> (out: Tout)
  | T: {float, double} = float; Tout: {complex64, complex128} = complex64
Cast(x: SrcT) -> (y: DstT)
  | SrcT: type; DstT: type; late Truncate: bool = false
LogicalNot(x: bool) -> (y: bool)
Invert(x: T) -> (y: T)
  | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
PopulationCount(x: T) -> (y: uint8)
  | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
Bucketize(input: T) -> (output: int32)
  | T: {int32, int64, float, double}; boundaries: list(float)

# Gradients of the above.
InvGrad, ReciprocalGrad, SqrtGrad, RsqrtGrad, SigmoidGrad, TanhGrad(
  y: T, dy: T) -> (z: T) | T: {complexfloating}

# Two inputs, broadcast.
Add(x: T, y: T) -> (z: T)
  | T: {complexfloating, uint8, uint16, uint32, uint64, int8, int16, int32,
        int64, string}
AddV2(x: T, y: T) -> (z: T) commutative aggregate
  | T: {complexfloating, uint8, uint16, uint32, uint64, int8, int16, int32,
        int64}
Sub(x: T, y: T) -> (z: T)
  | T: {complexfloating, uint8, int8, uint16, int16, int32, int64, uint32,
        uint64}
Mul(x: T, y: T) -> (z: T) commutative
  | T: {complexfloating, uint8, int8, uint16, int16, int32, uint32, uint64,
        int64}
MulNoNan(x: T, y: T) -> (z: T) commutative | T: {complexfloating}
Div, RealDiv, FloorDiv, TruncateDiv(x: T, y: T) -> (z: T)
  | T: {complexfloating, uint8, int8, uint16, int16, int32, uint32, uint64,
        int64}
DivNoNan(x: T, y: T) -> (z: T) | T: {complexfloating}
SquaredDifference(x: T, y: T) -> (z: T) commutative
  | T: {complexfloating, int32, int64}
Xlogy, Xlog1py, Xdivy(x: T, y: T) -> (z: T) | T: {complexfloating}
Maximum, Minimum(x: T, y: T) -> (z: T) commutative
  | T: {floating, int8, uint8, int16, uint16, int32, uint32, int64, uint64}
Mod, TruncateMod(x: T, y: T) -> (z: T) | T: {int32, int64, floating}
FloorMod(x: T, y: T) -> (z: T)
  | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, floating}
Pow(x: T, y: T) -> (z: T)
  | T: {complexfloating, int8, int16, int32, int64}
Atan2(y: T, x: T) -> (z: T) | T: {floating}
Igamma, Igammac, Polygamma(a: T, x: T) -> (z: T) | T: {floating}
Zeta(x: T, q: T) -> (z: T) | T: {float, double}
Betainc(a: T, b: T, x: T) -> (z: T) | T: {float, double}
NextAfter(x1: T, x2: T) -> (output: T) | T: {double, float} = float
Cross(a: T, b: T) -> (product: T) | T: {real}
Less, LessEqual, Greater, GreaterEqual(x: T, y: T) -> (z: bool) | T: {real}
Equal, NotEqual(x: T, y: T) -> (z: bool) commutative
  | T: type; late incompatible_shape_error: bool = true
ApproximateEqual(x: T, y: T) -> (z: bool) commutative
  | T: {number}; tolerance: float = 1e-05
LogicalAnd, LogicalOr(x: bool, y: bool) -> (z: bool) commutative
BitwiseAnd, BitwiseOr, BitwiseXor(x: T, y: T) -> (z: T) commutative
  | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
LeftShift, RightShift(x: T, y: T) -> (z: T)
  | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}

# Choice.
Select(condition: bool, t: T, e: T) -> (output: T) | T: type
SelectV2(condition: bool, t: T, e: T) -> (output: T) | T: type
ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> (output: T)
  | T: {number}

# Many inputs.
AddN(inputs: N*T) -> (sum: T) commutative aggregate
  | N: int >= 1; T: {number, variant}
AccumulateNV2(inputs: N*T) -> (sum: T) commutative aggregate
  | N: int >= 1; T: {number}; shape: shape

# Reductions.
Sum, Mean, Prod(input: T, reduction_indices: Tidx) -> (output: T)
  | keep_dims: bool = false; T: {number}; Tidx: {index} = int32
Min, Max(input: T, reduction_indices: Tidx) -> (output: T)
  | keep_dims: bool = false; T: {number}; Tidx: {index} = int32
EuclideanNorm(input: T, reduction_indices: Tidx) -> (output: T)
  | keep_dims: bool = false; T: {number}; Tidx: {index} = int32
All, Any(input: bool, reduction_indices: Tidx) -> (output: bool)
  | keep_dims: bool = false; Tidx: {index} = int32
ArgMax(input: T, dimension: Tidx) -> (output: output_type)
  | T: {number, bool}; Tidx: {index, int16} = int32;
    output_type: {index, int16, uint16} = int64
ArgMin(input: T, dimension: Tidx) -> (output: output_type)
  | T: {number, bool}; Tidx: {index} = int32; output_type: {index} = int64
Cumsum, Cumprod(x: T, axis: Tidx) -> (out: T)
  | exclusive: bool = false; reverse: bool = false; T: {number};
    Tidx: {index} = int32
CumulativeLogsumexp(x: T, axis: Tidx) -> (out: T)
  | exclusive: bool = false; reverse: bool = false; T: {floating};
    Tidx: {index} = int32
SegmentSum, SegmentProd(data: T, segment_ids: Tindices) -> (output: T)
  | T: {number}; Tindices: {index}
SegmentMean(data: T, segment_ids: Tindices) -> (output: T)
  | T: {number}; Tindices: {index}
SegmentMin, SegmentMax(data: T, segment_ids: Tindices) -> (output: T)
  | T: {real}; Tindices: {index}
UnsortedSegmentSum, UnsortedSegmentProd(
  data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T)
  | T: {number}; Tindices: {index}; late Tnumsegments: {index} = int32
UnsortedSegmentMin, UnsortedSegmentMax(
  data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T)
  | T: {real}; Tindices: {index}; late Tnumsegments: {index} = int32
SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN(
  data: T, indices: Tidx, segment_ids: Tsegmentids) -> (output: T)
  | T: {real}; Tidx: {index} = int32; late Tsegmentids: {index} = int32
HistogramFixedWidth(values: T, value_range: T, nbins: int32) -> (out: dtype)
  | T: {int32, int64, float, double}; dtype: {index} = int32
Bincount(arr: int32, size: int32, weights: T) -> (bins: T)
  | T: {int32, int64, float, double}

# Sequences.
Range(start: Tidx, limit: Tidx, delta: Tidx) -> (output: Tidx)
  | Tidx: {floating, int8, int16, int32, int64, uint16, uint32} = int32
LinSpace(start: T, stop: T, num: Tidx) -> (output: T)
  | T: {floating}; Tidx: {index} = int32
BroadcastArgs(s0: T, s1: T) -> (r0: T) | T: {index} = int32
BroadcastGradientArgs(s0: T, s1: T) -> (r0: T, r1: T) | T: {index} = int32
)";
  return kText;
}

}  // namespace optfarm::graph
