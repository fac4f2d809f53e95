#include "http/exchange.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "http/field_binding.h"
#include "http/json.h"
#include "rpc/trace_parent.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::MessageFactory;

constexpr size_t kMaxTokenBytes = 5000;
constexpr char kRequestIdField[] = "client_request_id";

const Message& PrototypeOf(const Descriptor* type) {
  return *MessageFactory::generated_factory()->GetPrototype(type);
}

// Idempotency-Key is the request's client_request_id, where there is one.
absl::Status AddIdempotencyKey(absl::string_view key, Message* request) {
  if (key.empty()) return absl::OkStatus();
  // The draft standard writes it as a quoted string; many do not.
  if (key.size() > 2 && key.front() == '"' && key.back() == '"') {
    key = key.substr(1, key.size() - 2);
  }
  const FieldDescriptor* field =
      request->GetDescriptor()->FindFieldByName(kRequestIdField);
  if (field == nullptr) return absl::OkStatus();
  const auto& reflection = *request->GetReflection();
  const std::string given = reflection.GetString(*request, field);
  if (!given.empty() && given != key) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Idempotency-Key and ", kRequestIdField, " differ; give one of them"));
  }
  if (!IsUtf8(key)) {
    return absl::InvalidArgumentError("Idempotency-Key is not text");
  }
  reflection.SetString(request, field, std::string(key));
  return absl::OkStatus();
}

// A media type that no page of another origin may send without asking first;
// else any page in a browser here could submit jobs.
absl::Status CheckJsonType(absl::string_view type) {
  const absl::string_view name =
      absl::StripAsciiWhitespace(type.substr(0, type.find(';')));
  if (absl::EqualsIgnoreCase(name, "application/json")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a body must come with the header Content-Type: application/json");
}

absl::Status ParseBody(Exchange& exchange, const std::string& body,
                       Message* request) {
  OPTFARM_RETURN_IF_ERROR(
      FromJson(body.empty() ? "{}" : body, exchange.permit.bounds, request));
  // The address wins over the body.
  for (const auto& [field, value] : exchange.match.captured) {
    OPTFARM_RETURN_IF_ERROR(SetField(field, value, request));
  }
  return absl::OkStatus();
}

// ERRORS: Unauthenticated for an Authorization that cannot be a token.
absl::StatusOr<BackendCall> MakeCall(const Exchange& exchange) {
  BackendCall call;
  call.rpc = exchange.match.route->rpc();
  const std::string& peer = exchange.head.peer;
  if (!peer.empty()) call.metadata.emplace_back(kPeerKey, peer);
  if (exchange.head.certified) call.metadata.emplace_back(kCertifiedKey, "1");
  // One that is malformed counts as none.
  const absl::string_view parent = exchange.head.Header(rpc::kTraceParentKey);
  if (rpc::ParseTraceParent(parent).ok()) {
    call.metadata.emplace_back(rpc::kTraceParentKey, parent);
  }
  const absl::string_view authorization = exchange.head.Header("authorization");
  if (authorization.empty()) return call;
  // What gRPC does not take as metadata it does not refuse either: it aborts.
  bool printable = authorization.size() <= kMaxTokenBytes;
  for (const char c : authorization) printable &= c >= 0x20 && c < 0x7F;
  if (!printable) {
    return absl::UnauthenticatedError(
        "the header Authorization holds what no token has");
  }
  call.metadata.emplace_back("authorization", authorization);
  return call;
}

}  // namespace

Message& NewAnswer(const Exchange& exchange, google::protobuf::Arena& arena) {
  return *PrototypeOf(exchange.match.route->method->output_type()).New(&arena);
}

absl::StatusOr<std::unique_ptr<Message>> MakeRequest(const Exchange& exchange) {
  const Route& route = *exchange.match.route;
  std::unique_ptr<Message> request(
      PrototypeOf(route.method->input_type()).New());
  OPTFARM_ASSIGN_OR_RETURN(const auto parameters,
                           ParseQuery(exchange.head.query));
  if (route.json_body && !parameters.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        route.verb, " ", route.pattern,
        " takes no parameters in the address; put them into the body"));
  }
  for (const auto& [field, value] : route.preset) {
    OPTFARM_RETURN_IF_ERROR(SetField(field, value, request.get()));
  }
  for (const auto& [field, value] : parameters) {
    OPTFARM_RETURN_IF_ERROR(SetField(field, value, request.get()));
  }
  for (const auto& [field, value] : exchange.match.captured) {
    OPTFARM_RETURN_IF_ERROR(SetField(field, value, request.get()));
  }
  return request;
}

