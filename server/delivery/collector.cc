#include "server/delivery/collector.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

constexpr char kTracesPath[] = "/v1/traces";
// What the request itself says.
constexpr absl::string_view kOwnHeaders[] = {
    "connection",       "content-encoding", "content-length",
    "content-type",     "expect",           "host",
    "transfer-encoding"};

bool IsHeaderName(absl::string_view name) {
  return !name.empty() && absl::c_all_of(name, [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("!#$%&'*+-.^_`|~", c);
  });
}

bool IsHeaderValue(absl::string_view value) {
  return absl::c_all_of(value,
                        [](unsigned char c) { return absl::ascii_isprint(c); });
}

}  // namespace

absl::StatusOr<http::Url> TracesUrl(absl::string_view endpoint) {
  // They may be secrets, so the endpoint is not quoted.
  if (absl::StrContains(endpoint, '?') || absl::StrContains(endpoint, '@')) {
    return absl::InvalidArgumentError(
        "the address has a query, or a user's name; give http://HOST[:PORT] or "
        "https://..., and keys as headers");
  }
  OPTFARM_ASSIGN_OR_RETURN(http::Url url, http::ParseUrl(endpoint));
  absl::string_view base = url.target;
  while (absl::ConsumeSuffix(&base, "/")) {
  }
  absl::ConsumeSuffix(&base, kTracesPath);
  url.target = absl::StrCat(base, kTracesPath);
  return url;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
ParseHeaderLines(absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> headers;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    const auto wrong = [number](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " ", what));
    };
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) {
      return wrong("has no colon; give NAME: VALUE");
    }
    const absl::string_view name =
        absl::StripAsciiWhitespace(line.substr(0, colon));
    const absl::string_view value =
        absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (!IsHeaderName(name)) {
      return wrong("does not begin with a header's name; give NAME: VALUE");
    }
    if (absl::c_linear_search(kOwnHeaders, absl::AsciiStrToLower(name))) {
      return wrong(absl::StrCat("sets ", name, ", which the server sets"));
    }
    if (value.empty() || !IsHeaderValue(value)) {
      return wrong(absl::StrCat("gives ", name,
                                " no value of printable ASCII characters"));
    }
    headers.emplace_back(name, value);
  }
  return headers;
}

}  // namespace optfarm::server
