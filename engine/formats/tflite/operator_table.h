// The operators that the reader lowers: a row each. Start here to add one:
// write a row into the table of its family (activations.cc, arrays.cc, ...) and
// the function that it names.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_OPERATOR_TABLE_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_OPERATOR_TABLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/tflite/model_file.h"

namespace optfarm::tflite {

class OpLowering;
struct OperatorRow;

// Adds the nodes of one operator and sets its outputs.
// ERRORS: Unimplemented for what is not supported; InvalidArgument for an
// operator that is not well formed. The caller adds which operator it was.
using LowerFunction = absl::Status (*)(const OperatorRow& row, OpLowering& c);

struct OperatorRow {
  BuiltinOperator code;
  // The highest version whose meaning we know; versions begin at 1.
  int versions;
  LowerFunction lower;
  // The graph's op, where several operators share a function.
  const char* op = "";
};

struct CustomOperatorRow {
  absl::string_view name;
  absl::Status (*lower)(OpLowering& c);
};

// The tables, a function for each family. THREADS: any; they are constant.
absl::Span<const OperatorRow> ActivationRows();
absl::Span<const OperatorRow> ArithmeticRows();
absl::Span<const OperatorRow> ArrayRows();
absl::Span<const OperatorRow> ControlRows();
absl::Span<const OperatorRow> IndexRows();
absl::Span<const OperatorRow> ProductRows();
absl::Span<const OperatorRow> QuantizationRows();
absl::Span<const OperatorRow> RecurrentRows();
absl::Span<const OperatorRow> ReductionRows();
absl::Span<const OperatorRow> WindowRows();
absl::Span<const CustomOperatorRow> CustomRows();

// nullptr when we do not lower the operator.
const OperatorRow* FindOperator(BuiltinOperator code);
const CustomOperatorRow* FindCustomOperator(absl::string_view name);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_OPERATOR_TABLE_H_
