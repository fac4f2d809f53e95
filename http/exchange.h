// One request and its answer, by kind of method. Internal to the room.

#ifndef OPTFARM_HTTP_EXCHANGE_H_
#define OPTFARM_HTTP_EXCHANGE_H_

#include <google/protobuf/arena.h>
#include <google/protobuf/message.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "http/message.h"
#include "http/reply_writer.h"
#include "http/request_reader.h"
#include "http/route_table.h"
#include "http/service_map.h"

namespace optfarm::http {

struct Exchange {
  const ServiceMap& services;
  ByteStream& stream;
  RequestReader& reader;
  ReplyWriter& writer;
  const RequestHead& head;
  RouteMatch match;
  // The server wants to stop.
  const std::function<bool()>& stop;
  BackendCall call = {};
  CallPermit permit = {};
};

// The longest JSON body that the exchange's method takes.
size_t MaxJsonBytes(const Exchange& exchange);

// Finds out who calls and whether they may, before the body is read; fills in
// the call and its permit. ERRORS: what is to be answered.
absl::Status AdmitCall(Exchange& exchange);

// REQUIRES: AdmitCall. Each answers the request whole. An error means that the
// connection is of no more use; what was wrong with the request has been
// answered.
absl::Status ServeUnary(Exchange& exchange);
absl::Status ServeEvents(Exchange& exchange);
absl::Status ServeUpload(Exchange& exchange);
absl::Status ServeDownload(Exchange& exchange);

// The request message as path, query and presets make it.
// ERRORS: InvalidArgument.
absl::StatusOr<std::unique_ptr<google::protobuf::Message>> MakeRequest(
    const Exchange& exchange);

// An empty message of the type that the method answers with.
// OWNERSHIP: the arena's.
google::protobuf::Message& NewAnswer(const Exchange& exchange,
                                     google::protobuf::Arena& arena);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_EXCHANGE_H_
