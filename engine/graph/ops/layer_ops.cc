// Rows of layers that ONNX or TensorFlow Lite have and TensorFlow has not:
// recurrent layers over whole sequences, transposed convolution with all its
// settings, pooling of any number of dimensions, resizing by any rule. op_row.h
// says what they hold.
//
// An optional input that is not given has no elements.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/layer_shapes.h"

namespace optfarm::graph {
namespace {

constexpr Origin kOther = Origin::kOtherFormats;

constexpr OpRow kRows[] = {
    // Recurrent layers. x is [steps, batch, inputs]; weights have a first
    // dimension for the directions, and rows gate after gate.
    {.names = "LstmSequence",
     .signature = R"((x: T, w: T, r: T, b: T, sequence_lengths: int32,
       initial_h: T, initial_c: T, peepholes: T) -> (y: T, y_h: T, y_c: T)
       | T: {floating}; hidden_size: int;
       direction: string {forward, reverse, bidirectional} = forward;
       activations: list(string) = []; activation_alpha: list(float) = [];
       activation_beta: list(float) = []; clip: float = 0;
       input_forget: bool = false)",
     .shape = RecurrentSequenceShape,
     .origin = kOther},
    {.names = "GruSequence",
     .signature = R"((x: T, w: T, r: T, b: T, sequence_lengths: int32,
       initial_h: T) -> (y: T, y_h: T)
       | T: {floating}; hidden_size: int;
       direction: string {forward, reverse, bidirectional} = forward;
       activations: list(string) = []; activation_alpha: list(float) = [];
       activation_beta: list(float) = []; clip: float = 0;
       linear_before_reset: bool = false)",
     .shape = RecurrentSequenceShape,
     .origin = kOther},
    {.names = "RnnSequence",
     .signature = R"((x: T, w: T, r: T, b: T, sequence_lengths: int32,
       initial_h: T) -> (y: T, y_h: T)
       | T: {floating}; hidden_size: int;
       direction: string {forward, reverse, bidirectional} = forward;
       activations: list(string) = []; activation_alpha: list(float) = [];
       activation_beta: list(float) = []; clip: float = 0)",
     .shape = RecurrentSequenceShape,
     .origin = kOther},

    // Windows. The filter of Conv2DTranspose is [height, width, outputs of a
    // group, inputs].
    {.names = "Conv2DTranspose",
     .signature = R"((input: T, filter: T) -> (output: T)
       | T: {floating}; strides: list(int) = [1, 1, 1, 1];
       dilations: list(int) = [1, 1, 1, 1];
       explicit_paddings: list(int) = [0, 0, 0, 0, 0, 0, 0, 0];
       output_padding: list(int) = [0, 0]; groups: int = 1)",
     .shape = Conv2dTransposeShape,
     .demand = InputDemand::kImages,
     .origin = kOther},
    // Images are [batch, channels, ...]. An index counts elements of the whole
    // input, in the order that storage_order tells within an image: 0 is rows
    // first.
    {.names = "WindowPool",
     .signature = R"((x: T) -> (y: T, indices: int64)
       | T: {real}; kind: string {MAX, AVERAGE} = MAX; kernel: list(int);
       strides: list(int); dilations: list(int); pads: list(int);
       ceil_mode: bool = false; count_include_pad: bool = false;
       storage_order: int = 0)",
     .shape = WindowPoolShape,
     .origin = kOther},
    // A value for each of `axes`, of all dimensions if there are none; scales
    // that are known beforehand are an attribute.
    {.names = "Resize",
     .signature = R"((x: T, roi: float, scales: float, sizes: int64) -> (y: T)
       | T: {real}; mode: string {nearest, linear, cubic} = nearest;
       fixed_scales: list(float) = []; axes: list(int) = [];
       coordinates: string {half_pixel, half_pixel_symmetric,
         pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn,
         tf_crop_and_resize} = half_pixel;
       nearest_mode: string {round_prefer_floor, round_prefer_ceil, floor,
         ceil} = round_prefer_floor;
       cubic_coeff_a: float = -0.75; exclude_outside: bool = false;
       antialias: bool = false; extrapolation_value: float = 0;
       keep_aspect_ratio: string {stretch, not_larger, not_smaller} = stretch)",
     .shape = AnyResizeShape,
     .origin = kOther},
};

}  // namespace

absl::Span<const OpRow> LayerOps() { return kRows; }

}  // namespace optfarm::graph
