// Which version of an operator a file must ask for, and since when runtimes
// have it. A runtime refuses a version that it does not know, so each is the
// lowest that has what the operator uses.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_OPERATOR_VERSIONS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_OPERATOR_VERSIONS_H_

#include <string>

#include "engine/formats/tflite/raising/model_draft.h"

namespace optfarm::formats::tflite_raising {

int OperatorVersion(const ModelDraft& draft, const DraftOperator& op);

// The oldest runtime that runs all of the draft's operators, as "2.3.0".
std::string MinimumRuntimeVersion(const ModelDraft& draft);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_OPERATOR_VERSIONS_H_
