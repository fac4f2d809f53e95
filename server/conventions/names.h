// The names that users and agents choose: which characters they may have.

#ifndef OPTFARM_SERVER_CONVENTIONS_NAMES_H_
#define OPTFARM_SERVER_CONVENTIONS_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace optfarm::server {

// A letter or digit, then letters, digits, '.', '_' or '-'; 1..64 characters.
// Devices, workers, agents and recipes. ERRORS: InvalidArgument that calls the
// thing `what` and quotes the value.
absl::Status CheckName(absl::string_view what, absl::string_view name);

// As CheckName, up to 128 characters. Artifacts; such a name is safe as a file
// name in any folder.
absl::Status CheckFileName(absl::string_view what, absl::string_view name);

// A relative path: '/' between parts, none empty, "." or ".."; at most 1024
// bytes, no control characters.
absl::Status CheckRelativePath(absl::string_view what, absl::string_view path);

// `value` in quotes for a message: escaped, and cut when it is long.
std::string Quoted(absl::string_view value);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_CONVENTIONS_NAMES_H_
