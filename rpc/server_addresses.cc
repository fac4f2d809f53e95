#include "rpc/server_addresses.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::rpc {
namespace {

// What a name with very many addresses may add to the list.
constexpr size_t kMaxAddressesOfAName = 8;

struct Endpoint {
  // Without the brackets of IPv6.
  std::string host;
  std::string port;
};

// REQUIRES: a target that CheckTarget takes, and no socket.
Endpoint Split(absl::string_view target) {
  const size_t colon = target.rfind(':');
  absl::string_view host = target.substr(0, colon);
  if (absl::StartsWith(host, "[")) host = host.substr(1, host.size() - 2);
  return {std::string(host), std::string(target.substr(colon + 1))};
}

// In the form of IPv6, in which those of IPv4 have their place too.
std::string AddressText(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr,
              text, sizeof(text));
    return absl::StrCat("::ffff:", text);
  }
  inet_ntop(AF_INET6,
            &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
            sizeof(text));
  return text;
}

struct Free {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// Adds "[ADDRESS]:PORT" for each address of the name. Returns what is wrong
// with it; empty: nothing.
std::string LookUp(const Endpoint& endpoint, std::vector<std::string>* found) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &list);
  if (error != 0) return gai_strerror(error);
  const std::unique_ptr<addrinfo, Free> owner(list);
  size_t added = 0;
  for (; list != nullptr && added < kMaxAddressesOfAName;
       list = list->ai_next) {
    if (list->ai_family != AF_INET && list->ai_family != AF_INET6) continue;
    const std::string text =
        absl::StrCat("[", AddressText(list->ai_addr), "]:", endpoint.port);
    if (std::find(found->begin(), found->end(), text) == found->end()) {
      found->push_back(text);
    }
    ++added;
  }
  return added == 0 ? "it has no address" : "";
}

}  // namespace

absl::Status CheckTarget(absl::string_view target) {
  if (absl::StartsWith(target, "unix:") && target.size() > 5) {
    return absl::OkStatus();
  }
  const size_t colon = target.rfind(':');
  int port = 0;
  const absl::string_view host =
      colon == absl::string_view::npos ? "" : target.substr(0, colon);
  const bool bracketed =
      absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (host.empty() || (!bracketed && absl::StrContains(host, ':')) ||
      absl::StrContains(host, '/') || absl::StrContains(host, ',') ||
      !absl::SimpleAtoi(target.substr(colon + 1), &port) || port < 1 ||
      port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server address '", target,
        "' is not HOST:PORT, [IPV6]:PORT or unix:PATH with a port of 1 to "
        "65535; for example 127.0.0.1:7070"));
  }
  return absl::OkStatus();
}

absl::Status CheckServers(absl::string_view servers) {
  if (!absl::StrContains(servers, ',')) return CheckTarget(servers);
  const std::vector<absl::string_view> targets = absl::StrSplit(servers, ',');
  if (targets.size() > kMaxServers) {
    return absl::InvalidArgumentError(
        absl::StrCat("the list of servers has ", targets.size(),
                     " addresses; give at most ", kMaxServers));
  }
  for (const absl::string_view target : targets) {
    OPTFARM_RETURN_IF_ERROR(CheckTarget(target));
    if (absl::StartsWith(target, "unix:")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", target,
          "' cannot be one of several servers: give HOST:PORT,HOST:PORT"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ServerTarget> FindServers(absl::string_view servers) {
  OPTFARM_RETURN_IF_ERROR(CheckServers(servers));
  if (!absl::StrContains(servers, ',')) {
    return ServerTarget{std::string(servers), ""};
  }
  ServerTarget target;
  std::vector<std::string> found;
  std::string trouble;
  for (const absl::string_view server : absl::StrSplit(servers, ',')) {
    if (target.authority.empty()) target.authority = std::string(server);
    const Endpoint endpoint = Split(server);
    const std::string wrong = LookUp(endpoint, &found);
    if (wrong.empty()) continue;
    trouble =
        absl::StrCat("looking up the server '", endpoint.host, "': ", wrong);
    LogWarning(trouble, "; it is left out until this program starts again");
  }
  if (found.empty()) return absl::UnavailableError(trouble);
  target.uri = absl::StrCat("ipv6:", absl::StrJoin(found, ","));
  return target;
}

}  // namespace optfarm::rpc
