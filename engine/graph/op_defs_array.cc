// Signatures of ops that make, reshape, cut, join and index tensors. The
// notation is explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view ArrayOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Sources.
Const() -> (output: dtype) | value: tensor; dtype: type
ImmutableConst() -> (output: dtype)
  | dtype: type; shape: shape; memory_region_name: string
GuaranteeConst(input: T) -> (output: T) stateful | T: type
Placeholder() -> (output: dtype) | dtype: type; shape: shape = ?
PlaceholderV2() -> (output: dtype) | dtype: type; shape: shape
PlaceholderWithDefault(input: dtype) -> (output: dtype)
  | dtype: type; shape: shape
ZerosLike(x: T) -> (y: T) | T: type
OnesLike(x: T) -> (y: T)
  | T: {complexfloating, int8, uint8, int16, uint16, int32, uint32, int64,
        uint64, bool}
Fill(dims: index_type, value: T) -> (output: T)
  | T: type; late index_type: {index} = int32
Empty(shape: int32) -> (output: dtype) stateful
  | dtype: type; init: bool = false

# Pass their input on.
Identity(input: T) -> (output: T) | T: type
IdentityN(input: T) -> (output: T) | T: list(type) >= 1
Snapshot, StopGradient(input: T) -> (output: T) | T: type
PreventGradient(input: T) -> (output: T) | T: type; message: string = ""
DebugGradientIdentity(input: T) -> (output: T) uninitialized | T: type
CheckNumerics(tensor: T) -> (output: T) | T: {floating}; message: string
DeepCopy(x: T) -> (y: T) stateful | T: type
EnsureShape(input: T) -> (output: T) | shape: shape; T: type

# About shapes.
Shape(input: T) -> (output: out_type) | T: type; out_type: {index} = int32
ShapeN(input: N*T) -> (output: N*out_type)
  | N: int >= 1; T: type; out_type: {index} = int32
Rank(input: T) -> (output: int32) | T: type
Size(input: T) -> (output: out_type) | T: type; out_type: {index} = int32
Reshape(tensor: T, shape: Tshape) -> (output: T)
  | T: type; Tshape: {index} = int32
Squeeze(input: T) -> (output: T)
  | T: type; squeeze_dims: list(int) >= 0 = []
ExpandDims(input: T, dim: Tdim) -> (output: T)
  | T: type; Tdim: {index} = int32
Bitcast(input: T) -> (output: type) | T: {number, bool}; type: {number, bool}
BroadcastTo(input: T, shape: Tidx) -> (output: T)
  | T: type; Tidx: {index} = int32

# Joining and splitting.
Concat(concat_dim: int32, values: N*T) -> (output: T) | N: int >= 2; T: type
ConcatV2(values: N*T, axis: Tidx) -> (output: T)
  | N: int >= 2; T: type; Tidx: {index} = int32
ConcatOffset(concat_dim: int32, shape: N*shape_type) -> (offset: N*shape_type)
  | N: int >= 2; late shape_type: {index} = int32
ParallelConcat(values: N*T) -> (output: T) | N: int >= 1; T: type; shape: shape
Pack(values: N*T) -> (output: T) | N: int >= 1; T: type; axis: int = 0
Unpack(value: T) -> (output: num*T) | num: int >= 0; T: type; axis: int = 0
Split(split_dim: int32, value: T) -> (output: num_split*T)
  | num_split: int >= 1; T: type
SplitV(value: T, size_splits: Tlen, split_dim: int32)
  -> (output: num_split*T)
  | num_split: int >= 1; T: type; Tlen: {index, int8} = int64
DynamicPartition(data: T, partitions: int32) -> (outputs: num_partitions*T)
  | num_partitions: int >= 1; T: type
DynamicStitch, ParallelDynamicStitch(indices: N*int32, data: N*T)
  -> (merged: T) | N: int >= 1; T: type

# Cutting and padding.
Slice(input: T, begin: Index, size: Index) -> (output: T)
  | T: type; Index: {index}
StridedSlice(input: T, begin: Index, end: Index, strides: Index)
  -> (output: T)
  | T: type; Index: {index, int16}; begin_mask: int = 0; end_mask: int = 0;
    ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0
StridedSliceGrad(
  shape: Index, begin: Index, end: Index, strides: Index, dy: T)
  -> (output: T)
  | T: type; Index: {index}; begin_mask: int = 0; end_mask: int = 0;
    ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0
StridedSliceAssign(
  ref: &T, begin: Index, end: Index, strides: Index, value: T)
  -> (output_ref: &T)
  | T: type; Index: {index}; begin_mask: int = 0; end_mask: int = 0;
    ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0
TensorStridedSliceUpdate(
  input: T, begin: Index, end: Index, strides: Index, value: T)
  -> (output: T)
  | T: type; Index: {index}; begin_mask: int = 0; end_mask: int = 0;
    ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0
Pad(input: T, paddings: Tpaddings) -> (output: T)
  | T: type; Tpaddings: {index} = int32
PadV2(input: T, paddings: Tpaddings, constant_values: T) -> (output: T)
  | T: type; Tpaddings: {index} = int32
MirrorPad, MirrorPadGrad(input: T, paddings: Tpaddings) -> (output: T)
  | T: type; Tpaddings: {index} = int32; mode: string {REFLECT, SYMMETRIC}
