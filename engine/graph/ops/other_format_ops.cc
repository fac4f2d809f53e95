// Rows of ops that ONNX or TensorFlow Lite have and TensorFlow has not. Readers
// of both formats make them and writers raise them; an op that TensorFlow has
// under another name is not here. op_row.h says what rows hold.
//
// Optional inputs are always there: a vector without elements means none.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr Origin kOther = Origin::kOtherFormats;

constexpr OpRow kRows[] = {
    // Activations.
    {.names = "HardSigmoid",
     .signature = R"((features: T) -> (activations: T)
       | alpha: float = 0.2; beta: float = 0.5; T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "Celu, Swish, ThresholdedRelu",
     .signature = R"((features: T) -> (activations: T)
       | alpha: float = 1; T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "ScaledElu",
     .signature = R"((features: T) -> (activations: T)
       | alpha: float = 1; gamma: float = 1; T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "Shrink",
     .signature = R"((features: T) -> (activations: T)
       | lambd: float = 0.5; bias: float = 0; T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "Gelu",
     .signature = R"((features: T) -> (activations: T)
       | approximate: bool = false; T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "Mish",
     .signature = "(features: T) -> (activations: T) | T: {floating}",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "PRelu",
     .signature = "(features: T, alpha: T) -> (activations: T) | T: {real}",
     .shape = BroadcastTwo,
     .origin = kOther},

    // Normalization and losses.
    {.names = "LayerNorm",
     .signature = R"((x: T, scale: T, bias: T)
       -> (y: T, mean: float, inverse_deviation: float)
       | axis: int = -1; epsilon: float = 1e-05; T: {floating})",
     .shape = LayerNormShape,
     .origin = kOther},
    {.names = "RmsNorm",
     .signature = R"((x: T, scale: T) -> (y: T)
       | axis: int = -1; epsilon: float = 1e-05; T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "GroupNorm",
     .signature = R"((x: T, scale: T, bias: T) -> (y: T)
       | groups: int >= 1; epsilon: float = 1e-05;
       data_format: string {NHWC, NCHW} = NHWC; T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "InstanceNorm",
     .signature = R"((x: T, scale: T, bias: T) -> (y: T)
       | epsilon: float = 1e-05; data_format: string {NHWC, NCHW} = NHWC;
       T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "NllLoss",
     .signature = R"((input: T, target: Tlabels, weight: T) -> (loss: T)
       | reduction: string {mean, sum, none} = mean; ignores_index: bool = false;
       ignore_index: int = 0; T: {floating}; Tlabels: {index} = int64)",
     .origin = kOther},

    // Transformers.
    {.names = "Attention",
     .signature = R"((query: T, key: T, value: T, mask: T, past_key: T,
       past_value: T, kv_lengths: int64)
       -> (output: T, present_key: T, present_value: T, scores: T)
       | query_heads: int = 0; key_heads: int = 0; scale: float = 0;
       softcap: float = 0; is_causal: bool = false; emits_present: bool = false;
       emitted_scores: string = ""; T: {floating})",
     .shape = AttentionShape,
     .origin = kOther},
    {.names = "RotaryEmbedding",
     .signature = R"((x: T, cos: T, sin: T, positions: int64) -> (y: T)
       | interleaved: bool = false; heads: int = 0; turned: int = 0;
       T: {floating})",
     .shape = UnchangedShape,
     .origin = kOther},

    // Picking and writing by index.
    {.names = "GatherElements",
     .signature = R"((data: T, indices: Tindices) -> (output: T)
       | axis: int = 0; T: type; Tindices: {index})",
     .shape = SecondInputShape,
     .flow = ValueFlow::kDataMovement,
     .origin = kOther},
    {.names = "GatherNdBatched",
     .signature = R"((params: T, indices: Tindices) -> (output: T)
       | batch_dims: int = 0; T: type; Tindices: {index})",
     .flow = ValueFlow::kDataMovement,
     .origin = kOther},
    {.names = "ScatterElements",
     .signature = R"((data: T, indices: Tindices, updates: T) -> (output: T)
       | axis: int = 0; reduction: string {none, add, mul, min, max} = none;
       T: type; Tindices: {index})",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "TensorScatterMul",
     .signature = R"((tensor: T, indices: Tindices, updates: T) -> (output: T)
       | T: {number}; Tindices: {index}; wraps_negative: bool = false)",
     .shape = UnchangedShape,
     .origin = kOther},
    {.names = "UniqueElements",
     .signature = R"((x: T)
       -> (y: T, first: int64, inverse: int64, counts: int64)
       | sorted: bool = true; flattens: bool = true; axis: int = 0; T: {real})",
     .origin = kOther},

    // Shapes and axes that come as tensors.
    {.names = "SliceAxes",
     .signature = R"((x: T, starts: Tindex, ends: Tindex, axes: Tindex,
       steps: Tindex) -> (output: T) | T: type; Tindex: {index})",
     .shape = SliceAxesShape,
     .flow = ValueFlow::kDataMovement,
     .origin = kOther},
    {.names = "PadAxes",
     .signature = R"((x: T, pads: int64, value: T, axes: int64) -> (output: T)
       | mode: string {constant, reflect, edge, wrap} = constant; T: type)",
     .shape = SameRankShape,
     .flow = ValueFlow::kDataMovement,
     .origin = kOther},
    {.names = "CenterCropPad",
     .signature = R"((x: T, shape: Tindex) -> (output: T)
       | axes: list(int) = []; T: type; Tindex: {index})",
     .shape = SameRankShape,
     .flow = ValueFlow::kDataMovement,
     .origin = kOther},
    {.names = "Compress",
     .signature = R"((x: T, condition: bool) -> (output: T)
       | axis: int = 0; T: type)",
     .shape = SameRankShape,
     .flow = ValueFlow::kDataMovement,
     .origin = kOther},
    {.names = "ReshapeCopy",
     .signature = R"((x: T, shape: int64) -> (output: T)
       | allow_zero: bool = false; T: type)",
     .shape = ReshapeCopyShape,
     .flow = ValueFlow::kReshaping,
     .origin = kOther},
    {.names = "SqueezeAxes",
     .signature = "(x: T, axes: int64) -> (output: T) | T: type",
     .shape = SqueezeAxesShape,
     .flow = ValueFlow::kReshaping,
     .origin = kOther},
    {.names = "UnsqueezeAxes",
     .signature = "(x: T, axes: int64) -> (output: T) | T: type",
     .shape = UnsqueezeAxesShape,
     .flow = ValueFlow::kReshaping,
     .origin = kOther},
    {.names = "Trilu",
     .signature = R"((x: T, k: int64) -> (output: T)
       | upper: bool = true; T: type)",
     .shape = UnchangedShape,
     .origin = kOther},

    // Images, sound, windows. Images have their channels first.
    {.names = "GridSample",
     .signature = R"((x: T, grid: Tgrid) -> (output: T)
       | mode: string {linear, nearest, cubic} = linear;
       padding_mode: string {zeros, border, reflection} = zeros;
       align_corners: bool = false; T: {floating}; Tgrid: {floating} = float)",
     .shape = GridSampleShape,
     .origin = kOther},
    {.names = "RoiAlign",
     .signature = R"((x: T, rois: T, batch_indices: int64) -> (output: T)
       | mode: string {avg, max} = avg; half_pixel: bool = true;
       output_height: int = 1; output_width: int = 1; sampling_ratio: int = 0;
       spatial_scale: float = 1; T: {floating})",
     .origin = kOther},
    {.names = "MultiClassNonMaxSuppression",
     .signature = R"((boxes: float, scores: float, max_output: int64,
       iou_threshold: float, score_threshold: float) -> (selected: int64)
       | centered: bool = false)",
     .origin = kOther},
    {.names = "Dft",
     .signature = R"((x: T, length: int64, axis: int64) -> (output: T)
       | inverse: bool = false; onesided: bool = false; T: {floating})",
     .shape = SameRankShape,
     .origin = kOther},
    {.names = "Stft",
     .signature = R"((signal: T, frame_step: int64, window: T,
       frame_length: int64) -> (output: T)
       | onesided: bool = true; T: {floating})",
     .origin = kOther},
    {.names = "MelWeightMatrix",
     .signature = R"((num_mel_bins: int64, dft_length: int64,
       sample_rate: int64, lower_edge_hertz: float, upper_edge_hertz: float)
       -> (output: dtype) | dtype: {floating} = float)",
     .origin = kOther},
    {.names = "LpPool",
     .signature = R"((x: T) -> (output: T)
       | kernel_shape: list(int) = []; strides: list(int) = [];
       dilations: list(int) = []; pads: list(int) = []; p: int = 2;
       ceil_mode: bool = false; T: {floating})",
     .origin = kOther},
    {.names = "Col2Im",
     .signature = R"((x: T, image_shape: int64, block_shape: int64)
       -> (output: T)
       | strides: list(int) = []; dilations: list(int) = [];
       pads: list(int) = []; T: {floating})",
     .origin = kOther},
};

}  // namespace

absl::Span<const OpRow> OtherFormatOps() { return kRows; }

}  // namespace optfarm::graph
