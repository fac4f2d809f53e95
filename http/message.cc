#include "http/message.h"

#include <google/protobuf/any.pb.h>

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_string.h"
#include "http/json.h"
#include "optfarm/v1/options.pb.h"
#include "rpc/status.h"

namespace optfarm::http {
namespace {

// When to try again where nothing says it. UNITS: seconds.
constexpr int kRetrySeconds = 2;

// Details that come as Any of types this program knows.
std::vector<std::string> DetailsOf(const absl::Status& status) {
  std::vector<std::string> details;
  status.ForEachPayload([&](auto type_url, const absl::Cord& payload) {
    google::protobuf::Any any;
    any.set_type_url(std::string(type_url));
    any.set_value(std::string(payload));
    absl::StatusOr<std::string> json = ToJson(any);
    if (json.ok()) details.push_back(*std::move(json));
  });
  return details;
}

}  // namespace

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

absl::string_view ReasonOf(int http_status) {
  switch (http_status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "";
  }
}

Reply Problem(const absl::Status& status) {
  return Problem(HttpStatusOf(status.code()), status);
}

Reply Problem(int http_status, const absl::Status& status) {
  Reply reply;
  reply.status = http_status;
  reply.content_type = "application/problem+json";
  reply.body = absl::StrCat(
      "{\"type\":\"about:blank\",\"title\":", JsonString(ReasonOf(http_status)),
      ",\"status\":", http_status,
      ",\"detail\":", JsonString(std::string(status.message())),
      ",\"code\":", JsonString(absl::StatusCodeToString(status.code())));
  const std::vector<std::string> details = DetailsOf(status);
  if (!details.empty()) {
    absl::StrAppend(&reply.body, ",\"details\":[", absl::StrJoin(details, ","),
                    "]");
  }
  reply.body.append("}\n");
  if (http_status == 401) {
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  if (http_status == 429 || http_status == 503) {
    v1::RetryHint hint;
    hint.mutable_retry_after()->set_seconds(kRetrySeconds);
    rpc::GetDetail(status, &hint);
    const auto& wait = hint.retry_after();
    reply.headers.emplace_back(
        "Retry-After", absl::StrCat(wait.seconds() + (wait.nanos() > 0)));
  }
  return reply;
}

}  // namespace optfarm::http
