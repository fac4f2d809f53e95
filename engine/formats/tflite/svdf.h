// The SVDF layer; recurrent.cc has its row.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_SVDF_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_SVDF_H_

#include "absl/status/status.h"
#include "engine/formats/tflite/operator_table.h"

namespace optfarm::tflite {

// A LowerFunction (operator_table.h).
absl::Status LowerSvdf(const OperatorRow& row, OpLowering& c);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_SVDF_H_