size_t MaxJsonBytes(const Exchange& exchange) {
  // Text takes more than the message it stands for.
  return std::min(exchange.services.limits.max_json_bytes,
                  2 * exchange.permit.bounds.max_bytes);
}

absl::Status AdmitCall(Exchange& exchange) {
  OPTFARM_ASSIGN_OR_RETURN(exchange.call, MakeCall(exchange));
  const ServiceMap& services = exchange.services;
  exchange.permit.bounds.max_bytes = services.limits.max_json_bytes;
  if (!services.admit_call) return absl::OkStatus();
  const Route& route = *exchange.match.route;
  size_t bytes = 0;
  if (route.json_body) {
    const auto& announced = exchange.head.content_length;
    bytes = services.limits.max_json_bytes;
    if (announced) bytes = std::min(bytes, static_cast<size_t>(*announced));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      exchange.permit,
      services.admit_call(exchange.call, route.method->full_name(), bytes));
  return absl::OkStatus();
}

// Names an answer by its content.
std::string EntityTag(absl::string_view bytes) {
  return absl::StrCat("\"", Sha256Hex(bytes).substr(0, 32), "\"");
}

// Of a call that only reads: the reader has this answer already.
bool HasAnswer(const Exchange& exchange, absl::string_view tag) {
  return absl::StrContains(exchange.head.Header("if-none-match"), tag);
}

absl::Status ServeUnary(Exchange& exchange) {
  const Route& route = *exchange.match.route;
  absl::StatusOr<std::unique_ptr<Message>> request = MakeRequest(exchange);
  if (!request.ok()) return exchange.writer.Send(Problem(request.status()));
  if (route.json_body) {
    const absl::Status type =
        CheckJsonType(exchange.head.Header("content-type"));
    if (!type.ok()) {
      exchange.writer.DoNotKeepAlive();
      return exchange.writer.Send(Problem(415, type));
    }
    if (exchange.reader.ExpectsContinue()) {
      OPTFARM_RETURN_IF_ERROR(exchange.writer.Continue());
    }
    std::string body;
    if (!exchange.reader.ReadBody(MaxJsonBytes(exchange), &body)) {
      const ReadFailure& failure = exchange.reader.failure();
      exchange.writer.DoNotKeepAlive();
      if (failure.http_status == 0) return failure.status;
      return exchange.writer.Send(Problem(failure.http_status, failure.status));
    }
    const absl::Status parsed = ParseBody(exchange, body, request->get());
    if (!parsed.ok()) return exchange.writer.Send(Problem(parsed));
  }
  const absl::Status keyed = AddIdempotencyKey(
      exchange.head.Header("idempotency-key"), request->get());
  if (!keyed.ok()) return exchange.writer.Send(Problem(keyed));
  exchange.call.limit = exchange.services.limits.call_time;
  const absl::StatusOr<std::string> bytes = exchange.services.backend->Unary(
      exchange.call, (*request)->SerializeAsString());
  if (!bytes.ok()) return exchange.writer.Send(Problem(bytes.status()));
  Reply reply;
  if (route.verb == "GET") {
    const std::string tag = EntityTag(*bytes);
    reply.headers = {{"ETag", tag}};
    if (HasAnswer(exchange, tag)) {
      reply.status = 304;
      return exchange.writer.Send(reply);
    }
  }
  google::protobuf::Arena arena;
  Message& answer = NewAnswer(exchange, arena);
  if (!answer.ParseFromString(*bytes)) {
    return exchange.writer.Send(
        Problem(absl::InternalError("the service's answer is malformed")));
  }
  absl::StatusOr<std::string> json = ToJson(answer);
  if (!json.ok()) return exchange.writer.Send(Problem(json.status()));
  reply.content_type = "application/json";
  reply.body = *std::move(json);
  reply.body.push_back('\n');
  return exchange.writer.Send(reply);
}

}  // namespace optfarm::http
