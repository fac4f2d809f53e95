// How the four programs reach each other: one place for targets, the bearer
// token, keepalive and message size limits.

#ifndef OPTFARM_RPC_CHANNEL_H_
#define OPTFARM_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace grpc {
class Channel;
class Server;
class ServerBuilder;
class ServerCredentials;
}  // namespace grpc

namespace optfarm::rpc {

// UNITS: bytes. Largest message either side takes. An optimize task may list
// 20000 dataset files, which is what sets it.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Metadata key and prefix of the token: "authorization: Bearer <token>".
inline constexpr char kAuthorizationKey[] = "authorization";
inline constexpr char kBearerPrefix[] = "Bearer ";

// Files in PEM that a client trusts and shows.
struct ClientTls {
  // Authorities that may have signed the server's certificate; not empty: TLS.
  std::string ca;
  // The client's own certificate with its key; both or neither.
  std::string certificate;
  std::string key;
};

// Files in PEM of a server.
struct ServerTls {
  // The certificate with its chain, and its key; empty: no TLS.
  std::string certificate;
  std::string key;
  // Authorities of clients' certificates; empty: clients are asked for none.
  std::string client_ca;
};

struct ChannelOptions {
  // One server or several; see rpc/server_addresses.h.
  std::string target;
  // File whose first line is the bearer token; empty: no token is sent.
  std::string token_file;
  // The token itself; used without a file.
  std::string token;
  ClientTls tls;
  // Quiet time after which the peer is asked for a sign of life; with several
  // servers it is shorter.
  absl::Duration keepalive = absl::Seconds(60);
};

// Whether `token` may be sent: 1 to 4096 visible ASCII characters.
bool IsToken(absl::string_view token);

// Reads a bearer token: the first line of the file without blanks around it.
// ERRORS: those of ReadFile; InvalidArgument when it is empty, longer than
// 4096 bytes, or holds anything but visible ASCII. No message holds the token.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// Makes a channel. It connects when it is first used and again after a break,
// so an absent server is no error here. With several servers it stays with the
// first that answers, and goes on to the next when that one ends, or says
// nothing.
// ERRORS: those of FindServers and ReadToken; for TLS files those of ReadFile,
// and InvalidArgument when some are missing.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const ChannelOptions& options);

// How often a server looks whether its TLS files have changed.
inline constexpr absl::Duration kTlsFilesInterval = absl::Seconds(2);

// What a server listens with. New connections get what the files hold then.
// ERRORS: as for the TLS files of MakeChannel.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerTls& tls);

// A channel to a server of this process, past its listening ports: a pair of
// sockets that nobody else holds, and the transport that all others use.
// OWNERSHIP: the server outlives the channel. ERRORS: Unavailable.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeInnerChannel(
    grpc::Server* server);

// Gives a server the limits that match MakeChannel: message sizes, and
// patience with its clients' keepalive.
void MatchChannelLimits(grpc::ServerBuilder* builder);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_CHANNEL_H_
