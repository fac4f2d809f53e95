// Linked into programs that load nothing (OPTFARM_STATIC), in place of what
// gRPC registers for service meshes, for balancers and for Google's accounts,
// none of which a device agent that calls one server can reach: 2.1 MB. The
// names are those of gRPC's own source; where a version has others, its own are
// linked as before.

namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder*) {}
void RegisterRlsLbPolicy(CoreConfiguration::Builder*) {}
void RegisterGrpcLbPolicy(CoreConfiguration::Builder*) {}
void RegisterOutlierDetectionLbPolicy(CoreConfiguration::Builder*) {}
void RegisterPriorityLbPolicy(CoreConfiguration::Builder*) {}
void RegisterRingHashLbPolicy(CoreConfiguration::Builder*) {}
void RegisterWeightedTargetLbPolicy(CoreConfiguration::Builder*) {}
void RegisterChannelDefaultCreds(CoreConfiguration::Builder*) {}
void RegisterFakeResolver(CoreConfiguration::Builder*) {}
void FaultInjectionFilterRegister(CoreConfiguration::Builder*) {}

}  // namespace grpc_core

// Nobody calls these. Their arguments do not matter to the linker, and nullptr
// is how each says that there are no such credentials.
extern "C" {
void* grpc_google_default_credentials_create() { return nullptr; }
void* grpc_google_compute_engine_credentials_create() { return nullptr; }
void* grpc_google_refresh_token_credentials_create() { return nullptr; }
void* grpc_google_iam_credentials_create() { return nullptr; }
void* grpc_access_token_credentials_create() { return nullptr; }
void* grpc_service_account_jwt_access_credentials_create() { return nullptr; }
void* grpc_external_account_credentials_create() { return nullptr; }
void* grpc_sts_credentials_create() { return nullptr; }
void* grpc_alts_credentials_create() { return nullptr; }
void* grpc_alts_credentials_client_options_create() { return nullptr; }
void* grpc_alts_server_credentials_create() { return nullptr; }
void* grpc_alts_credentials_server_options_create() { return nullptr; }
void grpc_alts_credentials_client_options_add_target_service_account() {}
void grpc_alts_credentials_options_destroy() {}
}
