// HMAC-SHA-256 (RFC 2104): shows that bytes come from somebody who has a key.

#ifndef OPTFARM_BASE_HMAC_H_
#define OPTFARM_BASE_HMAC_H_

#include <string>

#include "absl/strings/string_view.h"

namespace optfarm {

// As 64 lower-case hex digits.
std::string HmacSha256Hex(absl::string_view key, absl::string_view bytes);

}  // namespace optfarm

#endif  // OPTFARM_BASE_HMAC_H_
