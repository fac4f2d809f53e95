#include "http/post.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "http/address_lookup.h"
#include "http/byte_stream.h"

namespace optfarm::http {
namespace {

namespace beast = boost::beast;

constexpr size_t kMaxUrlBytes = 2000;
// Where the status must be by.
constexpr size_t kMaxHeadBytes = 16 << 10;
// UNITS: bytes asked of the connection at once.
constexpr size_t kReadBytes = 16 << 10;
// UNITS: bytes. No chunked body has less left before its end: "0\r\n\r\n".
constexpr size_t kLastChunkBytes = 5;

absl::Status ConnectSocket(int fd, const HostAddress& address,
                           absl::Time deadline, Cancellation* cancellation) {
  const Cancellation::Watch watch(cancellation, fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.address),
                address.length) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINPROGRESS) return ErrnoToStatus(errno, "connecting");
  OPTFARM_RETURN_IF_ERROR(AwaitWritable(fd, deadline));
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
      error != 0) {
    return ErrnoToStatus(error, "connecting");
  }
  return absl::OkStatus();
}

// A connected socket.
absl::StatusOr<int> ConnectTo(const HostAddress& address, absl::Time deadline,
                              Cancellation* cancellation) {
  const int fd =
      ::socket(address.family, address.type | SOCK_CLOEXEC | SOCK_NONBLOCK,
               address.protocol);
  if (fd < 0) return ErrnoToStatus(errno, "making a socket");
  const absl::Status status =
      ConnectSocket(fd, address, deadline, cancellation);
  if (status.ok()) return fd;
  ::close(fd);
  return status;
}

// A socket that is connected to one of the addresses.
absl::StatusOr<int> Connect(const Url& url, absl::Time deadline,
                            Cancellation* cancellation) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<HostAddress> addresses,
      LookUpAddresses(url.host, url.port, deadline, cancellation));
  absl::Status last = absl::UnavailableError("no address");
  for (const HostAddress& one : addresses) {
    const absl::StatusOr<int> fd = ConnectTo(one, deadline, cancellation);
    if (fd.ok()) return fd;
    last = fd.status();
    if (cancellation != nullptr && cancellation->cancelled()) break;
  }
  return last;
}

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

// A connection of one request.
class OneRequest {
 public:
  absl::Status Send(const PostRequest& request, absl::Time deadline) {
    Cancellation* const cancellation = request.cancellation.get();
    OPTFARM_ASSIGN_OR_RETURN(const int socket,
                             Connect(request.url, deadline, cancellation));
    stream_ = request.url.tls ? MakeTlsClientStream(socket, request.url.host)
                              : MakeSocketStream(socket);
    watch_.emplace(cancellation, socket);
    std::string bytes = absl::StrCat(
        "POST ", request.url.target,
        " HTTP/1.1\r\nHost: ", request.url.Authority(),
        "\r\nUser-Agent: optfarm\r\nContent-Type: ", request.content_type,
        "\r\nContent-Length: ", request.body.size(),
        "\r\nConnection: close\r\n");
    for (const auto& [name, value] : request.headers) {
      absl::StrAppend(&bytes, name, ": ", value, "\r\n");
    }
    absl::StrAppend(&bytes, "\r\n", request.body);
    return stream_->Write(bytes, deadline);
  }

  // REQUIRES: Send was OK.
  ByteStream& stream() { return *stream_; }

 private:
  std::unique_ptr<ByteStream> stream_;
  // Goes before the socket that it watches.
  std::optional<Cancellation::Watch> watch_;
};

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

std::string Url::Authority() const {
  const bool v6 = absl::StrContains(host, ':');
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]" : "", ":", port);
}

absl::StatusOr<Url> ParseUrl(absl::string_view text) {
  const auto malformed = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::CHexEscape(text.substr(0, 200)), "' ", why,
                     "; give http://HOST[:PORT]/PATH or https://..."));
  };
  Url url;
  absl::string_view rest = text;
  if (text.size() > kMaxUrlBytes) return malformed("is too long");
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return malformed("has characters that an address has not");
    }
  }
  if (absl::ConsumePrefix(&rest, "https://")) {
    url.tls = true;
  } else if (!absl::ConsumePrefix(&rest, "http://")) {
    return malformed("is neither http nor https");
  }
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  absl::string_view authority = rest.substr(0, end);
  url.target = std::string(rest.substr(end));
  if (absl::StrContains(url.target, '#')) return malformed("has a fragment");
  if (!absl::StartsWith(url.target, "/")) url.target.insert(0, 1, '/');
  if (absl::StrContains(authority, '@')) {
    return malformed("has a user's name in it");
  }
  url.port = url.tls ? 443 : 80;
  const size_t colon = authority.rfind(':');
  if (colon != absl::string_view::npos && !absl::EndsWith(authority, "]")) {
    if (!absl::SimpleAtoi(authority.substr(colon + 1), &url.port) ||
        url.port < 1 || url.port > 65535) {
      return malformed("has a port that is none");
    }
    authority = authority.substr(0, colon);
  }
  if (absl::ConsumePrefix(&authority, "[")) {
    if (!absl::ConsumeSuffix(&authority, "]")) return malformed("lacks a ']'");
  } else if (absl::StrContains(authority, ':')) {
    return malformed("has too many colons");
  }
  if (authority.empty()) return malformed("has no host");
  url.host = absl::AsciiStrToLower(authority);
  return url;
}

absl::StatusOr<int> Post(const PostRequest& request) {
  const absl::Time deadline = absl::Now() + request.limit;
  OneRequest sent;
  OPTFARM_RETURN_IF_ERROR(sent.Send(request, deadline));
  return ReadStatus(sent.stream(), deadline);
}

absl::StatusOr<PostReply> PostForReply(const PostRequest& request,
                                       size_t max_body_bytes) {
  const absl::Time deadline = absl::Now() + request.limit;
  OneRequest sent;
  OPTFARM_RETURN_IF_ERROR(sent.Send(request, deadline));
  return ReadReply(sent.stream(), max_body_bytes, deadline);
}

}  // namespace optfarm::http
