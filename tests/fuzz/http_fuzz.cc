// The HTTP door: bytes as a client may send them, through parser, router and
// every kind of exchange, with services that answer the same to all. The first
// byte says in what pieces they arrive and how the services answer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "http/pages.h"
#include "http/service_map.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "optfarm/v1/results.pb.h"
#include "optfarm/v1/tokens.pb.h"
#include "tests/http/memory_stream.h"

namespace optfarm::http {
namespace {

struct Door {
  Door() {
    const google::protobuf::ServiceDescriptor* all[] = {
        v1::Job::descriptor()->file()->service(0),
        v1::UploadRequest::descriptor()->file()->service(0),
        v1::Device::descriptor()->file()->service(0),
        v1::Result::descriptor()->file()->service(0),
        v1::Token::descriptor()->file()->service(0)};
    auto table = RouteTable::Make(all);
    OPTFARM_CHECK(table.ok());
    services.routes = *std::move(table);
    auto made = std::make_unique<FakeBackend>();
    backend = made.get();
    services.backend = std::move(made);
    services.limits.max_head_bytes = 4096;
    services.limits.max_json_bytes = 4096;
    AddDescriptionPages("fuzz", &services);
  }

  ServiceMap services;
  FakeBackend* backend = nullptr;
};

}  // namespace
}  // namespace optfarm::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using optfarm::http::Door;
  static Door& door = *new Door;
  if (size == 0) return 0;
  const uint8_t mode = data[0];
  door.backend->calls.clear();
  door.backend->answers.clear();
  // The bytes of one message are those of many: a field 1 of two bytes.
  if ((mode & 1) != 0) door.backend->answers = {"\x0a\x02hi", "\x0a\x01x"};
  door.backend->status =
      (mode & 2) != 0 ? absl::NotFoundError("fuzz") : absl::OkStatus();
  door.services.loopback_hosts_only = (mode & 4) != 0;
  optfarm::http::MemoryStream stream(
      std::string(reinterpret_cast<const char*>(data + 1), size - 1),
      static_cast<size_t>(mode >> 4) + 1, (mode & 8) != 0);
  optfarm::http::ServeConnection(stream, door.services,
                                 {.stop = [] { return false; }});
  return 0;
}
