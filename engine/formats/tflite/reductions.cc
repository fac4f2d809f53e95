// Reductions along dimensions, running sums and segments.

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

Value Reduced(const OperatorRow& row, OpLowering& c, const Value& value) {
  const auto* options = c.op().builtin_options_as_ReducerOptions();
  const bool keep_dims = options != nullptr && options->keep_dims();
  return c.Add(row.op, row.op, {value, c.Stored(1)},
               [&](tensorflow::NodeDef* node) {
                 graph::SetBool(node, "keep_dims", keep_dims);
               });
}

absl::Status LowerReduction(const OperatorRow& row, OpLowering& c) {
  c.SetReal(0, Reduced(row, c, c.Real(0)));
  return absl::OkStatus();
}

// The extremes of quantized values are those of what they stand for.
absl::Status LowerExtreme(const OperatorRow& row, OpLowering& c) {
  if (c.InputFitsOutput(0, 0)) {
    c.SetStored(0, Reduced(row, c, c.Stored(0)));
  } else {
    c.SetReal(0, Reduced(row, c, c.Real(0)));
  }
  return absl::OkStatus();
}

absl::Status LowerArgExtreme(const OperatorRow& row, OpLowering& c) {
  if (c.output_count() != 1) {
    return absl::InvalidArgumentError("must have one output");
  }
  const tensorflow::DataType type = TypeOf(c.out(0));
  const Value axis = c.Scalar(1, "axis");
  c.SetStored(0, c.Add(row.op, row.op, {c.Stored(0), axis},
                       [&](tensorflow::NodeDef* node) {
                         graph::SetType(node, "output_type", type);
                       }));
  return absl::OkStatus();
}

absl::Status LowerCumsum(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_CumsumOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  c.SetReal(0, c.Add("Cumsum", "Cumsum", {c.Real(0), c.Stored(1)},
                     [&](tensorflow::NodeDef* node) {
                       graph::SetBool(node, "exclusive", options->exclusive());
                       graph::SetBool(node, "reverse", options->reverse());
                     }));
  return absl::OkStatus();
}

absl::Status LowerSegments(const OperatorRow& row, OpLowering& c) {
  c.SetReal(0, c.Add(row.op, row.op, {c.Real(0), c.Stored(1)}));
  return absl::OkStatus();
}

absl::Status LowerUnsortedSegments(const OperatorRow& row, OpLowering& c) {
  c.SetReal(0, c.Add(row.op, row.op, {c.Real(0), c.Stored(1), c.Stored(2)}));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::MEAN, 5, LowerReduction, "Mean"},
    {BuiltinOperator::SUM, 4, LowerReduction, "Sum"},
    {BuiltinOperator::REDUCE_PROD, 4, LowerReduction, "Prod"},
    {BuiltinOperator::REDUCE_ANY, 3, LowerReduction, "Any"},
    {BuiltinOperator::REDUCE_ALL, 3, LowerReduction, "All"},
    {BuiltinOperator::REDUCE_MAX, 5, LowerExtreme, "Max"},
    {BuiltinOperator::REDUCE_MIN, 5, LowerExtreme, "Min"},
    {BuiltinOperator::ARG_MAX, 5, LowerArgExtreme, "ArgMax"},
    {BuiltinOperator::ARG_MIN, 5, LowerArgExtreme, "ArgMin"},
    {BuiltinOperator::CUMSUM, 3, LowerCumsum},
    {BuiltinOperator::SEGMENT_SUM, 2, LowerSegments, "SegmentSum"},
    {BuiltinOperator::UNSORTED_SEGMENT_SUM, 2, LowerUnsortedSegments,
     "UnsortedSegmentSum"},
    {BuiltinOperator::UNSORTED_SEGMENT_PROD, 2, LowerUnsortedSegments,
     "UnsortedSegmentProd"},
    {BuiltinOperator::UNSORTED_SEGMENT_MAX, 2, LowerUnsortedSegments,
     "UnsortedSegmentMax"},
    {BuiltinOperator::UNSORTED_SEGMENT_MIN, 2, LowerUnsortedSegments,
     "UnsortedSegmentMin"},
};

}  // namespace

absl::Span<const OperatorRow> ReductionRows() { return kRows; }

}  // namespace optfarm::tflite
