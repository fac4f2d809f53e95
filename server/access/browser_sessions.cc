#include "server/access/browser_sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/authenticated_encryption.h"
#include "base/digest.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

constexpr size_t kSessionIdBytes = 32;
constexpr char kPageHeader[] = "optfarm-page";

// Cookies do not tell ports apart, so that two servers on one machine need two
// names.
std::string CookieName(const http::RequestHead& head, bool secure) {
  const absl::string_view host = head.Header("host");
  const size_t colon = host.rfind(':');
  std::string port;
  if (colon != absl::string_view::npos && host.back() != ']') {
    for (const char c : host.substr(colon + 1)) {
      if (absl::ascii_isdigit(static_cast<unsigned char>(c))) port.push_back(c);
    }
  }
  return absl::StrCat(secure ? "__Host-" : "", "optfarm_session",
                      port.empty() ? "" : "_", port);
}

absl::string_view CookieOf(const http::RequestHead& head,
                           absl::string_view name) {
  for (absl::string_view pair :
       absl::StrSplit(head.Header("cookie"), ';', absl::SkipWhitespace())) {
    pair = absl::StripAsciiWhitespace(pair);
    if (absl::ConsumePrefix(&pair, name) && absl::ConsumePrefix(&pair, "=")) {
      return pair;
    }
  }
  return "";
}

// Browsers say where a request comes from; the cookie is SameSite=Strict for
// those that do not.
bool FromElsewhere(const http::RequestHead& head) {
  const absl::string_view site = head.Header("sec-fetch-site");
  return !site.empty() && site != "same-origin" && site != "none";
}

bool ChangesNothing(const http::RequestHead& head) {
  return head.verb == "GET" || head.verb == "HEAD" || head.verb == "OPTIONS";
}

}  // namespace

absl::Status CheckPageHeader(const http::RequestHead& head) {
  if (!head.Header(kPageHeader).empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "a request with a session's cookie that changes something must come with "
      "the header Optfarm-Page: 1; programs send Authorization: Bearer TOKEN "
      "instead");
}

absl::StatusOr<std::string> BrowserSessions::Begin(
    const http::RequestHead& head) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           SecretRandomBytes(kSessionIdBytes));
  const std::string id = absl::WebSafeBase64Escape(bytes);
  Session session{std::string(head.Header("authorization")), clock_.Now()};
  const std::string former = KeyOf(head);
  {
    absl::MutexLock lock(&mutex_);
    sessions_.erase(former);
    if (sessions_.size() >= options_.max_sessions) {
      sessions_.erase(std::min_element(sessions_.begin(), sessions_.end(),
                                       [](const auto& a, const auto& b) {
                                         return a.second.begin < b.second.begin;
                                       }));
    }
    sessions_[Sha256Hex(id)] = std::move(session);
  }
  return SetCookie(head, id, options_.lifetime);
}

std::string BrowserSessions::End(const http::RequestHead& head) {
  const std::string key = KeyOf(head);
  {
    absl::MutexLock lock(&mutex_);
    sessions_.erase(key);
  }
  return SetCookie(head, "", absl::ZeroDuration());
}

absl::Status BrowserSessions::Admit(http::RequestHead& head) {
  if (!head.Header("authorization").empty() || FromElsewhere(head)) {
    return absl::OkStatus();
  }
  const std::string key = KeyOf(head);
  if (key.empty()) return absl::OkStatus();
  if (!ChangesNothing(head)) OPTFARM_RETURN_IF_ERROR(CheckPageHeader(head));
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return absl::OkStatus();
  if (clock_.Now() - found->second.begin >= options_.lifetime) {
    sessions_.erase(found);
    return absl::OkStatus();
  }
  head.headers["authorization"] = found->second.authorization;
  return absl::OkStatus();
}

std::string BrowserSessions::SetCookie(const http::RequestHead& head,
                                       const std::string& value,
                                       absl::Duration lifetime) const {
  return absl::StrCat(CookieName(head, options_.secure), "=", value,
                      "; Path=/; Max-Age=", absl::ToInt64Seconds(lifetime),
                      "; HttpOnly; SameSite=Strict",
                      options_.secure ? "; Secure" : "");
}

std::string BrowserSessions::KeyOf(const http::RequestHead& head) const {
  const absl::string_view id =
      CookieOf(head, CookieName(head, options_.secure));
  return id.empty() ? "" : Sha256Hex(id);
}

}  // namespace optfarm::server
