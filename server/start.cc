// How a server starts: its flags are looked at, and it leads or stands by.

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rpc/server_addresses.h"
#include "server/delivery/collector.h"
#include "server/leader.h"
#include "server/member.h"
#include "server/server.h"

namespace optfarm::server {
namespace {

absl::Status CheckAddress(const ServerOptions& options,
                          const std::string& address) {
  // Port 0 is for listening what no port is for calling: a free one.
  std::string target = address;
  if (absl::EndsWith(target, ":0")) target.back() = '1';
  OPTFARM_RETURN_IF_ERROR(
      Annotate(rpc::CheckTarget(target), "the address to listen on"));
  if (IsLoopback(address) || !options.token.empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "listening on ", address,
      ", which other machines can reach, needs --token_file: anybody could "
      "submit models and read results; listen on 127.0.0.1 or give a token"));
}

}  // namespace

bool IsLoopback(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Only in dotted form: "127.example.com" is somebody's name.
  return absl::StartsWith(host, "127.") &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  OPTFARM_RETURN_IF_ERROR(CheckAddress(options, options.grpc_address));
  if (!options.http_address.empty()) {
    OPTFARM_RETURN_IF_ERROR(CheckAddress(options, options.http_address));
  }
  if (!options.webhooks.allowed.empty() && options.webhooks.secret.empty()) {
    return absl::FailedPreconditionError(
        "webhooks are signed; give --webhook_secret_file, or no "
        "--webhook_allow");
  }
  if (!options.traces.endpoint.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(TracesUrl(options.traces.endpoint).status(),
                 "--otlp_endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT"));
  } else if (!options.traces.headers.empty()) {
    return absl::FailedPreconditionError(
        "headers for a collector of traces go nowhere without one; give "
        "--otlp_endpoint, or no --otlp_headers_file");
  }
  if (!options.advertise.empty()) return StartMember(std::move(options));
  return StartLeader(std::move(options), LeaderTerm());
}

}  // namespace optfarm::server
