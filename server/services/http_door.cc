#include "server/services/http_door.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "http/pages.h"
#include "optfarm/v1/work.pb.h"
#include "server/access/farm_services.h"
#include "server/services/report_page.h"
#include "server/services/web_page.h"

namespace optfarm::server {
namespace {

using ::google::protobuf::ServiceDescriptor;

// Workers and agents speak gRPC alone.
std::vector<const ServiceDescriptor*> Services() {
  std::vector<const ServiceDescriptor*> services = FarmServices();
  std::erase(services,
             v1::SynchronizeRequest::descriptor()->file()->service(0));
  return services;
}

http::Reply Metrics(const HttpDoorOptions& options,
                    const http::RequestHead& head) {
  const absl::Status status = options.may_read(head);
  if (!status.ok()) return http::Problem(status);
  http::Reply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = options.metrics();
  return reply;
}

http::Reply Alive(const http::RequestHead&) {
  return http::TextReply(200, "alive\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<http::Front>> OpenHttpDoor(
    const HttpDoorOptions& options) {
  auto services = std::make_unique<http::ServiceMap>();
  OPTFARM_ASSIGN_OR_RETURN(services->routes,
                           http::RouteTable::Make(Services()));
  services->backend = http::MakeGrpcBackend(options.channel);
  services->admit_call = options.admit_call;
  services->limits = options.limits;
  services->loopback_hosts_only = options.loopback_hosts_only;
  http::AddDescriptionPages(OPTFARM_VERSION, services.get());
  AddWebPage(*options.sessions, *services);
  AddReportPage(*services);
  services->health_pages = {"/livez", "/readyz", "/metrics"};
  services->pages["/livez"] = Alive;
  services->pages["/readyz"] = [ready =
                                    options.ready](const http::RequestHead&) {
    const absl::Status status = ready();
    return status.ok() ? http::TextReply(200, "ready\n")
                       : http::Problem(503, status);
  };
  services->pages["/metrics"] = [options](const http::RequestHead& head) {
    return Metrics(options, head);
  };
  return http::Front::Start(options.front, std::move(services));
}

absl::StatusOr<std::unique_ptr<http::Front>> OpenStartingDoor(
    const http::FrontOptions& front, const http::Limits& limits) {
  auto services = std::make_unique<http::ServiceMap>();
  services->limits = limits;
  services->health_pages = {"/livez"};
  services->pages["/livez"] = Alive;
  services->admit = [](http::RequestHead& head) -> absl::Status {
    if (head.path == "/livez") return absl::OkStatus();
    return absl::UnavailableError(
        "the server is starting: it opens its stores, which takes long when "
        "they are large or were written by an older version; try again");
  };
  return http::Front::Start(front, std::move(services));
}

}  // namespace optfarm::server
