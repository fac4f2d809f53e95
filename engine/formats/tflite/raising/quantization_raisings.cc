// Where real numbers become quantized values, and back.

#include <tflite/schema_generated.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::Endpoint;
using tflite::BuiltinOperator;
using tflite::TensorType;

bool IsStorable(TensorType type) {
  return type == TensorType::INT8 || type == TensorType::UINT8 ||
         type == TensorType::INT16;
}

absl::Status RaiseQuantize(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const Quantization scales,
                           node.view().ScalesOf(node.output().node));
  const tensorflow::DataType dtype = node.view().TypeOf(node.output());
  const TensorType type = node.tensors().StoredType(dtype);
  if (!IsStorable(type)) {
    return absl::UnimplementedError(
        absl::StrCat("it gives ", graph::DataTypeName(dtype),
                     "; int8, uint8 and int16 are written"));
  }
  const Quantization stored = node.tensors().StoredScales(scales, dtype);
  const std::optional<TensorId> twin = node.tensors().Twin(node.input(0));
  const TensorId from = twin.has_value() ? *twin : node.Tensor(0);
  const DraftTensor& source = node.draft().tensor(from);
  if (source.type == type && source.quantization == stored) {
    node.SetOutput(from);
    return absl::OkStatus();
  }
  const TensorId made = node.tensors().NewTensor(node.output(), type, stored);
  node.SetOutput(made);
  node.draft().AddOperator(BuiltinOperator::QUANTIZE, {from}, {made});
  return absl::OkStatus();
}

// Tensors that have a twin need nothing: readers find it. The rest, such as
// accumulators, become floats by arithmetic.
absl::Status RaiseDequantize(NodeRaiser& node) {
  if (node.tensors().Twin(node.output()).has_value()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const Quantization scales,
                           node.view().ScalesOf(node.output().node));
  const Endpoint stored = node.input(0);
  const tensorflow::DataType dtype = node.view().TypeOf(stored);
  if (scales.scale.size() != 1 || dtype != tensorflow::DT_INT32) {
    return absl::UnimplementedError(absl::StrCat(
        "it reads ", graph::DataTypeName(dtype), " with ", scales.scale.size(),
        " scales that another node contradicts"));
  }
  DraftTensor real;
  real.name = absl::StrCat(node.node().name(), "/float");
  real.type = TensorType::FLOAT32;
  real.shape = node.ShapeOfInput(0);
  const TensorId cast = node.draft().AddTensor(std::move(real));
  node.draft().AddOperator(BuiltinOperator::CAST, {node.Tensor(0)}, {cast});
  TensorId centered = cast;
  if (scales.zero_point[0] != 0) {
    centered = node.EmitBetween(
        BuiltinOperator::SUB,
        {cast, node.Float(static_cast<float>(scales.zero_point[0]))}, cast,
        node.ShapeOfInput(0));
  }
  node.Emit(BuiltinOperator::MUL, {centered, node.Float(scales.scale[0])});
  return absl::OkStatus();
}

absl::Status RaiseFakeQuant(NodeRaiser& node) {
  OperatorOptions options;
  if (node.input_count() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(const Constant low,
                             node.view().ConstantAt(node.input(1)));
    OPTFARM_ASSIGN_OR_RETURN(const Constant high,
                             node.view().ConstantAt(node.input(2)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> lows, RealValues(low));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> highs, RealValues(high));
    if (lows.size() != 1 || highs.size() != 1) {
      return absl::UnimplementedError("it has a range for each channel");
    }
    options.low = lows[0];
    options.high = highs[0];
  } else {
    OPTFARM_ASSIGN_OR_RETURN(options.low,
                             graph::GetFloatOr(node.def(), "min", -6));
    OPTFARM_ASSIGN_OR_RETURN(options.high,
                             graph::GetFloatOr(node.def(), "max", 6));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(node.def(), "num_bits", 8));
  OPTFARM_ASSIGN_OR_RETURN(options.narrow_range,
                           graph::GetBoolOr(node.def(), "narrow_range", false));
  options.count = static_cast<int>(bits);
  node.Emit(BuiltinOperator::FAKE_QUANT, {node.Tensor(0)}, options);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"FakeQuantWithMinMaxArgs", RaiseFakeQuant},
    {"FakeQuantWithMinMaxVars", RaiseFakeQuant},
    {"QuantizeLinear", RaiseQuantize},
    {"DequantizeLinear", RaiseDequantize},
};

}  // namespace

absl::Span<const RaisingRow> QuantizationRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
