// Every service of the server, in one list: scopes, the audit log and the HTTP
// door are made from it.

#ifndef OPTFARM_SERVER_ACCESS_FARM_SERVICES_H_
#define OPTFARM_SERVER_ACCESS_FARM_SERVICES_H_

#include <google/protobuf/descriptor.h>

#include <vector>

namespace optfarm::server {

// In the order of the API's pages; the workers' and agents' service is last.
std::vector<const google::protobuf::ServiceDescriptor*> FarmServices();

// Of all of them.
std::vector<const google::protobuf::MethodDescriptor*> FarmMethods();

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_FARM_SERVICES_H_
