// One row says everything that the engine knows of an op: its signature, how
// shapes, whole numbers and value ranges pass through it, what it costs, what
// it is on quantized values, since when TensorFlow has it. Start here to add an
// op: write its row into the table of its family (array_ops.cc, nn_ops.cc, ...)
// and its kernel into engine/runtime/reference; docs/adding-an-op.md walks
// through one.
//
// A row is data: names, small enumerations, and functions of this room. Passes
// ask op_table.h for the row of a node's op and read the property that they
// need, so that a new op takes part in every pass that its row fits. They
// compare names only where they match one certain op.
//
// What a field does not say is its default: an op that computes new values,
// whose output shapes are unknown, that TensorFlow 1.4 has and no pass treats
// in a special way.

#ifndef OPTFARM_ENGINE_GRAPH_OPS_OP_ROW_H_
#define OPTFARM_ENGINE_GRAPH_OPS_OP_ROW_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace optfarm::graph {

class NodeShapes;
class ShapeContext;

// Sets what can be known of a node's outputs; shape_context.h has the contract.
using ShapeFunction = absl::Status (*)(ShapeContext& c);

// UNITS: multiply-adds in one run of the node; nullopt when a shape that they
// depend on is not known.
using MultiplyAddsFunction = std::optional<double> (*)(const NodeShapes& node);

// What an op is to the passes that look for it. Ops that differ in name or
// version, in the type of their tensors, or in being made for references have
// one role; an op that only one pass looks for has none and is found by name.
enum class OpRole : uint8_t {
  kNone,
  // Where values come from.
  kConst,
  kMappedConst,  // Its value lies in a file that is mapped into memory.
  kPlaceholder,
  kOptionalPlaceholder,  // It has a default value.
  kVariable,             // Its output is a reference.
  kResourceVariable,     // Its output is a resource handle.
  kReadVariable,         // Of a resource.
  kAssign,
  // Passing on, moving and asking for shapes.
  kNoOp,
  kIdentity,
  kCast,
  kReshape,
  kTranspose,
  kPad,  // With zeros, or with the number that a third input holds.
  kShape,
  kRank,
  kSize,
  // Control flow.
  kSwitch,
  kMerge,
  kEnter,
  kExit,
  kNextIteration,
  kLoopCond,
  kCall,
  kIf,
  kCase,
  kWhile,
  // Arithmetic that is affine in one input when the others are constant.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kBiasAdd,
  kBatchNorm,
  kGlobalBatchNorm,  // BatchNormWithGlobalNormalization's order of inputs.
  // Other arithmetic.
  kNegate,
  kMean,
  kMin,  // Reductions.
  kMax,
  kMaxPool,
  kAveragePool,
  // Joins along an axis.
  kConcat,
  kQuantizedConcat,
  // Between floats and quantized values: with a range (QuantizeV2, Dequantize),
  // or with scale and zero point (QuantizeLinear, DequantizeLinear).
  kQuantize,
  kDequantize,
  kQuantizeLinear,
  kDequantizeLinear,
  kFakeQuantize,  // With one range, which inputs hold.
  // From one range to another: one range, or one for each channel.
  kRequantize,
  kRequantizePerChannel,
  kRequantizationRange,
  kRequantizationRangePerChannel,
  // On quantized values, with the ranges of their inputs.
  kQuantizedAdd,
  kQuantizedMultiply,
  kQuantizedBiasAdd,
  kQuantizedMaxPool,
  kQuantizedAveragePool,
};

// Where the elements of an op's outputs come from.
enum class ValueFlow : uint8_t {
  // They are computed, and have a range of their own.
  kArithmetic,
  // They are computed, but never leave the range of input 0 and zero.
  kRangePreserving,
  // They are elements of the inputs, or a filling such as zero.
  kDataMovement,
  // They are all elements of input 0 in their order, under another shape.
  kReshaping,
  // Output 0 is input 0.
  kForwarding,
};

// What the op demands of a tensor that it reads, where a placeholder's shape is
// not written down.
enum class InputDemand : uint8_t {
  kNone,
  kScalar,          // Input 0 is a scalar.
  kScalarSecond,    // Input 1 is a scalar.
  kImages,          // Input 0 has rank 4.
  kFilterChannels,  // Input 0 has rank 4 and the channels of the filter,
                    // input 1.
  kMatrixDepth,     // Input 0 is a matrix whose columns fit input 1.
  kAsOutput,        // Input 0 has the shape that readers of the output demand.
};

