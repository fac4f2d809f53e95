// Rows of the ops that stand between real numbers and quantized values with an
// explicit scale and zero point, as in ONNX and TensorFlow Lite, and of layers
// of TensorFlow Lite that work on such values inside. op_row.h says what they
// hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr OpRow kRows[] = {
    // One scale and zero point for the tensor, or one for each index of `axis`.
    // `bits` is the width of the values where it is less than their type's: a
    // 4-bit value travels as one of 8 bits.
    {.names = "QuantizeLinear",
     .signature = R"((x: T, scale: float, zero_point: Q) -> (y: Q)
       | T: {floating}; Q: {int8, uint8, int16, uint16, int32};
       axis: int = -1; bits: int = 8)",
     .shape = UnchangedShape,
     .origin = Origin::kOtherFormats},
    {.names = "DequantizeLinear",
     .signature = R"((x: Q, scale: float, zero_point: Q) -> (y: float)
       | Q: {int8, uint8, int16, uint16, int32}; axis: int = -1;
       bits: int = 8)",
     .shape = UnchangedShape,
     .origin = Origin::kOtherFormats},
};

}  // namespace

absl::Span<const OpRow> LinearQuantizationOps() { return kRows; }

}  // namespace optfarm::graph
