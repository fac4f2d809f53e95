// Rows of elementwise arithmetic, comparison, reduction and segment ops.
// op_row.h says what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/ops/quantized_forms.h"
#include "engine/graph/shapes/arithmetic_values.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

using namespace value_rules;  // NOLINT: thirty functions of one header

constexpr char kInvSignature[] =
    R"((x: T) -> (y: T)
       | T: {complexfloating, int8, int16, int32, int64})";

constexpr char kDivSignature[] =
    R"((x: T, y: T) -> (z: T)
       | T: {complexfloating, uint8, int8, uint16, int16, int32, uint32, uint64,
       int64})";

constexpr char kMaximumSignature[] =
    R"((x: T, y: T) -> (z: T) commutative
       | T: {floating, int8, uint8, int16, uint16, int32, uint32, int64, uint64})";

constexpr char kEqualSignature[] =
    R"((x: T, y: T) -> (z: bool) commutative
       | T: type; late incompatible_shape_error: bool = true)";

constexpr char kSumSignature[] =
    R"((input: T, reduction_indices: Tidx) -> (output: T)
       | keep_dims: bool = false; T: {number}; Tidx: {index} = int32)";

constexpr char kMinSignature[] =
    R"((input: T, reduction_indices: Tidx) -> (output: T)
       | keep_dims: bool = false; T: {number}; Tidx: {index} = int32)";

constexpr char kAllSignature[] =
    R"((input: bool, reduction_indices: Tidx) -> (output: bool)
       | keep_dims: bool = false; Tidx: {index} = int32)";

constexpr char kUnsortedSegmentSumSignature[] =
    R"((
       data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T)
       | T: {number}; Tindices: {index}; late Tnumsegments: {index} = int32)";

constexpr char kUnsortedSegmentMinSignature[] =
    R"((
       data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T)
       | T: {real}; Tindices: {index}; late Tnumsegments: {index} = int32)";

