// The LSTM operators, for the table of recurrent ones.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_LSTM_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_LSTM_H_

#include "absl/status/status.h"
#include "engine/formats/tflite/operator_table.h"

namespace optfarm::tflite {

// Each becomes a LiteLstmSequence for each direction, and its state variables.
// ERRORS: as LowerFunction.
absl::Status LowerSequenceLstm(const OperatorRow& row, OpLowering& c);
absl::Status LowerLstmCell(const OperatorRow& row, OpLowering& c);
absl::Status LowerBidirectionalLstm(const OperatorRow& row, OpLowering& c);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_LSTM_H_
