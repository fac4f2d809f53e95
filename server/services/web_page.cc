#include "server/services/web_page.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "http/backend.h"
#include "rpc/channel.h"

namespace optfarm::server {
namespace {

constexpr char kWhoAmI[] = "/optfarm.v1.TokenService/WhoAmI";
constexpr absl::Duration kLoginTime = absl::Seconds(20);
constexpr size_t kMaxTokenBytes = 5000;

// Scripts, styles and data of this server alone; nothing inline, nothing inside
// of others' pages.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'";

// Accept-Encoding names gzip and does not give it a weight of 0.
bool TakesGzip(const http::RequestHead& head) {
  for (const absl::string_view item :
       absl::StrSplit(head.Header("accept-encoding"), ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(';', 1));
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts.first),
                                "gzip")) {
      continue;
    }
    absl::string_view weight = absl::StripAsciiWhitespace(parts.second);
    double value = 1;
    if (absl::ConsumePrefix(&weight, "q=")) {
      return absl::SimpleAtod(weight, &value) && value > 0;
    }
    return true;
  }
  return false;
}

http::Reply Serve(const WebFile& file, const std::string& etag,
                  const http::RequestHead& head) {
  http::Reply reply;
  reply.headers = {
      {"Content-Security-Policy", kPolicy},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Vary", "Accept-Encoding"},
      {"ETag", etag},
      // Paths with a digest never change; the page that names them may.
      {"Cache-Control", file.path == "/" ? "no-cache"
                                         : "public, max-age=31536000, "
                                           "immutable"}};
  if (absl::StrContains(head.Header("if-none-match"), etag)) {
    reply.status = 304;
    return reply;
  }
  reply.content_type = std::string(file.content_type);
  const bool packed = TakesGzip(head);
  if (packed) reply.headers.emplace_back("Content-Encoding", "gzip");
  reply.body = std::string(packed ? file.gzip : file.bytes);
  return reply;
}

// Who calls with the request's Authorization: the services' own check, so that
// a refused login is in the audit log like any refused call.
absl::Status CheckToken(http::Backend& backend, const http::RequestHead& head) {
  OPTFARM_ASSIGN_OR_RETURN(http::BackendCall call, CallAs(head, kWhoAmI));
  call.limit = kLoginTime;
  return backend.Unary(call, "").status();
}

http::Reply Login(BrowserSessions& sessions, http::Backend& backend,
                  const http::RequestHead& head) {
  absl::Status status = CheckPageHeader(head);
  if (status.ok()) status = CheckToken(backend, head);
  if (!status.ok()) return http::Problem(status);
  http::Reply reply;
  reply.status = 204;
  // A server that wants no token has nothing to remember.
  if (head.Header("authorization").empty()) return reply;
  const absl::StatusOr<std::string> cookie = sessions.Begin(head);
  if (!cookie.ok()) return http::Problem(cookie.status());
  reply.headers.emplace_back("Set-Cookie", *cookie);
  return reply;
}

http::Reply Logout(BrowserSessions& sessions, const http::RequestHead& head) {
  const absl::Status status = CheckPageHeader(head);
  if (!status.ok()) return http::Problem(status);
  http::Reply reply;
  reply.status = 204;
  reply.headers.emplace_back("Set-Cookie", sessions.End(head));
  return reply;
}

http::Reply LeadToDocs(const http::RequestHead&) {
  http::Reply reply = http::Reply();
  reply.status = 302;
  reply.headers.emplace_back("Location", "/docs");
  return reply;
}

}  // namespace

absl::StatusOr<http::BackendCall> CallAs(const http::RequestHead& head,
                                         absl::string_view method) {
  const absl::string_view authorization = head.Header("authorization");
  bool printable = authorization.size() <= kMaxTokenBytes;
  for (const char c : authorization) printable &= c >= 0x20 && c < 0x7F;
  if (!printable) {
    return absl::UnauthenticatedError("this is not a token");
  }
  http::BackendCall call;
  call.rpc = std::string(method);
  if (!head.peer.empty()) {
    call.metadata.emplace_back(http::kPeerKey, head.peer);
  }
  if (head.certified) call.metadata.emplace_back(http::kCertifiedKey, "1");
  if (!authorization.empty()) {
    call.metadata.emplace_back(rpc::kAuthorizationKey, authorization);
  }
  return call;
}

void AddWebPage(BrowserSessions& sessions, http::ServiceMap& services) {
  for (const WebFile& file : WebFiles()) {
    const std::string etag =
        absl::StrCat("\"", Sha256Hex(file.bytes).substr(0, 32), "\"");
    services.pages[std::string(file.path)] =
        [&file, etag](const http::RequestHead& head) {
          return Serve(file, etag, head);
        };
  }
  if (WebFiles().empty()) services.pages["/"] = LeadToDocs;
  http::Backend* const backend = services.backend.get();
  services.actions["POST /session"] = [&sessions,
                                       backend](const http::RequestHead& head) {
    return Login(sessions, *backend, head);
  };
  services.actions["DELETE /session"] =
      [&sessions](const http::RequestHead& head) {
        return Logout(sessions, head);
      };
  services.admit = [&sessions](http::RequestHead& head) {
    return sessions.Admit(head);
  };
}

}  // namespace optfarm::server
