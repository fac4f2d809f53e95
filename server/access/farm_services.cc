#include "server/access/farm_services.h"

#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/farm.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "optfarm/v1/results.pb.h"
#include "optfarm/v1/servers.pb.h"
#include "optfarm/v1/store.pb.h"
#include "optfarm/v1/tokens.pb.h"
#include "optfarm/v1/tunes.pb.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::server {

using ::google::protobuf::FileDescriptor;
using ::google::protobuf::MethodDescriptor;
using ::google::protobuf::ServiceDescriptor;

std::vector<const ServiceDescriptor*> FarmServices() {
  std::vector<const ServiceDescriptor*> services;
  for (const FileDescriptor* file :
       {v1::Job::descriptor()->file(), v1::Tune::descriptor()->file(),
        v1::UploadRequest::descriptor()->file(),
        v1::Device::descriptor()->file(), v1::Result::descriptor()->file(),
        v1::Token::descriptor()->file(),
        v1::BackupRequest::descriptor()->file(),
        v1::Project::descriptor()->file(),
        v1::ServerState::descriptor()->file(),
        v1::SynchronizeRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      services.push_back(file->service(i));
    }
  }
  return services;
}

std::vector<const MethodDescriptor*> FarmMethods() {
  std::vector<const MethodDescriptor*> methods;
  for (const ServiceDescriptor* service : FarmServices()) {
    for (int i = 0; i < service->method_count(); ++i) {
      methods.push_back(service->method(i));
    }
  }
  return methods;
}

}  // namespace optfarm::server
