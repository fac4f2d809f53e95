// A recipe's transforms: as YAML, as the message, and as the steps that the
// pipeline runs.

#ifndef OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPE_STEPS_H_
#define OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPE_STEPS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/transforms/machinery/transform_string.h"
#include "optfarm/v1/recipes.pb.h"

namespace YAML {
class Emitter;
class Node;
}  // namespace YAML

namespace optfarm::optimize {

// The steps of `transforms`, or of `transform_string` when that is set.
// ERRORS: InvalidArgument for a transform string that does not parse.
absl::StatusOr<std::vector<transforms::TransformStep>> StepsOfRecipe(
    const v1::Recipe& recipe);

// Reads a list whose items are a name, or a name with a map of parameters; a
// parameter is a value or a list of values. A list of numbers under a key that
// is not repeated in the catalog (a shape) becomes one value, "1,224,224,3".
// ERRORS: InvalidArgument with the line, also for transforms and parameters
// that the catalog does not have.
absl::Status ReadSteps(const YAML::Node& list, v1::Recipe* recipe);

// Writes `transforms` as an entry of the emitter's open map; nothing when
// there are none.
void WriteSteps(const v1::Recipe& recipe, YAML::Emitter* out);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPE_STEPS_H_
