// QUANTIZE, DEQUANTIZE and DENSIFY, and FAKE_QUANT of models that were not
// quantized in the end.

#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// The scale of 8-bit values that XNNPACK brings to another scale; 0 where it
// leaves that to the interpreter, which multiplies by the ratio of the scales.
float RescaledFrom(const OpLowering& c) {
  constexpr float kLeastRatio = 1.0f / 256, kMostRatio = 128;
  if (!c.Has(0) || !c.HasBytes(c.in(0)) || c.in(0).type() != c.out(0).type()) {
    return 0;
  }
  const auto from = c.QuantizationOfInput(0), to = c.QuantizationOfOutput(0);
  if (!from.ok() || !to.ok() || from->is_per_channel() ||
      to->is_per_channel()) {
    return 0;
  }
  const float ratio = from->scale[0] / to->scale[0];
  return ratio >= kLeastRatio && ratio <= kMostRatio ? from->scale[0] : 0;
}

// From real to quantized, or from one scale to another.
absl::Status LowerQuantize(const OperatorRow&, OpLowering& c) {
  const Value real = c.Real(0);
  if (c.output_count() != 1 || !IsQuantized(c.out(0))) {
    return absl::InvalidArgumentError("its output is not quantized");
  }
  const float input_scale = RescaledFrom(c);
  c.SetReal(0, c.Cast(real, tensorflow::DT_FLOAT, "float"),
            [&](tensorflow::NodeDef* node) {
              if (input_scale > 0) {
                graph::SetFloat(node, "input_scale", input_scale);
              }
            });
  return absl::OkStatus();
}

// From quantized values, or from half precision.
absl::Status LowerDequantize(const OperatorRow&, OpLowering& c) {
  if (!c.Has(0) || c.output_count() != 1) {
    return absl::InvalidArgumentError("must have one input and one output");
  }
  if (!IsQuantized(c.in(0))) {
    const Value stored = c.Stored(0);
    if (stored.type != tensorflow::DT_HALF &&
        stored.type != tensorflow::DT_BFLOAT16 &&
        stored.type != tensorflow::DT_FLOAT) {
      return absl::InvalidArgumentError(
          "its input is neither quantized nor of half precision");
    }
    c.SetStored(0, c.Cast(stored, TypeOf(c.out(0)), "Cast"));
    return absl::OkStatus();
  }
  // The real form of the input under the name of the output.
  const Value stored = c.Stored(0);
  if (!c.status().ok()) return c.status();
  OPTFARM_ASSIGN_OR_RETURN(
      const Value real,
      c.subgraph().Dequantized(c.InputId(0), stored,
                               c.subgraph().NameOf(c.OutputId(0))));
  c.subgraph().SetReal(c.InputId(0), real);
  c.SetStored(0, real);
  return absl::OkStatus();
}

// Reading the constant has made it dense.
absl::Status LowerDensify(const OperatorRow&, OpLowering& c) {
  if (!c.Has(0) || !c.subgraph().IsConstant(c.InputId(0))) {
    return absl::InvalidArgumentError("its input is not a constant");
  }
  c.SetStored(0, c.Stored(0));
  return absl::OkStatus();
}

absl::Status LowerFakeQuant(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_FakeQuantOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  c.SetReal(0, c.Add("FakeQuantWithMinMaxArgs", "fake_quant", {c.Real(0)},
                     [&](tensorflow::NodeDef* node) {
                       graph::SetFloat(node, "min", options->min());
                       graph::SetFloat(node, "max", options->max());
                       graph::SetInt(node, "num_bits", options->num_bits());
                       graph::SetBool(node, "narrow_range",
                                      options->narrow_range());
                     }));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::QUANTIZE, 5, LowerQuantize},
    {BuiltinOperator::DEQUANTIZE, 8, LowerDequantize},
    {BuiltinOperator::DENSIFY, 2, LowerDensify},
    {BuiltinOperator::FAKE_QUANT, 3, LowerFakeQuant},
};

}  // namespace

absl::Span<const OperatorRow> QuantizationRows() { return kRows; }

}  // namespace optfarm::tflite
