// Bytes that a task printed, made fit to be kept and shown as text.

#ifndef OPTFARM_SERVER_CONVENTIONS_LOG_TEXT_H_
#define OPTFARM_SERVER_CONVENTIONS_LOG_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace optfarm::server {

// Returns `bytes` with each byte that is not part of valid UTF-8 replaced by
// U+FFFD. A protobuf string must be valid UTF-8, or the receiver refuses the
// whole message.
std::string ToUtf8(absl::string_view bytes);

// The longest beginning of valid UTF-8 `text` that has at most `max_bytes`
// bytes and ends between characters.
absl::string_view CutText(absl::string_view text, size_t max_bytes);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_CONVENTIONS_LOG_TEXT_H_
