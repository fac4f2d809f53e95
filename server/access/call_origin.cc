#include "server/access/call_origin.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include "absl/strings/match.h"
#include "base/digest.h"
#include "http/backend.h"
#include "http/url_text.h"
#include "rpc/trace_parent.h"

namespace optfarm::server {
namespace {

// The first value of a key; empty without one.
absl::string_view Find(const grpc::ServerContextBase& context,
                       const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return "";
  return absl::string_view(found->second.data(), found->second.size());
}

// A call over HTTP comes from within; the door that took it says who is behind
// it.
bool CameOverHttp(const grpc::ServerContextBase& context) {
  return absl::StartsWith(context.peer(), "fd:");
}

}  // namespace

// The time that it takes tells nothing of the secret.
bool KnowsSecret(const grpc::ServerContextBase& context,
                 absl::string_view secret) {
  const absl::string_view shown = Find(context, kForwardedKey);
  return !secret.empty() && !shown.empty() &&
         Sha256Hex(shown) == Sha256Hex(secret);
}

CallOrigin OriginOf(const grpc::ServerContextBase& context,
                    absl::string_view secret) {
  CallOrigin origin;
  origin.peer = std::string(context.peer());
  if (CameOverHttp(context) || KnowsSecret(context, secret)) {
    const absl::string_view said = Find(context, http::kPeerKey);
    if (!said.empty()) origin.peer = std::string(said);
    origin.certified = context.client_metadata().contains(http::kCertifiedKey);
    return origin;
  }
  // The brackets of an IPv6 address come escaped.
  origin.peer = http::PercentDecode(origin.peer, false).value_or(origin.peer);
  const auto shown = context.auth_context();
  origin.certified = shown != nullptr && shown->IsPeerAuthenticated();
  return origin;
}

std::string TraceParentOf(const grpc::ServerContextBase& context) {
  if (context.client_metadata().count(rpc::kTraceParentKey) != 1) return "";
  const absl::string_view text = Find(context, rpc::kTraceParentKey);
  if (!rpc::ParseTraceParent(text).ok()) return "";
  return std::string(text.substr(0, rpc::kTraceParentLength));
}

bool WasForwarded(const grpc::ServerContextBase& context) {
  return context.client_metadata().contains(kForwardedKey);
}

}  // namespace optfarm::server
