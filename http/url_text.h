// Text as it comes in URLs.

#ifndef OPTFARM_HTTP_URL_TEXT_H_
#define OPTFARM_HTTP_URL_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::http {

// Decodes "%2F"; `plus_is_blank` for queries. ERRORS: InvalidArgument for bad
// escapes and for what is not UTF-8.
absl::StatusOr<std::string> PercentDecode(absl::string_view text,
                                          bool plus_is_blank);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_URL_TEXT_H_
