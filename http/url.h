// Addresses of requests that these programs make of others.

#ifndef OPTFARM_HTTP_URL_H_
#define OPTFARM_HTTP_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::http {

// "https://hooks.example.com:8443/optfarm?x=1" in its parts.
struct Url {
  bool tls = false;
  // Lower case; an IPv6 address without its brackets.
  std::string host;
  int port = 0;
  // With the query; at least "/".
  std::string target;

  // "hooks.example.com:8443".
  std::string Authority() const;
  // The same without the port that the scheme has by itself.
  std::string HostHeader() const;
};

// ERRORS: InvalidArgument for what is no plain http or https address: other
// schemes, names and passwords, fragments, more than 4000 bytes.
absl::StatusOr<Url> ParseUrl(absl::string_view text);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_URL_H_
