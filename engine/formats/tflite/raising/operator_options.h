// The options of operators as the file format has them: a table for each kind.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_OPERATOR_OPTIONS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_OPERATOR_OPTIONS_H_

#include "engine/formats/tflite/raising/model_draft.h"

namespace optfarm::tflite {
struct BuiltinOptionsUnion;
}  // namespace optfarm::tflite

namespace optfarm::formats::tflite_raising {

// Leaves *options empty for an operator that has none.
void SetOperatorOptions(const ModelDraft& draft, const DraftOperator& op,
                        tflite::BuiltinOptionsUnion* options);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_OPERATOR_OPTIONS_H_
