// Text as a JSON string, for code that writes a little JSON by hand.

#ifndef OPTFARM_BASE_JSON_STRING_H_
#define OPTFARM_BASE_JSON_STRING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace optfarm {

// `text` with quotation marks around it and everything escaped that JSON wants
// escaped; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(absl::string_view text);
// The same, appended to `out`.
void AppendJsonString(absl::string_view text, std::string& out);

// `value` as a JSON number; null for what JSON cannot say (NaN, infinity).
std::string JsonNumber(double value);

}  // namespace optfarm

#endif  // OPTFARM_BASE_JSON_STRING_H_
