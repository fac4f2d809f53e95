#include "http/post.h"

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "http/byte_stream.h"
#include "http/outgoing_request.h"

namespace optfarm::http {
namespace {

namespace beast = boost::beast;

// Where the status must be by.
constexpr size_t kMaxHeadBytes = 16 << 10;
// UNITS: bytes asked of the connection at once.
constexpr size_t kReadBytes = 16 << 10;
// UNITS: bytes. No chunked body has less left before its end: "0\r\n\r\n".
constexpr size_t kLastChunkBytes = 5;

absl::StatusOr<int> ReadStatus(ByteStream& stream, absl::Time deadline) {
  std::string head;
  char buffer[1024];
  while (head.find("\r\n") == std::string::npos) {
    OPTFARM_ASSIGN_OR_RETURN(const size_t read,
                             stream.Read(buffer, sizeof(buffer), deadline));
    if (read == 0 || head.size() > kMaxHeadBytes) break;
    head.append(buffer, read);
  }
  absl::string_view line = head;
  int status = 0;
  if (absl::ConsumePrefix(&line, "HTTP/1.") && line.size() >= 5 &&
      absl::SimpleAtoi(line.substr(2, 3), &status) && status >= 100 &&
      status < 600) {
    return status;
  }
  return absl::UnavailableError("the answer is not HTTP");
}

std::string BytesOf(const PostRequest& request) {
  std::string bytes = absl::StrCat(
      "POST ", request.url.target,
      " HTTP/1.1\r\nHost: ", request.url.Authority(),
      "\r\nUser-Agent: optfarm\r\nContent-Type: ", request.content_type,
      "\r\nContent-Length: ", request.body.size(), "\r\nConnection: close\r\n");
  for (const auto& [name, value] : request.headers) {
    absl::StrAppend(&bytes, name, ": ", value, "\r\n");
  }
  absl::StrAppend(&bytes, "\r\n", request.body);
  return bytes;
}

// A number of seconds, or a date.
std::optional<absl::Duration> ReadRetryAfter(absl::string_view text) {
  int64_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) {
    return absl::Seconds(std::max<int64_t>(seconds, 0));
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &time, &error)) {
    return std::nullopt;
  }
  return std::max(time - absl::Now(), absl::ZeroDuration());
}

// Feeds the parser until the answer is whole. An error after its head leaves
// an answer without a body.
absl::Status ParseReply(
    ByteStream& stream, absl::Time deadline,
    beast::http::response_parser<beast::http::string_body>& parser) {
  beast::flat_buffer buffer;
  while (!parser.is_done()) {
    const auto space = buffer.prepare(kReadBytes);
    OPTFARM_ASSIGN_OR_RETURN(
        const size_t read,
        stream.Read(static_cast<char*>(space.data()), space.size(), deadline));
    boost::system::error_code error;
    if (read == 0) {
      // Beast asserts that something came.
      if (!parser.got_some()) {
        return absl::UnavailableError("there was no answer");
      }
      parser.put_eof(error);
      if (!error) return absl::OkStatus();
      return absl::UnavailableError("the answer broke off");
    }
    buffer.commit(read);
    // As in RequestReader: of a chunked body Beast wants no less.
    while (!parser.is_done() && buffer.size() > 0 &&
           (!parser.is_header_done() || !parser.chunked() ||
            buffer.size() >= kLastChunkBytes)) {
      const size_t used = parser.put(buffer.data(), error);
      buffer.consume(used);
      if (error == beast::http::error::need_more) break;
      if (error) {
        return absl::UnavailableError(
            absl::StrCat("the answer is not HTTP: ", error.message()));
      }
      if (used == 0) break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PostReply> ReadReply(ByteStream& stream, size_t max_body_bytes,
                                    absl::Time deadline) {
  beast::http::response_parser<beast::http::string_body> parser;
  parser.header_limit(static_cast<uint32_t>(kMaxHeadBytes));
  parser.body_limit(max_body_bytes);
  const absl::Status parsed = ParseReply(stream, deadline, parser);
  if (!parser.is_header_done()) {
    return parsed.ok() ? absl::UnavailableError("the answer is not HTTP")
                       : parsed;
  }
  PostReply reply;
  reply.status = static_cast<int>(parser.get().result_int());
  const auto header = parser.get().find(beast::http::field::retry_after);
  if (header != parser.get().end()) {
    const auto value = header->value();
    reply.retry_after =
        ReadRetryAfter(absl::string_view(value.data(), value.size()));
  }
  if (parsed.ok()) reply.body = std::move(parser.get().body());
  return reply;
}

}  // namespace

absl::StatusOr<int> Post(const PostRequest& request) {
  const absl::Time deadline = absl::Now() + request.limit;
  OutgoingRequest sent;
  OPTFARM_RETURN_IF_ERROR(sent.Send(request.url, BytesOf(request), deadline,
                                    request.cancellation.get()));
  return ReadStatus(sent.stream(), deadline);
}

absl::StatusOr<PostReply> PostForReply(const PostRequest& request,
                                       size_t max_body_bytes) {
  const absl::Time deadline = absl::Now() + request.limit;
  OutgoingRequest sent;
  OPTFARM_RETURN_IF_ERROR(sent.Send(request.url, BytesOf(request), deadline,
                                    request.cancellation.get()));
  return ReadReply(sent.stream(), max_body_bytes, deadline);
}

}  // namespace optfarm::http
