// Where traces go, as the operator says it.

#ifndef OPTFARM_SERVER_DELIVERY_COLLECTOR_H_
#define OPTFARM_SERVER_DELIVERY_COLLECTOR_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/post.h"

namespace optfarm::server {

// The address that traces are sent to: `endpoint`, the base of a collector's
// addresses as in OTEL_EXPORTER_OTLP_ENDPOINT, and "/v1/traces", unless it ends
// so already.
// ERRORS: InvalidArgument that says what an endpoint looks like.
absl::StatusOr<http::Url> TracesUrl(absl::string_view endpoint);

// Headers to send, from a file's text: "NAME: VALUE" line by line; lines that
// are empty or begin with '#' are left out.
// ERRORS: InvalidArgument that names the line, and never a value, which may be
// a secret.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
ParseHeaderLines(absl::string_view text);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_COLLECTOR_H_
