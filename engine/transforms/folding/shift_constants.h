// shift_constants: adds numbers from a file to float constants of the graph.
// This is how a correction that was measured on data (bias_correction.h in
// engine/optimize) becomes a step that can be repeated without the data.
//
// The file has one line for each constant: its name, then one number for each
// of its elements, separated by spaces.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FOLDING_SHIFT_CONSTANTS_H_
#define OPTFARM_ENGINE_TRANSFORMS_FOLDING_SHIFT_CONSTANTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"

namespace optfarm::transforms {

// What is added to each element of a constant, by the constant's name.
using ConstantShifts = std::map<std::string, std::vector<float>>;

// ERRORS: InvalidArgument naming the line for a name without numbers, a number
// that is not one or not finite, or a name that comes twice.
absl::StatusOr<ConstantShifts> ParseConstantShifts(absl::string_view text);

// Nine digits a number: parsing gives the same floats again.
std::string PrintConstantShifts(const ConstantShifts& shifts);

// Adds the shifts to the constants.
// ERRORS: InvalidArgument, before anything is changed, for a name that is not
// a float Const of the graph or has another number of elements.
absl::Status ShiftConstants(const ConstantShifts& shifts, graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FOLDING_SHIFT_CONSTANTS_H_
