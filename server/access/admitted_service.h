// A service whose calls are admitted by their head: gRPC reads and parses the
// request of a unary method before it runs anything, so that whoever has no
// token could make the server hold and parse what they like. Methods that are
// served here begin as streams do, with metadata alone; the request is read
// once the caller is known, within the method's bounds and the project's room.

#ifndef OPTFARM_SERVER_ACCESS_ADMITTED_SERVICE_H_
#define OPTFARM_SERVER_ACCESS_ADMITTED_SERVICE_H_

#include <google/protobuf/message.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/sync_stream.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/call_door.h"
#include "server/access/call_room.h"
#include "server/access/method_bounds.h"

namespace optfarm::server {

// A request that is only parsed within bounds.
template <typename Message>
struct BoundedRequest {
  explicit BoundedRequest(const std::string& method)
      : bounds(BoundsOf(method)) {}

  Message message;
  const rpc::MessageBounds bounds;
  // Where its memory is taken from; may be null. OWNERSHIP: outlives it.
  CallRoom::Stay* stay = nullptr;
  // Why there is no message although one came.
  absl::Status status;
};

// Parses `buffer` into `message`. ERRORS: those of rpc::ParsedBytes and
// CallRoom::Stay::Take.
absl::Status ParseBounded(const grpc::ByteBuffer& buffer,
                          const rpc::MessageBounds& bounds,
                          CallRoom::Stay* stay,
                          google::protobuf::Message& message);

// The number of a method in its service: what gRPC's generated code counts by.
// REQUIRES: there is such a method.
int MethodIndex(const std::string& method);

// How many methods its service has, itself included. REQUIRES: as above.
int MethodsBeside(const std::string& method);

// Waits for a request and says why there is none.
template <typename Stream, typename Message>
absl::Status ReadBounded(Stream& stream, CallRoom::Stay& stay,
                         BoundedRequest<Message>& request) {
  request.stay = &stay;
  const bool read = stream.Read(&request);
  stay.Arrived();
  if (read) return request.status;
  if (stay.TooSlow()) {
    return absl::DeadlineExceededError(
        "the request did not come in time; send it again");
  }
  return absl::CancelledError("the call ended before its request came");
}

// Lets a call in by its head. THREADS: called from any. ERRORS: why it may not
// be made.
using EnterCall = std::function<absl::StatusOr<std::unique_ptr<CallRoom::Stay>>(
    grpc::ServerContext&)>;

// `Base` is a generated Service; whoever derives registers its methods here by
// their full names, "optfarm.v1.JobService.GetJob". OWNERSHIP: doors outlive
// the service.
template <typename Base>
class AdmittedService : public Base {
 protected:
  // A method with one request and one answer.
  template <typename Owner, typename Request, typename Response>
  void AdmitUnary(const CallDoor& door, const std::string& method,
                  grpc::Status (Owner::*serve)(grpc::ServerContext*,
                                               const Request*, Response*)) {
    AdmitUnaryBy(
        [&door, method](grpc::ServerContext& context) {
          return door.Enter(context, method);
        },
        method, serve);
  }

  // The same where no door is that knows who calls: `enter` does.
  template <typename Owner, typename Request, typename Response>
  void AdmitUnaryBy(EnterCall enter, const std::string& method,
                    grpc::Status (Owner::*serve)(grpc::ServerContext*,
                                                 const Request*, Response*)) {
    using Stream = grpc::ServerUnaryStreamer<BoundedRequest<Request>, Response>;
    const auto run = [this, enter = std::move(enter), method, serve](
                         grpc::ServerContext* context, Stream* stream) {
      auto stay = enter(*context);
      if (!stay.ok()) return CallDoor::Answer(stay.status());
      BoundedRequest<Request> request(method);
      const absl::Status read = ReadBounded(*stream, **stay, request);
      if (!read.ok()) return CallDoor::Answer(read);
      Response response;
      grpc::Status status = (static_cast<Owner*>(this)->*serve)(
          context, &request.message, &response);
      if (status.ok()) stream->Write(response);
      return status;
    };
    this->MarkMethodStreamed(
        MethodIndex(method),
        new grpc::internal::StreamedUnaryHandler<BoundedRequest<Request>,
                                                 Response>(run));
  }

