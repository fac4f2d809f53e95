// One request's head and one whole answer, without a word of Beast.

#ifndef OPTFARM_HTTP_MESSAGE_H_
#define OPTFARM_HTTP_MESSAGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace optfarm::http {

struct RequestHead {
  // "GET", ...
  std::string verb;
  // Before and after '?', still escaped.
  std::string path;
  std::string query;
  // By lower-case name; the last of several wins.
  std::map<std::string, std::string> headers;
  // The address that the request came from; "" when there is none.
  std::string peer;
  // TLS has accepted a certificate of the other side.
  bool certified = false;
  // UNITS: bytes; none for a chunked body.
  std::optional<int64_t> content_length;

  // "" when absent.
  absl::string_view Header(absl::string_view name) const {
    const auto found = headers.find(std::string(name));
    return found == headers.end() ? absl::string_view() : found->second;
  }
};

struct Reply {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// An error as RFC 9457's application/problem+json: title, status, detail, our
// canonical code, and what details the status carries.
Reply Problem(const absl::Status& status);
// The same with a status of HTTP's own that no code means (413, 408, ...).
Reply Problem(int http_status, const absl::Status& status);

// The status of HTTP for a code, after google.rpc.Code's table.
int HttpStatusOf(absl::StatusCode code);

// "Not Found". "" for numbers we never send.
absl::string_view ReasonOf(int http_status);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_MESSAGE_H_
