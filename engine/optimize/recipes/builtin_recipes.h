// The text of the recipes that come with Optfarm. Only recipes.cc and its tests
// include this file.

#ifndef OPTFARM_ENGINE_OPTIMIZE_RECIPES_BUILTIN_RECIPES_H_
#define OPTFARM_ENGINE_OPTIMIZE_RECIPES_BUILTIN_RECIPES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::optimize {

struct BuiltInText {
  absl::string_view name;
  absl::string_view yaml;
};

absl::Span<const BuiltInText> BuiltInTexts();

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_RECIPES_BUILTIN_RECIPES_H_
