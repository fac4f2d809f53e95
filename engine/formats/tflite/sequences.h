// What operators over sequences share: state that lasts from run to run, and
// layers of two directions.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_SEQUENCES_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_SEQUENCES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/tflite/lowering.h"

namespace optfarm::tflite {

// Input i as real numbers in float, also where it is stored as integers or
// halves.
Value RealFloats(OpLowering& c, int i);

// Keeps a state, under the scale of its tensor, for the next run. Nothing
// happens where the state is no variable: a model that is fed with it has it
// as an output, too.
absl::Status KeepState(OpLowering& c, int input, const Value& real);

// [batch, n] as a sequence [1, batch, n] of one step, and back.
Value OneStep(OpLowering& c, const Value& x);
Value OfOneStep(OpLowering& c, const Value& x);

// Along dimension `axis`.
Value Reversed(OpLowering& c, const Value& x, int64_t axis,
               absl::string_view suffix);

// What the layers of both directions read.
struct DirectionInputs {
  Value forward, backward;
};

// An auxiliary input stands beside the features for both directions where the
// layer is linked to the one before (it has weights for it), else it is all
// that the backward direction reads.
// ERRORS: InvalidArgument for a linked layer without auxiliary input.
absl::StatusOr<DirectionInputs> InputsOfDirections(OpLowering& c, int auxiliary,
                                                   bool is_linked);

// Both results as one output, side by side, or as two.
// ERRORS: InvalidArgument for one output where there should be two.
absl::Status SetDirections(OpLowering& c, const Value& forward,
                           const Value& backward, bool merges);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_SEQUENCES_H_
