// A method that answers with a stream, as server-sent events: each message is
// one event, named after the case of its oneof "event" and numbered by its
// field "sequence". After a break a browser sends the last number back.

#include <google/protobuf/descriptor.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "http/exchange.h"
#include "http/field_binding.h"
#include "http/json.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

// How often a quiet stream looks whether somebody still listens.
constexpr absl::Duration kLook = absl::Seconds(1);

absl::StatusOr<std::string> ToEvent(const Message& message) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string json, ToJson(message));
  const Descriptor& type = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  std::string event;
  const FieldDescriptor* sequence = type.FindFieldByName("sequence");
  if (sequence != nullptr &&
      sequence->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    absl::StrAppend(&event, "id: ", reflection.GetInt64(message, sequence),
                    "\n");
  }
  const auto* oneof = type.FindOneofByName("event");
  const FieldDescriptor* set =
      oneof == nullptr ? nullptr
                       : reflection.GetOneofFieldDescriptor(message, oneof);
  if (set != nullptr) absl::StrAppend(&event, "event: ", set->name(), "\n");
  // JSON without added whitespace has no line ends.
  absl::StrAppend(&event, "data: ", json, "\n\n");
  return event;
}

// Where to go on, as the browser says it.
absl::Status Resume(const Exchange& exchange, Message* request) {
  const absl::string_view last = exchange.head.Header("last-event-id");
  if (last.empty() ||
      request->GetDescriptor()->FindFieldByName("after_sequence") == nullptr) {
    return absl::OkStatus();
  }
  return SetField("after_sequence", last, request);
}

absl::Status SendProblemEvent(Exchange& exchange, const absl::Status& status) {
  std::string body = Problem(status).body;
  body.pop_back();
  return exchange.writer.SendPiece(
      absl::StrCat("event: error\ndata: ", body, "\n\n"));
}

class EventPump {
 public:
  EventPump(Exchange& exchange, BackendStream& call)
      : exchange_(exchange), call_(call) {}

  absl::Status Run() {
    while (true) {
      switch (call_.Read(kLook, &bytes_)) {
        case BackendStream::ReadResult::kMessage:
          OPTFARM_RETURN_IF_ERROR(SendMessage());
          break;
        case BackendStream::ReadResult::kEnd:
          return SendEnd(call_.Finish());
        case BackendStream::ReadResult::kNothingYet:
          if (exchange_.stream.PeerGone()) {
            return absl::CancelledError("nobody listens any more");
          }
          OPTFARM_RETURN_IF_ERROR(PingWhenDue());
      }
    }
  }

 private:
  absl::Status BeginOnce() {
    if (exchange_.writer.begun()) return absl::OkStatus();
    Reply head;
    head.content_type = "text/event-stream; charset=utf-8";
    // Of no use to proxies that gather an answer before they pass it on.
    head.headers.emplace_back("X-Accel-Buffering", "no");
    last_sent_ = absl::Now();
    return exchange_.writer.Begin(head, -1);
  }

  absl::Status SendMessage() {
    google::protobuf::Arena arena;
    Message& message = NewAnswer(exchange_, arena);
    if (!message.ParseFromString(bytes_)) {
      return absl::InternalError("the service's event is malformed");
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::string event, ToEvent(message));
    OPTFARM_RETURN_IF_ERROR(BeginOnce());
    last_sent_ = absl::Now();
    return exchange_.writer.SendPiece(event);
  }

  absl::Status PingWhenDue() {
    OPTFARM_RETURN_IF_ERROR(BeginOnce());
    if (absl::Now() - last_sent_ < exchange_.services.limits.ping_interval) {
      return absl::OkStatus();
    }
    last_sent_ = absl::Now();
    return exchange_.writer.SendPiece(": still here\n\n");
  }

  absl::Status SendEnd(const absl::Status& status) {
    if (!exchange_.writer.begun()) {
      if (!status.ok()) return exchange_.writer.Send(Problem(status));
      // Tells a browser that there is nothing to come back for.
      Reply nothing;
      nothing.status = 204;
      return exchange_.writer.Send(nothing);
    }
    if (status.ok()) {
      OPTFARM_RETURN_IF_ERROR(
          exchange_.writer.SendPiece("event: end\ndata: {}\n\n"));
    } else {
      OPTFARM_RETURN_IF_ERROR(SendProblemEvent(exchange_, status));
    }
    return exchange_.writer.End();
  }

  Exchange& exchange_;
  BackendStream& call_;
  std::string bytes_;
  absl::Time last_sent_;
};

}  // namespace

absl::Status ServeEvents(Exchange& exchange) {
  absl::StatusOr<std::unique_ptr<Message>> request = MakeRequest(exchange);
  if (!request.ok()) return exchange.writer.Send(Problem(request.status()));
  const absl::Status resumed = Resume(exchange, request->get());
  if (!resumed.ok()) return exchange.writer.Send(Problem(resumed));
  const std::unique_ptr<BackendStream> stream =
      exchange.services.backend->Open(exchange.call);
  if (stream->Write((*request)->SerializeAsString())) stream->WritesDone();
  return EventPump(exchange, *stream).Run();
}

}  // namespace optfarm::http
