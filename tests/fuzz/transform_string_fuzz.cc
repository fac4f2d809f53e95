// The transform-string grammar: what parses, prints and parses to the same.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "engine/transforms/transform_string.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace transforms = optfarm::transforms;
  const auto steps = transforms::ParseTransforms(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!steps.ok()) return 0;
  const std::string printed = transforms::PrintTransforms(*steps);
  const auto again = transforms::ParseTransforms(printed);
  OPTFARM_CHECK(again.ok());
  OPTFARM_CHECK(transforms::PrintTransforms(*again) == printed);
  return 0;
}
