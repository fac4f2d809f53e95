#include "http/url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace optfarm::http {
namespace {

constexpr size_t kMaxUrlBytes = 4000;

std::string InBrackets(const std::string& host) {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : host;
}

}  // namespace

std::string Url::Authority() const {
  return absl::StrCat(InBrackets(host), ":", port);
}

std::string Url::HostHeader() const {
  return port == (tls ? 443 : 80) ? InBrackets(host) : Authority();
}

absl::StatusOr<Url> ParseUrl(absl::string_view text) {
  const auto malformed = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::CHexEscape(text.substr(0, 200)), "' ", why,
                     "; give http://HOST[:PORT]/PATH or https://..."));
  };
  Url url;
  absl::string_view rest = text;
  if (text.size() > kMaxUrlBytes) return malformed("is too long");
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return malformed("has characters that an address has not");
    }
  }
  if (absl::ConsumePrefix(&rest, "https://")) {
    url.tls = true;
  } else if (!absl::ConsumePrefix(&rest, "http://")) {
    return malformed("is neither http nor https");
  }
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  absl::string_view authority = rest.substr(0, end);
  url.target = std::string(rest.substr(end));
  if (absl::StrContains(url.target, '#')) return malformed("has a fragment");
  if (!absl::StartsWith(url.target, "/")) url.target.insert(0, 1, '/');
  if (absl::StrContains(authority, '@')) {
    return malformed("has a user's name in it");
  }
  url.port = url.tls ? 443 : 80;
  const size_t colon = authority.rfind(':');
  if (colon != absl::string_view::npos && !absl::EndsWith(authority, "]")) {
    if (!absl::SimpleAtoi(authority.substr(colon + 1), &url.port) ||
        url.port < 1 || url.port > 65535) {
      return malformed("has a port that is none");
    }
    authority = authority.substr(0, colon);
  }
  if (absl::ConsumePrefix(&authority, "[")) {
    if (!absl::ConsumeSuffix(&authority, "]")) return malformed("lacks a ']'");
  } else if (absl::StrContains(authority, ':')) {
    return malformed("has too many colons");
  }
  if (authority.empty()) return malformed("has no host");
  url.host = absl::AsciiStrToLower(authority);
  return url;
}

}  // namespace optfarm::http
