// Rows of ops that make, reshape, cut, join and index tensors. op_row.h says
// what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/ops/quantized_forms.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr char kMirrorPadSignature[] =
    R"((input: T, paddings: Tpaddings) -> (output: T)
       | T: type; Tpaddings: {index} = int32; mode: string {REFLECT, SYMMETRIC})";

constexpr char kTransposeSignature[] =
    R"((x: T, perm: Tperm) -> (y: T)
       | T: type; Tperm: {index} = int32)";

constexpr char kTensorScatterUpdateSignature[] =
    R"((tensor: T, indices: Tindices, updates: T) -> (output: T)
       | T: type; Tindices: {index, int16, uint16};
       late bad_indices_policy: string = "";
       late wraps_negative: bool = false)";

constexpr char kDepthBlockSignature[] =
    R"((input: T) -> (output: T)
       | T: type; block_size: int >= 2;
       data_format: string {NHWC, NCHW, NCHW_VECT_C} = NHWC)";

constexpr OpRow kRows[] = {
    // Sources.
    {.names = "Const",
     .signature = "() -> (output: dtype) | value: tensor; dtype: type",
     .shape = ConstShape,
     .values = ConstValue,
     .role = OpRole::kConst,
     .is_bookkeeping = true},
    {.names = "ImmutableConst",
     .signature = R"(() -> (output: dtype)
       | dtype: type; shape: shape; memory_region_name: string)",
     .shape = ShapeAttribute,
     .role = OpRole::kMappedConst,
     .is_bookkeeping = true},
    {.names = "GuaranteeConst",
     .signature = "(input: T) -> (output: T) stateful | T: type",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Placeholder",
     .signature = "() -> (output: dtype) | dtype: type; shape: shape = ?",
     .shape = PlaceholderShape,
     .role = OpRole::kPlaceholder,
     .is_bookkeeping = true},
    {.names = "PlaceholderV2",
     .signature = "() -> (output: dtype) | dtype: type; shape: shape",
     .shape = PlaceholderShape,
     .role = OpRole::kPlaceholder,
     .is_bookkeeping = true},
    {.names = "PlaceholderWithDefault",
     .signature =
         "(input: dtype) -> (output: dtype) | dtype: type; shape: shape",
     .shape = PlaceholderShape,
     .role = OpRole::kOptionalPlaceholder,
     .flow = ValueFlow::kForwarding,
     .is_bookkeeping = true},
    {.names = "ZerosLike",
     .signature = "(x: T) -> (y: T) | T: type",
     .shape = UnchangedShape,
     .values = ZerosLikeValue},
    {.names = "OnesLike",
     .signature = R"((x: T) -> (y: T)
       | T: {complexfloating, int8, uint8, int16, uint16, int32, uint32, int64,
       uint64, bool})",
     .shape = UnchangedShape,
     .values = OnesLikeValue},
    {.names = "Fill",
     .signature = R"((dims: index_type, value: T) -> (output: T)
       | T: type; late index_type: {index} = int32)",
     .shape = ShapeInInput0,
     .values = FillValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "Empty",
     .signature = R"((shape: int32) -> (output: dtype) stateful
       | dtype: type; init: bool = false)",
     .shape = ShapeInInput0,
     .origin = Origin::kLaterTensorFlow},

    // Pass their input on.
    {.names = "Identity",
     .signature = "(input: T) -> (output: T) | T: type",
     .shape = InputsPassThrough,
     .values = PassValue,
     .demand = InputDemand::kAsOutput,
     .role = OpRole::kIdentity,
     .flow = ValueFlow::kForwarding},
    {.names = "IdentityN",
     .signature = "(input: T) -> (output: T) | T: list(type) >= 1",
     .shape = InputsPassThrough,
     .values = PassValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "Snapshot",
     .signature = "(input: T) -> (output: T) | T: type",
     .shape = UnchangedShape,
     .values = PassValue,
     .flow = ValueFlow::kForwarding,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StopGradient",
     .signature = "(input: T) -> (output: T) | T: type",
     .shape = UnchangedShape,
     .values = PassValue,
     .demand = InputDemand::kAsOutput,
     .flow = ValueFlow::kForwarding},
    {.names = "PreventGradient",
     .signature = "(input: T) -> (output: T) | T: type; message: string = \"\"",
     .shape = UnchangedShape,
     .values = PassValue,
     .flow = ValueFlow::kForwarding},
    {.names = "DebugGradientIdentity",
     .signature = "(input: T) -> (output: T) uninitialized | T: type",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "CheckNumerics",
     .signature = "(tensor: T) -> (output: T) | T: {floating}; message: string",
     .shape = UnchangedShape,
     .demand = InputDemand::kAsOutput,
     .flow = ValueFlow::kDataMovement},
    {.names = "DeepCopy",
     .signature = "(x: T) -> (y: T) stateful | T: type",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "EnsureShape",
     .signature = "(input: T) -> (output: T) | shape: shape; T: type",
     .shape = EnsuredShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},

    // About shapes.
    {.names = "Shape",
     .signature = "(input: T) -> (output: out_type) | T: type; out_type: "
                  "{index} = int32",
     .shape = ShapeOfInputs,
     .values = ShapeValue,
     .role = OpRole::kShape},
    {.names = "ShapeN",
     .signature = R"((input: N*T) -> (output: N*out_type)
       | N: int >= 1; T: type; out_type: {index} = int32)",
     .shape = ShapeOfInputs,
     .values = ShapeValue,
     .role = OpRole::kShape},
    {.names = "Rank",
     .signature = "(input: T) -> (output: int32) | T: type",
     .shape = ScalarOutputs,
     .values = RankValue,
     .role = OpRole::kRank},
    {.names = "Size",
     .signature = "(input: T) -> (output: out_type) | T: type; out_type: "
                  "{index} = int32",
     .shape = ScalarOutputs,
     .values = SizeValue,
     .role = OpRole::kSize},
    {.names = "Reshape",
     .signature = R"((tensor: T, shape: Tshape) -> (output: T)
       | T: type; Tshape: {index} = int32)",
     .shape = ReshapeShape,
     .values = ReshapeValue,
     .role = OpRole::kReshape,
     .flow = ValueFlow::kReshaping,
     .quantized = &kQuantizedReshapeForm},
    {.names = "Squeeze",
     .signature = R"((input: T) -> (output: T)
       | T: type; squeeze_dims: list(int) >= 0 = [])",
     .shape = SqueezeShape,
     .values = ReshapeValue,
     .flow = ValueFlow::kReshaping,
     .quantized = &kReshapeToForm},
    {.names = "ExpandDims",
     .signature = R"((input: T, dim: Tdim) -> (output: T)
       | T: type; Tdim: {index} = int32)",
     .shape = ExpandDimsShape,
     .values = ReshapeValue,
     .flow = ValueFlow::kReshaping,
     .quantized = &kReshapeToForm},
    {.names = "Bitcast",
     .signature = "(input: T) -> (output: type) | T: {number, bool}; type: "
                  "{number, bool}",
     .shape = BitcastShape},
    {.names = "BroadcastTo",
     .signature = R"((input: T, shape: Tidx) -> (output: T)
       | T: type; Tidx: {index} = int32)",
     .shape = BroadcastToShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},

    // Joining and splitting.
    {.names = "Concat",
     .signature = "(concat_dim: int32, values: N*T) -> (output: T) | N: int >= "
                  "2; T: type",
     .shape = ConcatShape,
     .values = ConcatValue,
     .role = OpRole::kConcat,
     .flow = ValueFlow::kDataMovement,
     .has_axis_first = true,
     .quantized = &kQuantizedConcatForm},
    {.names = "ConcatV2",
     .signature = R"((values: N*T, axis: Tidx) -> (output: T)
       | N: int >= 2; T: type; Tidx: {index} = int32)",
     .shape = ConcatV2Shape,
     .values = ConcatV2Value,
     .role = OpRole::kConcat,
     .flow = ValueFlow::kDataMovement,
     .quantized = &kQuantizedConcatV2Form},
    {.names = "ConcatOffset",
     .signature =
         R"((concat_dim: int32, shape: N*shape_type) -> (offset: N*shape_type)
       | N: int >= 2; late shape_type: {index} = int32)",
     .shape = ConcatOffsetShape},
    {.names = "ParallelConcat",
     .signature =
         "(values: N*T) -> (output: T) | N: int >= 1; T: type; shape: shape",
     .shape = ShapeAttribute,
     .flow = ValueFlow::kDataMovement},
    {.names = "Pack",
     .signature =
         "(values: N*T) -> (output: T) | N: int >= 1; T: type; axis: int = 0",
     .shape = PackShape,
     .values = PackValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "Unpack",
     .signature = "(value: T) -> (output: num*T) | num: int >= 0; T: type; "
                  "axis: int = 0",
     .shape = UnpackShape,
     .values = UnpackValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "Split",
     .signature = R"((split_dim: int32, value: T) -> (output: num_split*T)
       | num_split: int >= 1; T: type)",
     .shape = SplitShape,
     .values = SplitValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "SplitV",
     .signature = R"((value: T, size_splits: Tlen, split_dim: int32)
       -> (output: num_split*T)
       | num_split: int >= 1; T: type; Tlen: {index, int8} = int64)",
     .shape = SplitVShape,
     .values = SplitVValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "DynamicPartition",
     .signature = R"((data: T, partitions: int32) -> (outputs: num_partitions*T)
       | num_partitions: int >= 1; T: type)",
     .shape = DynamicPartitionShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "DynamicStitch, ParallelDynamicStitch",
     .signature = R"((indices: N*int32, data: N*T)
       -> (merged: T) | N: int >= 1; T: type)",
     .shape = DynamicStitchShape,
     .values = DynamicStitchValue,
     .flow = ValueFlow::kDataMovement},

    // Cutting and padding.
    {.names = "Slice",
     .signature = R"((input: T, begin: Index, size: Index) -> (output: T)
       | T: type; Index: {index})",
     .shape = SliceShape,
     .values = SliceValue,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "StridedSlice",
     .signature = R"((input: T, begin: Index, end: Index, strides: Index)
       -> (output: T)
       | T: type; Index: {index, int16}; begin_mask: int = 0; end_mask: int = 0;
       ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0)",
     .shape = StridedSliceShape,
     .values = StridedSliceValue,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "StridedSliceGrad",
     .signature = R"((
       shape: Index, begin: Index, end: Index, strides: Index, dy: T)
       -> (output: T)
       | T: type; Index: {index}; begin_mask: int = 0; end_mask: int = 0;
       ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0)",
     .shape = ShapeInInput0},
    {.names = "StridedSliceAssign",
     .signature = R"((
       ref: &T, begin: Index, end: Index, strides: Index, value: T)
       -> (output_ref: &T)
       | T: type; Index: {index}; begin_mask: int = 0; end_mask: int = 0;
       ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0)",
     .shape = UnchangedShape},
    {.names = "TensorStridedSliceUpdate",
     .signature = R"((
       input: T, begin: Index, end: Index, strides: Index, value: T)
       -> (output: T)
       | T: type; Index: {index}; begin_mask: int = 0; end_mask: int = 0;
       ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Pad",
     .signature = R"((input: T, paddings: Tpaddings) -> (output: T)
       | T: type; Tpaddings: {index} = int32)",
     .shape = PadShape,
     .role = OpRole::kPad,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "PadV2",
     .signature =
         R"((input: T, paddings: Tpaddings, constant_values: T) -> (output: T)
       | T: type; Tpaddings: {index} = int32)",
     .shape = PadShape,
     .role = OpRole::kPad,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "MirrorPad",
     .signature = kMirrorPadSignature,
     .shape = MirrorPadShape,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "MirrorPadGrad", .signature = kMirrorPadSignature},
    {.names = "Tile",
     .signature = R"((input: T, multiples: Tmultiples) -> (output: T)
       | T: type; Tmultiples: {index} = int32)",
     .shape = TileShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "TileGrad",
     .signature = "(input: T, multiples: int32) -> (output: T) | T: type"},

    // Moving elements.
    {.names = "Transpose",
     .signature = kTransposeSignature,
     .shape = TransposeShape,
     .role = OpRole::kTranspose,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "ConjugateTranspose",
     .signature = kTransposeSignature,
     .shape = TransposeShape},
    {.names = "InvertPermutation",
     .signature = "(x: T) -> (y: T) | T: {index} = int32",
     .shape = UnchangedShape,
     .values = InvertPermutationValue},
    {.names = "Reverse",
     .signature = "(tensor: T, dims: bool) -> (output: T) | T: type",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "ReverseV2",
     .signature = R"((tensor: T, axis: Tidx) -> (output: T)
       | Tidx: {index} = int32; T: type)",
     .shape = UnchangedShape,
     .values = ReverseValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "ReverseSequence",
     .signature = R"((input: T, seq_lengths: Tlen) -> (output: T)
       | seq_dim: int; batch_dim: int = 0; T: type; Tlen: {index} = int64)",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "Roll",
     .signature = R"((input: T, shift: Tshift, axis: Taxis) -> (output: T)
       | T: type; Tshift: {index}; Taxis: {index})",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "SpaceToBatchND",
     .signature = R"((input: T, block_shape: Tblock_shape, paddings: Tpaddings)
       -> (output: T)
       | T: type; Tblock_shape: {index} = int32; Tpaddings: {index} = int32)",
     .shape = SpaceToBatchNdShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "BatchToSpaceND",
     .signature = R"((input: T, block_shape: Tblock_shape, crops: Tcrops)
       -> (output: T)
       | T: type; Tblock_shape: {index} = int32; Tcrops: {index} = int32)",
     .shape = BatchToSpaceNdShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "SpaceToBatch",
     .signature = R"((input: T, paddings: Tpaddings) -> (output: T)
       | T: type; Tpaddings: {index} = int32; block_size: int >= 2)",
     .shape = SpaceToBatchShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "BatchToSpace",
     .signature = R"((input: T, crops: Tidx) -> (output: T)
       | T: type; block_size: int >= 2; Tidx: {index} = int32)",
     .shape = BatchToSpaceShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "SpaceToDepth",
     .signature = kDepthBlockSignature,
     .shape = SpaceToDepthShape,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "DepthToSpace",
     .signature = kDepthBlockSignature,
     .shape = DepthToSpaceShape,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "ExtractImagePatches",
     .signature = R"((images: T) -> (patches: T)
       | ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4;
       T: {real, complex64, complex128, bool}; padding: string {SAME, VALID})",
     .shape = ImagePatchesShape,
     .flow = ValueFlow::kDataMovement},

    // Looking up and writing at indices.
    {.names = "Gather",
     .signature = R"((params: Tparams, indices: Tindices) -> (output: Tparams)
       | validate_indices: bool = true; Tparams: type; Tindices: {index})",
     .shape = GatherShape,
     .values = GatherValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "GatherV2",
     .signature = R"((params: Tparams, indices: Tindices, axis: Taxis)
       -> (output: Tparams)
       | late batch_dims: int = 0; Tparams: type; Tindices: {index, int16};
       Taxis: {index}; late wraps_negative: bool = false)",
     .shape = GatherV2Shape,
     .values = GatherValue,
     .flow = ValueFlow::kDataMovement},
    {.names = "GatherNd",
     .signature = R"((params: Tparams, indices: Tindices) -> (output: Tparams)
       | Tparams: type; Tindices: {index, int16}; late bad_indices_policy: string
       = ""; late wraps_negative: bool = false)",
     .shape = GatherNdShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "ScatterNd",
     .signature =
         R"((indices: Tindices, updates: T, shape: Tindices) -> (output: T)
       | T: type; Tindices: {index, int16}; late bad_indices_policy: string = "")",
     .shape = ScatterNdShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "ScatterNdNonAliasingAdd",
     .signature = R"((input: T, indices: Tindices, updates: T)
       -> (output: T) | T: {number, bool}; Tindices: {index};
       late bad_indices_policy: string = "")",
     .shape = UnchangedShape},
    {.names = "TensorScatterUpdate",
     .signature = kTensorScatterUpdateSignature,
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorScatterAdd, TensorScatterSub, TensorScatterMin, "
              "TensorScatterMax",
     .signature = kTensorScatterUpdateSignature,
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "OneHot",
     .signature =
         R"((indices: TI, depth: int32, on_value: T, off_value: T) -> (output: T)
       | axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64)",
     .shape = OneHotShape},
    {.names = "Where",
     .signature =
         "(input: T) -> (index: int64) | late T: {number, bool} = bool",
     .shape = WhereShape},
    {.names = "Unique",
     .signature =
         "(x: T) -> (y: T, idx: out_idx) | T: type; out_idx: {index} = int32",
     .shape = UniqueShape},
    {.names = "UniqueV2",
     .signature = R"((x: T, axis: Taxis) -> (y: T, idx: out_idx)
       | T: type; Taxis: {index} = int64; out_idx: {index} = int32)"},
    {.names = "UniqueWithCounts",
     .signature = R"((x: T) -> (y: T, idx: out_idx, count: out_idx)
       | T: type; out_idx: {index} = int32)",
     .shape = UniqueShape},
    {.names = "ListDiff",
     .signature = R"((x: T, y: T) -> (out: T, idx: out_idx)
       | T: type; out_idx: {index} = int32)",
     .shape = VectorsOfUnknownSize,
     .values = ListDiffValue},
    {.names = "UnravelIndex",
     .signature = R"((indices: Tidx, dims: Tidx) -> (output: Tidx)
       | Tidx: {index} = int32)",
     .origin = Origin::kLaterTensorFlow},
    {.names = "LowerBound, UpperBound",
     .signature = R"((sorted_inputs: T, values: T) -> (output: out_type)
       | T: type; out_type: {index} = int32)",
     .shape = SecondInputShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "CompareAndBitpack",
     .signature = R"((input: T, threshold: T) -> (output: uint8)
       | T: {bool, half, float, double, int8, int16, int32, int64})",
     .shape = CompareAndBitpackShape},
    {.names = "InplaceUpdate, InplaceAdd, InplaceSub",
     .signature = "(x: T, i: int32, v: T) -> (y: T) | T: type",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},

    // Sparse tensors as triples of dense ones.
    {.names = "SparseToDense",
     .signature = R"((
       sparse_indices: Tindices, output_shape: Tindices, sparse_values: T,
       default_value: T) -> (dense: T)
       | validate_indices: bool = true; T: type; Tindices: {index})",
     .shape = SparseToDenseShape},
    {.names = "SparseTensorDenseAdd",
     .signature = R"((
       a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> (output: T)
       | T: {number}; Tindices: {index})",
     .shape = SparseTensorDenseAddShape},
    {.names = "SparseTensorDenseMatMul", .signature = R"((
       a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> (product: T)
       | T: type; Tindices: {index} = int64; adjoint_a: bool = false;
       adjoint_b: bool = false)"},
    {.names = "SparseReorder",
     .signature = R"((input_indices: int64, input_values: T, input_shape: int64)
       -> (output_indices: int64, output_values: T) | T: type)"},
    {.names = "SparseReshape",
     .signature =
         R"((input_indices: int64, input_shape: int64, new_shape: int64)
       -> (output_indices: int64, output_shape: int64))"},
    {.names = "SparseFillEmptyRows", .signature = R"((
       indices: int64, values: T, dense_shape: int64, default_value: T)
       -> (output_indices: int64, output_values: T, empty_row_indicator: bool,
       reverse_index_map: int64) | T: type)"},
    {.names = "DenseToDenseSetOperation",
     .signature = R"((set1: T, set2: T)
       -> (result_indices: int64, result_values: T, result_shape: int64)
       | set_operation: string; validate_indices: bool = true;
       T: {int8, int16, int32, int64, uint8, uint16, string})",
     .shape = SetOperationShape},
};

}  // namespace

absl::Span<const OpRow> ArrayOps() { return kRows; }

}  // namespace optfarm::graph
