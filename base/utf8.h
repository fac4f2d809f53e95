// What is UTF-8 and what is not.

#ifndef OPTFARM_BASE_UTF8_H_
#define OPTFARM_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace optfarm {

// Bytes of the UTF-8 sequence at the front of `text`; 0 when it is none: cut
// short, longer than needed, a surrogate, or beyond U+10FFFF.
// REQUIRES: `text` is not empty.
size_t Utf8SequenceLength(absl::string_view text);

bool IsUtf8(absl::string_view text);

// The text with U+FFFD in place of zero bytes and of each byte that is not part
// of valid UTF-8: what PostgreSQL accepts as a text.
std::string ReplaceInvalidUtf8(absl::string_view text);

}  // namespace optfarm

#endif  // OPTFARM_BASE_UTF8_H_
