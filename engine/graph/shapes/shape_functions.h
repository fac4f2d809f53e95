// All shape functions, by the file that defines them, and the functions that
// carry whole-number values along. An op's row (ops/op_row.h) names its own.
//
// Which shapes come out follows TensorFlow's rules; the definition says more
// where they are not obvious.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_

#include "absl/status/status.h"
#include "engine/graph/shapes/shape_context.h"

namespace optfarm::graph {

// --- For ops of several families ---------------------------------------------

// Every output has the shape of input 0.
absl::Status UnchangedShape(ShapeContext& c);
// Output 0 has the shape of input 1.
absl::Status SecondInputShape(ShapeContext& c);
// Output 0 has the shape of input 0, all others are scalars.
absl::Status UnchangedThenScalars(ShapeContext& c);
// Every output is a scalar.
absl::Status ScalarOutputs(ShapeContext& c);
// Every output is of unknown shape.
absl::Status UnknownOutputs(ShapeContext& c);
// Output 0 is inputs 0 and 1 broadcast together; other outputs are scalars.
absl::Status BroadcastTwo(ShapeContext& c);
// Output 0 has the shape that input 0 holds.
absl::Status ShapeInInput0(ShapeContext& c);
// All inputs have one shape, which output 0 has too.
absl::Status AllInputsAlike(ShapeContext& c);
// Convolution and pooling of 4-D tensors; other outputs are scalars.
absl::Status Conv2dShape(ShapeContext& c);
absl::Status Pool2dShape(ShapeContext& c);
absl::Status DepthwiseConv2dShape(ShapeContext& c);
absl::Status BiasAddShape(ShapeContext& c);
absl::Status MatMulShape(ShapeContext& c);
absl::Status ReshapeShape(ShapeContext& c);

// --- Sources, and what is said about shapes ----------------------------------

absl::Status BitcastShape(ShapeContext& c);
absl::Status BroadcastToShape(ShapeContext& c);
absl::Status ConstShape(ShapeContext& c);
absl::Status EnsuredShape(ShapeContext& c);
absl::Status ExpandDimsShape(ShapeContext& c);
absl::Status InputsPassThrough(ShapeContext& c);
absl::Status PlaceholderShape(ShapeContext& c);
absl::Status ShapeAttribute(ShapeContext& c);
absl::Status ShapeOfInputs(ShapeContext& c);
absl::Status SqueezeShape(ShapeContext& c);

// --- Control flow, tensor arrays and lists -----------------------------------

absl::Status CallShape(ShapeContext& c);
absl::Status ConcatPartsShape(ShapeContext& c);
absl::Status EnterShape(ShapeContext& c);
absl::Status LoopCondShape(ShapeContext& c);
absl::Status MergeShape(ShapeContext& c);
absl::Status RefSelectShape(ShapeContext& c);
absl::Status SwitchShape(ShapeContext& c);
absl::Status TensorArrayGatherShape(ShapeContext& c);
absl::Status TensorArrayShape(ShapeContext& c);

// --- Images and sound --------------------------------------------------------

absl::Status CropAndResizeShape(ShapeContext& c);
// DecodeImage may also give the frames of an animation.
absl::Status DecodeAnyImageShape(ShapeContext& c);
absl::Status DecodeGifShape(ShapeContext& c);
absl::Status DecodeImageShape(ShapeContext& c);
absl::Status DecodeWavShape(ShapeContext& c);
absl::Status DistortedBoxShape(ShapeContext& c);
absl::Status GlimpseShape(ShapeContext& c);
absl::Status JpegShapeShape(ShapeContext& c);
absl::Status MfccShape(ShapeContext& c);
absl::Status NonMaxSuppressionShape(ShapeContext& c);
absl::Status ResizeShape(ShapeContext& c);
absl::Status SpectrogramShape(ShapeContext& c);

// --- Indices -----------------------------------------------------------------

absl::Status CompareAndBitpackShape(ShapeContext& c);
absl::Status GatherNdShape(ShapeContext& c);
absl::Status GatherShape(ShapeContext& c);
absl::Status GatherV2Shape(ShapeContext& c);
absl::Status OneHotShape(ShapeContext& c);
absl::Status ScatterNdShape(ShapeContext& c);
absl::Status SetOperationShape(ShapeContext& c);
absl::Status SparseTensorDenseAddShape(ShapeContext& c);
absl::Status SparseToDenseShape(ShapeContext& c);
absl::Status UniqueShape(ShapeContext& c);
absl::Status VectorsOfUnknownSize(ShapeContext& c);
absl::Status WhereShape(ShapeContext& c);

// --- Joining, cutting and padding --------------------------------------------

absl::Status ConcatOffsetShape(ShapeContext& c);
absl::Status ConcatShape(ShapeContext& c);
absl::Status ConcatV2Shape(ShapeContext& c);
absl::Status DynamicPartitionShape(ShapeContext& c);
absl::Status DynamicStitchShape(ShapeContext& c);
absl::Status MirrorPadShape(ShapeContext& c);
absl::Status PackShape(ShapeContext& c);
absl::Status PadShape(ShapeContext& c);
absl::Status SliceShape(ShapeContext& c);
absl::Status SplitShape(ShapeContext& c);
absl::Status SplitVShape(ShapeContext& c);
absl::Status StridedSliceShape(ShapeContext& c);
absl::Status TileShape(ShapeContext& c);
absl::Status UnpackShape(ShapeContext& c);

// --- Linear algebra ----------------------------------------------------------

absl::Status BandedDiagPartShape(ShapeContext& c);
absl::Status BandedDiagShape(ShapeContext& c);
absl::Status BatchMatMulShape(ShapeContext& c);
absl::Status BatchMatMulV2Shape(ShapeContext& c);
absl::Status DeterminantShape(ShapeContext& c);
absl::Status DiagPartShape(ShapeContext& c);
absl::Status DiagShape(ShapeContext& c);
absl::Status EinsumShape(ShapeContext& c);
absl::Status LuShape(ShapeContext& c);
absl::Status MatrixDiagPartShape(ShapeContext& c);
absl::Status MatrixDiagShape(ShapeContext& c);
absl::Status MatrixSolveShape(ShapeContext& c);
absl::Status SquareMatrixUnchanged(ShapeContext& c);
absl::Status SvdShape(ShapeContext& c);

// --- Arithmetic, reductions and sequences ------------------------------------

absl::Status AccumulateShape(ShapeContext& c);
absl::Status ArgMaxShape(ShapeContext& c);
absl::Status BroadcastArgsShape(ShapeContext& c);
absl::Status BroadcastGradientArgsShape(ShapeContext& c);
absl::Status BroadcastThree(ShapeContext& c);
absl::Status BincountShape(ShapeContext& c);
absl::Status HistogramShape(ShapeContext& c);
absl::Status LinSpaceShape(ShapeContext& c);
absl::Status MultinomialShape(ShapeContext& c);
absl::Status RangeShape(ShapeContext& c);
absl::Status ReductionShape(ShapeContext& c);
absl::Status SamplePerParameterShape(ShapeContext& c);
absl::Status SegmentShape(ShapeContext& c);
absl::Status SelectShape(ShapeContext& c);
absl::Status UnsortedSegmentShape(ShapeContext& c);

// --- Data movement -----------------------------------------------------------

absl::Status BatchToSpaceNdShape(ShapeContext& c);
absl::Status DepthToSpaceShape(ShapeContext& c);
absl::Status SpaceToDepthShape(ShapeContext& c);
absl::Status ImagePatchesShape(ShapeContext& c);
absl::Status SpaceToBatchNdShape(ShapeContext& c);
absl::Status BatchToSpaceShape(ShapeContext& c);
absl::Status SpaceToBatchShape(ShapeContext& c);
absl::Status TransposeShape(ShapeContext& c);

// --- Normalization, activations, losses, recurrent cells ---------------------

absl::Status ApplyShape(ShapeContext& c);
absl::Status AtLeastVector(ShapeContext& c);
absl::Status BiasAddGradShape(ShapeContext& c);
absl::Status BlockLstmShape(ShapeContext& c);
absl::Status FirstTwoAlike(ShapeContext& c);
absl::Status FusedBatchNormGradShape(ShapeContext& c);
absl::Status FusedBatchNormShape(ShapeContext& c);
absl::Status GlobalBatchNormShape(ShapeContext& c);
absl::Status GruBlockCellShape(ShapeContext& c);
absl::Status InTopKShape(ShapeContext& c);
absl::Status LstmBlockCellShape(ShapeContext& c);
absl::Status NthElementShape(ShapeContext& c);
absl::Status Rank4Unchanged(ShapeContext& c);
absl::Status SoftmaxLossShape(ShapeContext& c);
absl::Status SparseSoftmaxLossShape(ShapeContext& c);
absl::Status TopKShape(ShapeContext& c);

// --- Quantized values --------------------------------------------------------

absl::Status FakeQuantGradientShape(ShapeContext& c);
absl::Status QuantizeShape(ShapeContext& c);
absl::Status QuantizedBatchNormShape(ShapeContext& c);
absl::Status QuantizedConcatShape(ShapeContext& c);
absl::Status QuantizedConcatV2Shape(ShapeContext& c);
absl::Status AccumulatorConvolutionShape(ShapeContext& c);
absl::Status AccumulatorDepthwiseShape(ShapeContext& c);
absl::Status AccumulatorMatMulShape(ShapeContext& c);

// --- Ops of other formats ----------------------------------------------------

absl::Status AttentionShape(ShapeContext& c);
absl::Status GridSampleShape(ShapeContext& c);
absl::Status LayerNormShape(ShapeContext& c);
absl::Status ReshapeCopyShape(ShapeContext& c);
// Output 0 has the rank of input 0.
absl::Status SameRankShape(ShapeContext& c);
absl::Status SliceAxesShape(ShapeContext& c);
absl::Status SqueezeAxesShape(ShapeContext& c);
absl::Status UnsqueezeAxesShape(ShapeContext& c);

// --- Variables, tables, files, records, strings ------------------------------

absl::Status AssignShape(ShapeContext& c);
absl::Status DecodeRawShape(ShapeContext& c);
absl::Status IteratorShape(ShapeContext& c);
absl::Status LookupFindShape(ShapeContext& c);
absl::Status MatchingFilesShape(ShapeContext& c);
absl::Status ParseExampleShape(ShapeContext& c);
absl::Status ParseSingleExampleShape(ShapeContext& c);
absl::Status ReadVariableShape(ShapeContext& c);
absl::Status ResourceGatherShape(ShapeContext& c);
absl::Status ShapeOfVariableShape(ShapeContext& c);
absl::Status StringJoinShape(ShapeContext& c);
absl::Status StringSplitShape(ShapeContext& c);
absl::Status VarHandleShape(ShapeContext& c);
absl::Status VariableShape(ShapeContext& c);
// The first generation writes an unknown shape as a scalar.
absl::Status FirstVariableShape(ShapeContext& c);

// --- Convolution and pooling -------------------------------------------------

absl::Status AvgPoolGradShape(ShapeContext& c);
absl::Status Conv2dBackpropFilterShape(ShapeContext& c);
absl::Status Conv2dBackpropInputShape(ShapeContext& c);
absl::Status Conv3dBackpropFilterShape(ShapeContext& c);
absl::Status Conv3dBackpropInputShape(ShapeContext& c);
absl::Status Conv3dShape(ShapeContext& c);
absl::Status Dilation2dShape(ShapeContext& c);
absl::Status FractionalPoolShape(ShapeContext& c);
absl::Status FusedPadConv2dShape(ShapeContext& c);
absl::Status FusedResizePadConv2dShape(ShapeContext& c);
absl::Status MaxPoolV2Shape(ShapeContext& c);
absl::Status MaxPoolWithArgmaxShape(ShapeContext& c);
absl::Status Pool3dShape(ShapeContext& c);

// --- Whole-number values -----------------------------------------------------

// These run after the shape function. One that does not apply sets nothing; it
// never fails. Values through arithmetic are in arithmetic_values.h.

absl::Status BroadcastArgsValue(ShapeContext& c);
absl::Status CastValue(ShapeContext& c);
absl::Status ConcatV2Value(ShapeContext& c);
absl::Status ConcatValue(ShapeContext& c);
absl::Status ConstValue(ShapeContext& c);
absl::Status OnesLikeValue(ShapeContext& c);
absl::Status ZerosLikeValue(ShapeContext& c);
absl::Status DynamicStitchValue(ShapeContext& c);
absl::Status FillValue(ShapeContext& c);
absl::Status GatherValue(ShapeContext& c);
absl::Status InvertPermutationValue(ShapeContext& c);
absl::Status ListDiffValue(ShapeContext& c);
absl::Status PackValue(ShapeContext& c);
absl::Status PassValue(ShapeContext& c);
absl::Status RangeValue(ShapeContext& c);
absl::Status RankValue(ShapeContext& c);
absl::Status ReshapeValue(ShapeContext& c);
absl::Status ReverseValue(ShapeContext& c);
absl::Status SelectValue(ShapeContext& c);
absl::Status ShapeValue(ShapeContext& c);
absl::Status SizeValue(ShapeContext& c);
absl::Status SliceValue(ShapeContext& c);
absl::Status SplitValue(ShapeContext& c);
absl::Status SplitVValue(ShapeContext& c);
absl::Status StridedSliceValue(ShapeContext& c);
absl::Status UnpackValue(ShapeContext& c);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_