constexpr OpRow kRows[] = {
    // One input, one output.
    {.names = "Abs",
     .signature = "(x: T) -> (y: T) | T: {floating, int8, int16, int32, int64}",
     .shape = UnchangedShape,
     .values = UnaryValue<Absolute>},
    {.names = "Neg",
     .signature =
         "(x: T) -> (y: T) | T: {complexfloating, int8, int16, int32, int64}",
     .shape = UnchangedShape,
     .values = UnaryValue<Negate>,
     .role = OpRole::kNegate},
    {.names = "Inv, Reciprocal",
     .signature = kInvSignature,
     .shape = UnchangedShape},
    {.names = "Square",
     .signature = kInvSignature,
     .shape = UnchangedShape,
     .values = UnaryValue<Squared>},
    {.names = "Sign",
     .signature =
         "(x: T) -> (y: T) | T: {complexfloating, int8, int16, int32, int64}",
     .shape = UnchangedShape},
    {.names = "Round",
     .signature =
         "(x: T) -> (y: T) | T: {complexfloating, int8, int16, int32, int64}",
     .shape = UnchangedShape},
    {.names = "Sqrt, Rsqrt, Exp, Expm1, Log, Log1p, Sinh, Cosh, Tanh, Asinh, "
              "Acosh, Atanh, Sigmoid, Sin, Cos",
     .signature = "(x: T) -> (y: T) | T: {complexfloating}",
     .shape = UnchangedShape},
    {.names = "Tan, Asin, Acos, Atan",
     .signature = R"((x: T) -> (y: T)
       | T: {complexfloating, int8, int16, int32, int64})",
     .shape = UnchangedShape},
    {.names = "Lgamma, Digamma, Erf, Erfc, Ceil, Floor, Rint",
     .signature = "(x: T) -> (y: T) | T: {floating}",
     .shape = UnchangedShape},
    {.names = "Erfinv, Ndtri",
     .signature = "(x: T) -> (y: T) | T: {floating}",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "BesselI0, BesselI1, BesselI0e, BesselI1e",
     .signature = "(x: T) -> (y: T) | T: {floating}",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "IsNan, IsInf, IsFinite",
     .signature = "(x: T) -> (y: bool) | T: {floating}",
     .shape = UnchangedShape},
    {.names = "ComplexAbs",
     .signature = R"((x: T) -> (y: Tout)
       | T: {complex64, complex128} = complex64; Tout: {float, double} = float)",
     .shape = UnchangedShape},
    {.names = "Real, Imag, Angle",
     .signature = R"((input: T) -> (output: Tout)
       | T: {complex64, complex128} = complex64; Tout: {float, double} = float)",
     .shape = UnchangedShape},
    {.names = "Conj",
     .signature = R"((input: T) -> (output: T)
       | T: {complex64, complex128, variant} = complex64)",
     .shape = UnchangedShape},
    {.names = "Complex",
     .signature = R"((real: T, imag: T) -> (out: Tout)
       | T: {float, double} = float; Tout: {complex64, complex128} = complex64)",
     .shape = BroadcastTwo},
    {.names = "Cast",
     .signature = R"((x: SrcT) -> (y: DstT)
       | SrcT: type; DstT: type; late Truncate: bool = false)",
     .shape = UnchangedShape,
     .values = CastValue,
     .demand = InputDemand::kAsOutput,
     .role = OpRole::kCast},
    {.names = "LogicalNot",
     .signature = "(x: bool) -> (y: bool)",
     .shape = UnchangedShape,
     .values = UnaryValue<Not>},
    {.names = "Invert",
     .signature = R"((x: T) -> (y: T)
       | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64})",
     .shape = UnchangedShape},
    {.names = "PopulationCount",
     .signature = R"((x: T) -> (y: uint8)
       | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64})",
     .shape = UnchangedShape},
    {.names = "Bucketize",
     .signature = R"((input: T) -> (output: int32)
       | T: {int32, int64, float, double}; boundaries: list(float))",
     .shape = UnchangedShape},

    // Gradients of the above.
    {.names =
         "InvGrad, ReciprocalGrad, SqrtGrad, RsqrtGrad, SigmoidGrad, TanhGrad",
     .signature = "(y: T, dy: T) -> (z: T) | T: {complexfloating}",
     .shape = UnchangedShape},

    // Two inputs, broadcast.
    {.names = "Add",
     .signature = R"((x: T, y: T) -> (z: T)
       | T: {complexfloating, uint8, uint16, uint32, uint64, int8, int16, int32,
       int64, string})",
     .shape = BroadcastTwo,
     .values = BinaryValue<Plus>,
     .role = OpRole::kAdd,
     .quantized = &kQuantizedAddForm},
    {.names = "AddV2",
     .signature = R"((x: T, y: T) -> (z: T) commutative aggregate
       | T: {complexfloating, uint8, uint16, uint32, uint64, int8, int16, int32,
       int64})",
     .shape = BroadcastTwo,
     .values = BinaryValue<Plus>,
     .role = OpRole::kAdd,
     .quantized = &kQuantizedAddForm,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Sub",
     .signature = R"((x: T, y: T) -> (z: T)
       | T: {complexfloating, uint8, int8, uint16, int16, int32, int64, uint32,
       uint64})",
     .shape = BroadcastTwo,
     .values = BinaryValue<Minus>,
     .role = OpRole::kSubtract},
    {.names = "Mul",
     .signature = R"((x: T, y: T) -> (z: T) commutative
       | T: {complexfloating, uint8, int8, uint16, int16, int32, uint32, uint64,
       int64})",
     .shape = BroadcastTwo,
     .values = BinaryValue<Times>,
     .role = OpRole::kMultiply,
     .quantized = &kQuantizedMulForm},
    {.names = "MulNoNan",
     .signature = "(x: T, y: T) -> (z: T) commutative | T: {complexfloating}",
     .shape = BroadcastTwo,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Div, RealDiv",
     .signature = kDivSignature,
     .shape = BroadcastTwo,
     .values = BinaryValue<TruncatedQuotient>,
     .role = OpRole::kDivide},
    {.names = "FloorDiv",
     .signature = kDivSignature,
     .shape = BroadcastTwo,
     .values = BinaryValue<FlooredQuotient>},
    {.names = "TruncateDiv",
     .signature = kDivSignature,
     .shape = BroadcastTwo,
     .values = BinaryValue<TruncatedQuotient>},
    {.names = "DivNoNan",
     .signature = "(x: T, y: T) -> (z: T) | T: {complexfloating}",
     .shape = BroadcastTwo,
     .origin = Origin::kLaterTensorFlow},
    {.names = "SquaredDifference",
     .signature = R"((x: T, y: T) -> (z: T) commutative
       | T: {complexfloating, int32, int64})",
     .shape = BroadcastTwo},
    {.names = "Xlogy, Xlog1py, Xdivy",
     .signature = "(x: T, y: T) -> (z: T) | T: {complexfloating}",
     .shape = BroadcastTwo,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Maximum",
     .signature = kMaximumSignature,
     .shape = BroadcastTwo,
     .values = BinaryValue<Larger>},
    {.names = "Minimum",
     .signature = kMaximumSignature,
     .shape = BroadcastTwo,
     .values = BinaryValue<Smaller>},
    {.names = "Mod, TruncateMod",
     .signature = "(x: T, y: T) -> (z: T) | T: {int32, int64, floating}",
     .shape = BroadcastTwo},
    {.names = "FloorMod",
     .signature = R"((x: T, y: T) -> (z: T)
       | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, floating})",
     .shape = BroadcastTwo,
     .values = BinaryValue<FlooredRemainder>},
    {.names = "Pow",
     .signature = R"((x: T, y: T) -> (z: T)
       | T: {complexfloating, int8, int16, int32, int64})",
     .shape = BroadcastTwo},
    {.names = "Atan2",
     .signature = "(y: T, x: T) -> (z: T) | T: {floating}",
     .shape = BroadcastTwo},
    {.names = "Igamma, Igammac, Polygamma",
     .signature = "(a: T, x: T) -> (z: T) | T: {floating}",
     .shape = BroadcastTwo},
    {.names = "Zeta",
     .signature = "(x: T, q: T) -> (z: T) | T: {float, double}",
     .shape = BroadcastTwo},
    {.names = "Betainc",
     .signature = "(a: T, b: T, x: T) -> (z: T) | T: {float, double}",
     .shape = BroadcastThree},
    {.names = "NextAfter",
     .signature = "(x1: T, x2: T) -> (output: T) | T: {double, float} = float",
     .shape = BroadcastTwo,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Cross",
     .signature = "(a: T, b: T) -> (product: T) | T: {real}",
     .shape = UnchangedShape},
    {.names = "Less",
     .signature = "(x: T, y: T) -> (z: bool) | T: {real}",
     .shape = BroadcastTwo,
     .values = BinaryValue<IsLess>},
    {.names = "LessEqual",
     .signature = "(x: T, y: T) -> (z: bool) | T: {real}",
     .shape = BroadcastTwo,
     .values = BinaryValue<IsLessEqual>},
    {.names = "Greater",
     .signature = "(x: T, y: T) -> (z: bool) | T: {real}",
     .shape = BroadcastTwo,
     .values = BinaryValue<IsGreater>},
    {.names = "GreaterEqual",
     .signature = "(x: T, y: T) -> (z: bool) | T: {real}",
     .shape = BroadcastTwo,
     .values = BinaryValue<IsGreaterEqual>},
    {.names = "Equal",
     .signature = kEqualSignature,
     .shape = BroadcastTwo,
     .values = BinaryValue<IsEqual>},
    {.names = "NotEqual",
     .signature = kEqualSignature,
     .shape = BroadcastTwo,
     .values = BinaryValue<IsNotEqual>},
    {.names = "ApproximateEqual",
     .signature = R"((x: T, y: T) -> (z: bool) commutative
       | T: {number}; tolerance: float = 1e-05)",
     .shape = BroadcastTwo},
    {.names = "LogicalAnd",
     .signature = "(x: bool, y: bool) -> (z: bool) commutative",
     .shape = BroadcastTwo,
     .values = BinaryValue<And>},
    {.names = "LogicalOr",
     .signature = "(x: bool, y: bool) -> (z: bool) commutative",
     .shape = BroadcastTwo,
     .values = BinaryValue<Or>},
    {.names = "BitwiseAnd, BitwiseOr, BitwiseXor",
     .signature = R"((x: T, y: T) -> (z: T) commutative
       | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64})",
     .shape = BroadcastTwo},
    {.names = "LeftShift, RightShift",
     .signature = R"((x: T, y: T) -> (z: T)
       | T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64})",
     .shape = BroadcastTwo,
     .origin = Origin::kLaterTensorFlow},

    // Choice.
    {.names = "Select",
     .signature = "(condition: bool, t: T, e: T) -> (output: T) | T: type",
     .shape = SelectShape,
     .values = SelectValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "SelectV2",
     .signature = "(condition: bool, t: T, e: T) -> (output: T) | T: type",
     .shape = BroadcastThree,
     .values = SelectValue,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "ClipByValue",
     .signature = R"((t: T, clip_value_min: T, clip_value_max: T) -> (output: T)
       | T: {number})",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},

    // Many inputs.
    {.names = "AddN",
     .signature = R"((inputs: N*T) -> (sum: T) commutative aggregate
       | N: int >= 1; T: {number, variant})",
     .shape = AllInputsAlike},
    {.names = "AccumulateNV2",
     .signature = R"((inputs: N*T) -> (sum: T) commutative aggregate
       | N: int >= 1; T: {number}; shape: shape)",
     .shape = AccumulateShape},

    // Reductions.
    {.names = "Sum",
     .signature = kSumSignature,
     .shape = ReductionShape,
     .values = ReducedValue<Plus, 0>},
    {.names = "Mean",
     .signature = kSumSignature,
     .shape = ReductionShape,
     .role = OpRole::kMean,
     .flow = ValueFlow::kRangePreserving},
    {.names = "Prod",
     .signature = kSumSignature,
     .shape = ReductionShape,
     .values = ReducedValue<Times, 1>},
    {.names = "Min",
     .signature = kMinSignature,
     .shape = ReductionShape,
     .values = ReducedValue<Smaller>,
     .role = OpRole::kMin,
     .flow = ValueFlow::kRangePreserving},
    {.names = "Max",
     .signature = kMinSignature,
     .shape = ReductionShape,
     .values = ReducedValue<Larger>,
     .role = OpRole::kMax,
     .flow = ValueFlow::kRangePreserving},
    {.names = "EuclideanNorm",
     .signature = R"((input: T, reduction_indices: Tidx) -> (output: T)
       | keep_dims: bool = false; T: {number}; Tidx: {index} = int32)",
     .shape = ReductionShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "All",
     .signature = kAllSignature,
     .shape = ReductionShape,
     .values = ReducedValue<And, 1>},
    {.names = "Any",
     .signature = kAllSignature,
     .shape = ReductionShape,
     .values = ReducedValue<Or, 0>},
    {.names = "ArgMax",
     .signature = R"((input: T, dimension: Tidx) -> (output: output_type)
       | T: {number, bool}; Tidx: {index, int16} = int32;
       output_type: {index, int16, uint16} = int64)",
     .shape = ArgMaxShape},
    {.names = "ArgMin",
     .signature = R"((input: T, dimension: Tidx) -> (output: output_type)
       | T: {number, bool}; Tidx: {index} = int32; output_type: {index} = int64)",
     .shape = ArgMaxShape},
    {.names = "Cumsum, Cumprod",
     .signature = R"((x: T, axis: Tidx) -> (out: T)
       | exclusive: bool = false; reverse: bool = false; T: {number};
       Tidx: {index} = int32)",
     .shape = UnchangedShape},
    {.names = "CumulativeLogsumexp",
     .signature = R"((x: T, axis: Tidx) -> (out: T)
       | exclusive: bool = false; reverse: bool = false; T: {floating};
       Tidx: {index} = int32)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "SegmentSum, SegmentProd",
     .signature = R"((data: T, segment_ids: Tindices) -> (output: T)
       | T: {number}; Tindices: {index})",
     .shape = SegmentShape},
    {.names = "SegmentMean",
     .signature = R"((data: T, segment_ids: Tindices) -> (output: T)
       | T: {number}; Tindices: {index})",
     .shape = SegmentShape},
    {.names = "SegmentMin, SegmentMax",
     .signature = R"((data: T, segment_ids: Tindices) -> (output: T)
       | T: {real}; Tindices: {index})",
     .shape = SegmentShape},
    {.names = "UnsortedSegmentSum",
     .signature = kUnsortedSegmentSumSignature,
     .shape = UnsortedSegmentShape},
    {.names = "UnsortedSegmentProd",
     .signature = kUnsortedSegmentSumSignature,
     .shape = UnsortedSegmentShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "UnsortedSegmentMin",
     .signature = kUnsortedSegmentMinSignature,
     .shape = UnsortedSegmentShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "UnsortedSegmentMax",
     .signature = kUnsortedSegmentMinSignature,
     .shape = UnsortedSegmentShape},
    {.names = "SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN",
     .signature = R"((
       data: T, indices: Tidx, segment_ids: Tsegmentids) -> (output: T)
       | T: {real}; Tidx: {index} = int32; late Tsegmentids: {index} = int32)",
     .shape = SegmentShape},
    {.names = "HistogramFixedWidth",
     .signature = R"((values: T, value_range: T, nbins: int32) -> (out: dtype)
       | T: {int32, int64, float, double}; dtype: {index} = int32)",
     .shape = HistogramShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Bincount",
     .signature = R"((arr: int32, size: int32, weights: T) -> (bins: T)
       | T: {int32, int64, float, double})",
     .shape = BincountShape},

    // Sequences.
    {.names = "Range",
     .signature = R"((start: Tidx, limit: Tidx, delta: Tidx) -> (output: Tidx)
       | Tidx: {floating, int8, int16, int32, int64, uint16, uint32} = int32)",
     .shape = RangeShape,
     .values = RangeValue},
    {.names = "LinSpace",
     .signature = R"((start: T, stop: T, num: Tidx) -> (output: T)
       | T: {floating}; Tidx: {index} = int32)",
     .shape = LinSpaceShape},
    {.names = "BroadcastArgs",
     .signature = "(s0: T, s1: T) -> (r0: T) | T: {index} = int32",
     .shape = BroadcastArgsShape,
     .values = BroadcastArgsValue},
    {.names = "BroadcastGradientArgs",
     .signature = "(s0: T, s1: T) -> (r0: T, r1: T) | T: {index} = int32",
     .shape = BroadcastGradientArgsShape},
};

}  // namespace

absl::Span<const OpRow> MathOps() { return kRows; }

}  // namespace optfarm::graph