enum class Activation : uint8_t { kNone, kRelu, kRelu6 };

// Sums of products with weights.
enum class LayerProduct : uint8_t { kNone, kConvolution, kDepthwise, kMatrix };
enum class LayerResult : uint8_t { kFloats, kAccumulators, kQuantizedValues };

// A layer is such a sum, with what its op adds before and after.
struct LayerForm {
  LayerProduct product = LayerProduct::kNone;
  // Whether it reads quantized values.
  bool is_quantized = false;
  // Whether the weights may have a range for each output channel.
  bool has_channel_ranges = false;
  bool has_bias = false;
  bool has_relu = false;
  LayerResult result = LayerResult::kFloats;
};

// What a float op is on quantized values. Lists are separated by commas.
struct QuantizedForm {
  // The op that does the same on quantized values.
  absl::string_view op;
  // What quantize_nodes needs to put it in the float op's place; for ops whose
  // place it leaves alone, as TensorFlow's does, `value_types` is empty.
  // Attributes that the quantized op takes over.
  absl::string_view copied = "";
  // Attributes that become quint8.
  absl::string_view value_types = "";
  // The attribute that becomes qint32; empty when the result has 8 bits.
  absl::string_view result_type = "";
  // The input that stays as it is; -1 for none.
  int plain_input = -1;
  // Whether all minima come before all maxima; else min, max, min, max, ...
  bool has_separate_ranges = false;
  // The op of a whole layer that quantize_layers makes: product and bias.
  absl::string_view layer_op = "";

  bool has_32_bit_result() const { return !result_type.empty(); }
};

// Who defines the op. By TensorFlow's op lists of September and of early
// November 2017, just before and after version 1.4. Ops that only the second
// has may be in 1.4 or not: RightShift counts as later, LogMatrixDeterminant
// does not. Recurrent blocks (LSTMBlockCell, ...) came with contrib then and
// count as 1.4's.
enum class Origin : uint8_t {
  kTensorFlow14,     // TensorFlow 1.4 or before.
  kLaterTensorFlow,  // TensorFlow, after 1.4.
  kOtherFormats,     // ONNX or TensorFlow Lite; TensorFlow has no such op.
};

struct OpRow {
  // One name, or several, separated by commas, of ops that differ in name only.
  const char* names = "";
  // Arguments and attributes, in the notation of op_signatures.h.
  const char* signature = "";

  // --- Shapes ----------------------------------------------------------------

  // nullptr: all outputs are of unknown shape.
  ShapeFunction shape = nullptr;
  // How whole-number values pass; runs after `shape`. nullptr: none come out.
  ShapeFunction values = nullptr;
  InputDemand demand = InputDemand::kNone;

  // --- What it does ----------------------------------------------------------

  OpRole role = OpRole::kNone;
  ValueFlow flow = ValueFlow::kArithmetic;
  Activation activation = Activation::kNone;
  LayerForm layer = {};
  // nullptr: not counted, as TensorFlow's benchmark_model counts.
  MultiplyAddsFunction multiply_adds = nullptr;
  // Of a join: input 0 is the axis; else the axis comes behind the tensors.
  bool has_axis_first = false;
  // Does its work for others: nobody asks for its outputs as a model's answer.
  bool is_bookkeeping = false;

  // --- Quantization ----------------------------------------------------------

  // Of a float op; nullptr: it stays in float. OWNERSHIP: constant data.
  const QuantizedForm* quantized = nullptr;
  // Of an op on quantized values: the op that does the same on floats, for
  // whose inputs these values and their ranges stand. "": there is none, or the
  // op's form (layer, role) says it.
  absl::string_view float_op = "";
  // Of a data movement op: TensorFlow has it for uint8, so that quantize_layers
  // runs the op itself on the bytes of quantized values.
  bool moves_bytes = false;
  // Of an op on quantized values: the input that holds the minimum of input 0;
  // the maximum follows, and then the range of input 1 where that has one. -1:
  // there is none, or its place depends on the number of inputs.
  int8_t range_input = -1;
  // The input that holds the minimum of the range that its quantized values
  // get; the maximum follows. -1: the op finds the range.
  int8_t output_range_input = -1;
  // Outputs 1 and 2 are the range of input 0.
  bool keeps_range = false;

  // --- Versions --------------------------------------------------------------

  Origin origin = Origin::kTensorFlow14;
};

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OPS_OP_ROW_H_