Tile(input: T, multiples: Tmultiples) -> (output: T)
  | T: type; Tmultiples: {index} = int32
TileGrad(input: T, multiples: int32) -> (output: T) | T: type

# Moving elements.
Transpose, ConjugateTranspose(x: T, perm: Tperm) -> (y: T)
  | T: type; Tperm: {index} = int32
InvertPermutation(x: T) -> (y: T) | T: {index} = int32
Reverse(tensor: T, dims: bool) -> (output: T) | T: type
ReverseV2(tensor: T, axis: Tidx) -> (output: T)
  | Tidx: {index} = int32; T: type
ReverseSequence(input: T, seq_lengths: Tlen) -> (output: T)
  | seq_dim: int; batch_dim: int = 0; T: type; Tlen: {index} = int64
Roll(input: T, shift: Tshift, axis: Taxis) -> (output: T)
  | T: type; Tshift: {index}; Taxis: {index}
SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings)
  -> (output: T)
  | T: type; Tblock_shape: {index} = int32; Tpaddings: {index} = int32
BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops)
  -> (output: T)
  | T: type; Tblock_shape: {index} = int32; Tcrops: {index} = int32
SpaceToBatch(input: T, paddings: Tpaddings) -> (output: T)
  | T: type; Tpaddings: {index} = int32; block_size: int >= 2
BatchToSpace(input: T, crops: Tidx) -> (output: T)
  | T: type; block_size: int >= 2; Tidx: {index} = int32
SpaceToDepth, DepthToSpace(input: T) -> (output: T)
  | T: type; block_size: int >= 2;
    data_format: string {NHWC, NCHW, NCHW_VECT_C} = NHWC
ExtractImagePatches(images: T) -> (patches: T)
  | ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4;
    T: {real, complex64, complex128, bool}; padding: string {SAME, VALID}

# Looking up and writing at indices.
Gather(params: Tparams, indices: Tindices) -> (output: Tparams)
  | validate_indices: bool = true; Tparams: type; Tindices: {index}
GatherV2(params: Tparams, indices: Tindices, axis: Taxis)
  -> (output: Tparams)
  | late batch_dims: int = 0; Tparams: type; Tindices: {index, int16};
    Taxis: {index}
GatherNd(params: Tparams, indices: Tindices) -> (output: Tparams)
  | Tparams: type; Tindices: {index, int16}; late bad_indices_policy: string
    = ""
ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> (output: T)
  | T: type; Tindices: {index, int16}; late bad_indices_policy: string = ""
ScatterNdNonAliasingAdd(input: T, indices: Tindices, updates: T)
  -> (output: T) | T: {number, bool}; Tindices: {index};
    late bad_indices_policy: string = ""
TensorScatterUpdate, TensorScatterAdd, TensorScatterSub, TensorScatterMin,
  TensorScatterMax(tensor: T, indices: Tindices, updates: T) -> (output: T)
  | T: type; Tindices: {index, int16, uint16};
    late bad_indices_policy: string = ""
OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> (output: T)
  | axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64
Where(input: T) -> (index: int64) | late T: {number, bool} = bool
Unique(x: T) -> (y: T, idx: out_idx) | T: type; out_idx: {index} = int32
UniqueV2(x: T, axis: Taxis) -> (y: T, idx: out_idx)
  | T: type; Taxis: {index} = int64; out_idx: {index} = int32
UniqueWithCounts(x: T) -> (y: T, idx: out_idx, count: out_idx)
  | T: type; out_idx: {index} = int32
ListDiff(x: T, y: T) -> (out: T, idx: out_idx)
  | T: type; out_idx: {index} = int32
UnravelIndex(indices: Tidx, dims: Tidx) -> (output: Tidx)
  | Tidx: {index} = int32
LowerBound, UpperBound(sorted_inputs: T, values: T) -> (output: out_type)
  | T: type; out_type: {index} = int32
CompareAndBitpack(input: T, threshold: T) -> (output: uint8)
  | T: {bool, half, float, double, int8, int16, int32, int64}
InplaceUpdate, InplaceAdd, InplaceSub(x: T, i: int32, v: T) -> (y: T) | T: type

# Sparse tensors as triples of dense ones.
SparseToDense(
  sparse_indices: Tindices, output_shape: Tindices, sparse_values: T,
  default_value: T) -> (dense: T)
  | validate_indices: bool = true; T: type; Tindices: {index}
SparseTensorDenseAdd(
  a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> (output: T)
  | T: {number}; Tindices: {index}
SparseTensorDenseMatMul(
  a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> (product: T)
  | T: type; Tindices: {index} = int64; adjoint_a: bool = false;
    adjoint_b: bool = false
SparseReorder(input_indices: int64, input_values: T, input_shape: int64)
  -> (output_indices: int64, output_values: T) | T: type
SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64)
  -> (output_indices: int64, output_shape: int64)
SparseFillEmptyRows(
  indices: int64, values: T, dense_shape: int64, default_value: T)
  -> (output_indices: int64, output_values: T, empty_row_indicator: bool,
      reverse_index_map: int64) | T: type
DenseToDenseSetOperation(set1: T, set2: T)
  -> (result_indices: int64, result_values: T, result_shape: int64)
  | set_operation: string; validate_indices: bool = true;
    T: {int8, int16, int32, int64, uint8, uint16, string}
)";
  return kText;
}

}  // namespace optfarm::graph
