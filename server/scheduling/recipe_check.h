// Whether a recipe can work at all: names, numbers, and that every transform
// and parameter exists. The worker checks again; this check is for an answer at
// submit instead of a failed job.

#ifndef OPTFARM_SERVER_SCHEDULING_RECIPE_CHECK_H_
#define OPTFARM_SERVER_SCHEDULING_RECIPE_CHECK_H_

#include "absl/status/status.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::server {

// ERRORS: InvalidArgument that names the field, the value and what is allowed;
// for an unknown transform or parameter, the nearest names.
absl::Status CheckRecipe(const v1::Recipe& recipe);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_RECIPE_CHECK_H_
