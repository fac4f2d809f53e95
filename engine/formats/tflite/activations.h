// Activations that other operators carry with them.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_ACTIVATIONS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_ACTIVATIONS_H_

#include <cstdint>

#include "engine/formats/tflite/lowering.h"

namespace optfarm::tflite {

enum class ActivationFunctionType : int8_t;

// The value behind the activation function. Fails for one that we do not know.
Value Activated(OpLowering& c, const Value& value,
                ActivationFunctionType function);
// The value within [least, most].
Value Clamped(OpLowering& c, const Value& value, float least, float most);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_ACTIVATIONS_H_