  // A method with one request and a stream of answers.
  template <typename Request, typename Response>
  void AdmitDownload(
      EnterCall enter, const std::string& method,
      std::function<grpc::Status(grpc::ServerContext&, const Request&,
                                 const std::function<bool(const Response&)>&)>
          serve) {
    using Stream = grpc::ServerSplitStreamer<BoundedRequest<Request>, Response>;
    const auto run = [enter = std::move(enter), method,
                      serve = std::move(serve)](grpc::ServerContext* context,
                                                Stream* stream) {
      auto stay = enter(*context);
      if (!stay.ok()) return CallDoor::Answer(stay.status());
      BoundedRequest<Request> request(method);
      const absl::Status read = ReadBounded(*stream, **stay, request);
      if (!read.ok()) return CallDoor::Answer(read);
      // Transfers have limits of their own.
      stay->reset();
      return serve(*context, request.message, [stream](const Response& piece) {
        return stream->Write(piece);
      });
    };
    this->MarkMethodStreamed(
        MethodIndex(method),
        new grpc::internal::SplitServerStreamingHandler<BoundedRequest<Request>,
                                                        Response>(run));
  }

  // A method with a stream of requests and one answer.
  template <typename Request, typename Response>
  void AdmitUpload(const std::string& method,
                   std::function<grpc::Status(
                       grpc::ServerContext&,
                       const std::function<absl::Status(Request&)>&, Response&)>
                       serve) {
    AdmitBothWays<Request, Response>(
        method,
        [serve = std::move(serve)](grpc::ServerContext& context,
                                   const auto& read, const auto& write) {
          Response response;
          grpc::Status status = serve(context, read, response);
          if (status.ok()) write(response);
          return status;
        });
  }

  // A method with a stream of requests and one of answers; `serve` lets the
  // call in, and reads. Reading is OutOfRange when there are no more.
  template <typename Request, typename Response>
  void AdmitBothWays(
      const std::string& method,
      std::function<grpc::Status(grpc::ServerContext&,
                                 const std::function<absl::Status(Request&)>&,
                                 const std::function<bool(const Response&)>&)>
          serve) {
    using Stream = grpc::ServerReaderWriter<Response, BoundedRequest<Request>>;
    const auto run = [method, serve = std::move(serve)](
                         AdmittedService*, grpc::ServerContext* context,
                         Stream* stream) {
      BoundedRequest<Request> request(method);
      const auto read = [&](Request& to) -> absl::Status {
        if (!stream->Read(&request)) {
          return absl::OutOfRangeError("there are no more");
        }
        to.Swap(&request.message);
        return request.status;
      };
      return serve(*context, read, [stream](const Response& response) {
        return stream->Write(response);
      });
    };
    this->MarkMethodStreamed(
        MethodIndex(method),
        new grpc::internal::BidiStreamingHandler<
            AdmittedService, BoundedRequest<Request>, Response>(run, this));
  }

  // All methods but this one are left to the server's generic service.
  void ServeOnly(const std::string& method) {
    const int served = MethodIndex(method);
    for (int i = 0; i < MethodsBeside(method); ++i) {
      if (i != served) this->MarkMethodGeneric(i);
    }
  }

  // A method that is served without a thread: `react` makes the reactor of a
  // call, which admits it and reads the request.
  template <typename Request, typename Response>
  void AdmitReactor(
      const std::string& method,
      std::function<grpc::ServerBidiReactor<BoundedRequest<Request>, Response>*(
          grpc::CallbackServerContext*)>
          react) {
    this->MarkMethodStreamed(
        MethodIndex(method),
        new grpc::internal::CallbackBidiHandler<BoundedRequest<Request>,
                                                Response>(std::move(react)));
  }
};

}  // namespace optfarm::server

namespace grpc {

// How gRPC parses such a request. Never an error of its own: the method says
// what is wrong.
template <typename Message>
class SerializationTraits<optfarm::server::BoundedRequest<Message>> {
 public:
  static Status Deserialize(ByteBuffer* buffer,
                            optfarm::server::BoundedRequest<Message>* request) {
    request->status = optfarm::server::ParseBounded(
        *buffer, request->bounds, request->stay, request->message);
    buffer->Clear();
    return Status::OK;
  }
};

}  // namespace grpc

#endif  // OPTFARM_SERVER_ACCESS_ADMITTED_SERVICE_H_
