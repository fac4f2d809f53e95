// Linked into programs that load nothing (OPTFARM_STATIC), in place of what
// gRPC registers for service meshes and for balancers that a server asks: 1.8
// MB that a device agent, which calls one server, cannot reach. The names are
// those of gRPC's own source; where a version has others, its own are linked as
// before.

namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder*) {}
void RegisterRlsLbPolicy(CoreConfiguration::Builder*) {}
void RegisterGrpcLbPolicy(CoreConfiguration::Builder*) {}

}  // namespace grpc_core
