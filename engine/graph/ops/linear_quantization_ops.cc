// Rows of the ops that stand between real numbers and quantized values with an
// explicit scale and zero point, as in ONNX and TensorFlow Lite, and of layers
// of TensorFlow Lite that work on such values inside. op_row.h says what they
// hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/lite_shapes.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr OpRow kRows[] = {
    // One scale and zero point for the tensor, or one for each index of `axis`.
    // `bits` is the width of the values where it is less than their type's: a
    // 4-bit value travels as one of 8 bits. An `input_scale` says that x comes
    // from 8-bit values of that scale: the ratio of the scales is then rounded
    // to 1/256 and halves are rounded up, as XNNPACK does it. `rounding` says
    // what becomes of values half-way between two of y: means over windows
    // leave zero in TensorFlow Lite, sums and resized images go up.
    {.names = "QuantizeLinear",
     .signature = R"((x: T, scale: float, zero_point: Q) -> (y: Q)
       | T: {floating}; Q: {int8, uint8, int16, uint16, int32};
       axis: int = -1; bits: int = 8; input_scale: float = 0;
       rounding: string {half_to_even, half_away, half_up} = half_to_even)",
     .shape = UnchangedShape,
     .role = OpRole::kQuantizeLinear,
     .origin = Origin::kOtherFormats},
    {.names = "DequantizeLinear",
     .signature = R"((x: Q, scale: float, zero_point: Q) -> (y: float)
       | Q: {int8, uint8, int16, uint16, int32}; axis: int = -1;
       bits: int = 8)",
     .shape = UnchangedShape,
     .role = OpRole::kDequantizeLinear,
     .origin = Origin::kOtherFormats},
    // Values of 4 bits in blocks along `axis`, each with a scale and a zero
    // point. x holds the values of a tensor of shape `shape` in its order, two
    // to a byte, the first in the lower half. Scales have that shape with
    // ceil(dim / block_size) for the axis; zero points are stored like x, 8
    // where there are none.
    {.names = "DequantizeBlocks",
     .signature = R"((x: uint8, scale: S, zero_point: uint8) -> (y: float)
       | S: {half, float}; shape: shape; axis: int = 0;
       block_size: int >= 1)",
     .shape = ShapeAttribute,
     .origin = Origin::kOtherFormats},
    // An LSTM over a sequence, [batch, time, inputs] or time first. Weights
    // have
    // the gates input, forget, cell, output as rows; a coupled gate leaves the
    // input gate out. Peephole [3 * cells] (input, forget, output), projection
    // [outputs, cells], its bias and layer norm [4 * cells] are empty where
    // they
    // are not used. A cell_scale says that the state is rounded in each step as
    // TensorFlow Lite's integer kernel does.
    {.names = "LiteLstmSequence",
     .signature = R"((x: float, h: float, c: float, input_weights: float,
       recurrent_weights: float, bias: float, peephole: float,
       projection: float, projection_bias: float, layer_norm: float)
       -> (y: float, last_h: float, last_c: float)
       | time_major: bool = false; couples_gates: bool = false;
       activation: string {tanh, relu, relu6, relu_n1_to_1, sigmoid, none} =
         tanh;
       cell_clip: float = 0; projection_clip: float = 0;
       cell_scale: float = 0; hidden_scale: float = 0;
       hidden_zero_point: int = 0; output_scale: float = 0;
       output_zero_point: int = 0)",
     .shape = LiteLstmShape,
     .origin = Origin::kOtherFormats},
    // The boxes that a single-shot detector found: decoded against anchors,
    // without those that overlap better ones.
    {.names = "DetectionPostprocess",
     .signature = R"((boxes: float, scores: float, anchors: float)
       -> (detection_boxes: float, detection_classes: float,
       detection_scores: float, count: float)
       | max_detections: int >= 1; max_classes_per_detection: int = 1;
       detections_per_class: int = 100; num_classes: int >= 1;
       use_regular_nms: bool = false; nms_score_threshold: float = 0;
       nms_iou_threshold: float = 0.5; y_scale: float = 1; x_scale: float = 1;
       h_scale: float = 1; w_scale: float = 1)",
     .shape = DetectionPostprocessShape,
     .origin = Origin::kOtherFormats},
};

}  // namespace

absl::Span<const OpRow> LinearQuantizationOps() { return kRows; }

}  // namespace optfarm::graph
