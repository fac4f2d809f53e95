#include "server/grpc_door.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "http/byte_stream.h"
#include "rpc/channel.h"
#include "server/access/farm_services.h"

namespace optfarm::server {
namespace {

constexpr int kMaxThreads = 200;
// Of messages on their way in or out, before anybody has looked at the token.
constexpr size_t kMaxBufferedBytes = size_t{1} << 30;
// Further ones wait at the client.
constexpr int kMaxCallsAConnection = 256;

// gRPC's reflection takes a thread for each call, for as long as the caller
// likes, and asks for no token: two hundred such calls would be the whole
// server. So it is for servers to which nobody else can connect. Its library
// adds it to every server by itself.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    const std::string reflection =
        grpc::reflection::ProtoServerReflectionPlugin().name();
    std::erase_if(*plugins, [&](const auto& plugin) {
      return plugin->name() == reflection;
    });
  }
};

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

// gRPC does not say whether a key belongs to its certificate.
absl::Status CheckTls(const rpc::ServerTls& tls) {
  return http::TlsContext::Make({tls.certificate, tls.key, tls.client_ca})
      .status();
}

absl::StatusOr<GrpcDoor> OpenGrpcDoor(
    const ServerOptions& options,
    absl::FunctionRef<void(grpc::ServerBuilder&)> add_services) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (!options.token.empty()) {
    builder.SetOption(std::make_unique<WithoutReflection>());
  }
  rpc::MatchChannelLimits(&builder);
  grpc::ResourceQuota quota("optfarm-server");
  quota.SetMaxThreads(kMaxThreads);
  quota.Resize(kMaxBufferedBytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(options.handshake_time));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             Milliseconds(options.idle_connection));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             kMaxCallsAConnection);
  OPTFARM_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ServerCredentials> credentials,
      rpc::MakeServerCredentials(options.tls));
  if (!options.tls.certificate.empty()) {
    OPTFARM_RETURN_IF_ERROR(CheckTls(options.tls));
  }
  GrpcDoor door;
  std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  if (absl::StartsWith(options.grpc_address, "unix:")) {
    builder.AddListeningPort(options.grpc_address, credentials);
    door.address = options.grpc_address;
  } else {
    OPTFARM_ASSIGN_OR_RETURN(
        door.listener,
        GrpcListener::Listen(options.grpc_address, options.connections));
    acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        credentials);
    door.address = door.listener->address();
  }
  add_services(builder);
  door.server = builder.BuildAndStart();
  if (door.server == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "listening on ", options.grpc_address,
        ": the address is in use or not this machine's; give another --grpc"));
  }
  if (acceptor != nullptr) {
    door.accept = [listener = door.listener.get(), acceptor] {
      listener->Start([acceptor](int from, int socket) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
            connection;
        connection.listener_fd = from;
        connection.fd = socket;
        acceptor->HandleNewConnection(&connection);
      });
    };
  }
  return door;
}

void SetServing(grpc::Server& server, bool serving) {
  grpc::HealthCheckServiceInterface* health = server.GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus(serving);
  for (const auto* service : FarmServices()) {
    health->SetServingStatus(std::string(service->full_name()), serving);
  }
}

}  // namespace optfarm::server
