// Arrays as NumPy prints them, for tools whose originals do so.

#ifndef OPTFARM_CLIENT_CLI_TABLES_ARRAY_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_ARRAY_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::client_cli {

// NumPy's print options, with its defaults.
struct ArrayTextOptions {
  // Digits behind the point, at most.
  int64_t precision = 8;
  // Larger arrays are shown by their edges.
  int64_t threshold = 1000;
  int64_t edgeitems = 3;
  // UNITS: characters.
  int64_t linewidth = 75;
  // Never uses exponents for the array as a whole.
  bool suppress = false;
};

// Sets one option from "precision=3".
// ERRORS: InvalidArgument for an option or value that does not exist.
absl::Status SetArrayTextOption(absl::string_view text,
                                ArrayTextOptions* options);

// The array, without a newline at the end. Half and bfloat16 print as the
// floats they are.
std::string ArrayText(const runtime::Tensor& array,
                      const ArrayTextOptions& options = {});

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_ARRAY_TEXT_H_
