// A user's own recipe. One that is accepted survives being printed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "engine/optimize/recipes/recipes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace optfarm::optimize;
  const auto recipe = ParseRecipe(
      absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!recipe.ok()) return 0;
  if (!ParseRecipe(PrintRecipe(*recipe), "printed").ok()) std::abort();
  return 0;
}
