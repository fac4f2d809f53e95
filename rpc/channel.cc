#include "rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "rpc/server_addresses.h"

namespace optfarm::rpc {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
constexpr uint64_t kMaxPemBytes = 1 << 20;
constexpr absl::Duration kMinPing = absl::Seconds(10);
constexpr absl::Duration kPingTimeout = absl::Seconds(20);
// Of clients that have another server to go to. Not below kMinPing.
constexpr absl::Duration kQuickPing = absl::Seconds(11);
constexpr absl::Duration kQuickPingTimeout = absl::Seconds(5);
constexpr absl::Duration kMaxReconnect = absl::Seconds(5);

// gRPC's own call credentials refuse channels without TLS, and loopback has
// none; so the token is put into the metadata here.
class TokenInterceptor final : public grpc::experimental::Interceptor {
 public:
  explicit TokenInterceptor(const std::string* value) : value_(value) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::
                PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kAuthorizationKey, *value_);
    }
    methods->Proceed();
  }

 private:
  const std::string* value_;
};

class TokenInterceptorFactory final
    : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptorFactory(absl::string_view token)
      : value_(absl::StrCat(kBearerPrefix, token)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(&value_);
  }

 private:
  const std::string value_;
};

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  absl::StatusOr<std::string> pem = ReadFile(path, kMaxPemBytes);
  if (!pem.ok()) return Annotate(pem.status(), "reading a file for TLS");
  if (absl::StrContains(*pem, "-----BEGIN ")) return pem;
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "' is no PEM file: it has no -----BEGIN"));
}

absl::Status CheckPair(const std::string& certificate, const std::string& key) {
  if (certificate.empty() == key.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a certificate needs its key and a key its certificate; give --tls_cert "
      "and --tls_key");
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
MakeChannelCredentials(const ClientTls& tls) {
  OPTFARM_RETURN_IF_ERROR(CheckPair(tls.certificate, tls.key));
  if (tls.ca.empty()) {
    if (tls.certificate.empty()) return grpc::InsecureChannelCredentials();
    return absl::InvalidArgumentError(
        "a client's certificate is only shown to a server that is known; give "
        "--tls_ca too");
  }
  grpc::SslCredentialsOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem(tls.ca));
  if (!tls.certificate.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(options.pem_cert_chain, ReadPem(tls.certificate));
    OPTFARM_ASSIGN_OR_RETURN(options.pem_private_key, ReadPem(tls.key));
  }
  return grpc::SslCredentials(options);
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// A server that was paused keeps its connections: with others at hand it is
// asked often whether it is there.
void LeaveSilentServers(const ServerTarget& target,
                        grpc::ChannelArguments* arguments) {
  arguments->SetString(GRPC_ARG_DEFAULT_AUTHORITY, target.authority);
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kQuickPing));
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                    Milliseconds(kQuickPingTimeout));
  // While a call is held the pings are all there is.
  arguments->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

}  // namespace

bool IsToken(absl::string_view token) {
  bool visible = true;
  for (char c : token) visible = visible && absl::ascii_isgraph(c);
  return !token.empty() && token.size() <= kMaxTokenBytes && visible;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path, 64 << 10);
  if (!bytes.ok()) return Annotate(bytes.status(), "reading the token file");
  const absl::string_view line = absl::StripAsciiWhitespace(
      absl::string_view(*bytes).substr(0, bytes->find('\n')));
  if (!IsToken(line)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the first line of token file '", path, "' must be 1 to ",
        kMaxTokenBytes, " visible ASCII characters without blanks"));
  }
  return std::string(line);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const ChannelOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(const ServerTarget target,
                           FindServers(options.target));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  if (target.authority.empty()) {
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                     Milliseconds(options.keepalive));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kPingTimeout));
  } else {
    LeaveSilentServers(target, &arguments);
  }
  // This is also how long a handshake may take: a busy server needs seconds. A
  // port that nobody listens on is refused at once all the same.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   Milliseconds(kMaxReconnect));
  // A proxy from the environment never stands between us and our own server.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Two channels of one process do not share a connection, so that one's end
  // is not the other's.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  std::vector<
      std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
      interceptors;
  if (!options.token_file.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string token,
                             ReadToken(options.token_file));
    interceptors.push_back(std::make_unique<TokenInterceptorFactory>(token));
  } else if (IsToken(options.token)) {
    interceptors.push_back(
        std::make_unique<TokenInterceptorFactory>(options.token));
  } else if (!options.token.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token must be 1 to ", kMaxTokenBytes,
                     " visible ASCII characters without blanks"));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ChannelCredentials> credentials,
      MakeChannelCredentials(options.tls));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      target.uri, credentials, arguments, std::move(interceptors));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerTls& tls) {
  OPTFARM_RETURN_IF_ERROR(CheckPair(tls.certificate, tls.key));
  if (tls.certificate.empty()) {
    if (tls.client_ca.empty()) return grpc::InsecureServerCredentials();
    return absl::InvalidArgumentError(
        "certificates of clients are only seen with TLS; give --tls_cert and "
        "--tls_key too");
  }
  // What is wrong with a file is said here; later it is only logged.
  for (const std::string& file : {tls.certificate, tls.key, tls.client_ca}) {
    if (!file.empty()) OPTFARM_RETURN_IF_ERROR(ReadPem(file).status());
  }
  namespace tls_api = grpc::experimental;
  tls_api::TlsServerCredentialsOptions options(
      std::make_shared<tls_api::FileWatcherCertificateProvider>(
          tls.key, tls.certificate, tls.client_ca,
          static_cast<unsigned>(absl::ToInt64Seconds(kTlsFilesInterval))));
  options.watch_identity_key_cert_pairs();
  if (!tls.client_ca.empty()) options.watch_root_certs();
  options.set_cert_request_type(
      tls.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                            : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls_api::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeInnerChannel(
    grpc::Server* server) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   sockets) != 0) {
    return ErrnoToStatus(errno, "making a pair of sockets");
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // Both take over their socket.
  grpc::AddInsecureChannelFromFd(server, sockets[0]);
  return grpc::CreateCustomInsecureChannelFromFd("inner", sockets[1],
                                                 arguments);
}

void MatchChannelLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Milliseconds(kMinPing));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                              Milliseconds(absl::Seconds(60)));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              Milliseconds(kPingTimeout));
}

}  // namespace optfarm::rpc
