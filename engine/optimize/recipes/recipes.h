// Recipes as data: YAML to and from optfarm::v1::Recipe, and the recipes that
// come with Optfarm. docs/recipes.md describes the fields for users.

#ifndef OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPES_H_
#define OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

// Reads a recipe. `name` stands in messages ("'mine.yaml'").
// ERRORS: InvalidArgument with the line for malformed YAML, an unknown key,
// transform or parameter (with the nearest names), a value of the wrong type
// or out of its range.
absl::StatusOr<v1::Recipe> ParseRecipe(absl::string_view yaml,
                                       absl::string_view name);

// Checks what ParseRecipe checks, on a recipe that came another way.
// ERRORS: InvalidArgument naming the field.
absl::Status CheckRecipe(const v1::Recipe& recipe);

// The recipe as canonical YAML: parsing it gives `recipe` again.
std::string PrintRecipe(const v1::Recipe& recipe);

// Names of the recipes that come with Optfarm, in the order they are shown.
std::vector<std::string> BuiltInRecipeNames();

// ERRORS: NotFound with the nearest names.
absl::StatusOr<v1::Recipe> BuiltInRecipe(absl::string_view name);

// A built-in recipe's name, or the path of a YAML file: whatever has a '/', a
// '.yaml' or '.yml' ending, or is an existing file that is no built-in name.
// ERRORS: NotFound for a name that is neither; ParseRecipe's; the file's.
absl::StatusOr<v1::Recipe> LoadRecipe(const std::string& name_or_path);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPES_H_
