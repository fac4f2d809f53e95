#include "http/url_download.h"

#include <algorithm>
#include <atomic>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "http/outgoing_request.h"

namespace optfarm::http {
namespace {

namespace beast = boost::beast;

constexpr absl::Duration kConnectLimit = absl::Seconds(5);
// Without a byte.
constexpr absl::Duration kStallLimit = absl::Seconds(20);
constexpr absl::Duration kPauseAfterFailure = absl::Minutes(10);
constexpr size_t kMaxHeadBytes = 16 << 10;
// UNITS: bytes asked of the connection at once.
constexpr size_t kReadBytes = 256 << 10;

// Reads the head of an answer; bytes behind it stay in the buffer. Returns how
// long its body is.
absl::StatusOr<int64_t> ReadHead(ByteStream& stream, int64_t offset,
                                 beast::flat_buffer* buffer) {
  beast::http::response_parser<beast::http::empty_body> parser;
  parser.skip(true);
  parser.header_limit(static_cast<uint32_t>(kMaxHeadBytes));
  while (!parser.is_header_done()) {
    const auto space = buffer->prepare(kMaxHeadBytes);
    OPTFARM_ASSIGN_OR_RETURN(
        const size_t read,
        stream.Read(static_cast<char*>(space.data()), space.size(),
                    absl::Now() + kStallLimit));
    if (read == 0) return absl::UnavailableError("there was no answer");
    buffer->commit(read);
    boost::system::error_code error;
    buffer->consume(parser.put(buffer->data(), error));
    if (error && error != beast::http::error::need_more) {
      return absl::UnavailableError(
          absl::StrCat("the answer is not HTTP: ", error.message()));
    }
  }
  const int status = static_cast<int>(parser.get().result_int());
  if (status != 206 && (status != 200 || offset > 0)) {
    return absl::UnavailableError(absl::StrCat("it answered ", status));
  }
  const auto length = parser.content_length();
  if (!length.has_value() || parser.chunked()) {
    return absl::UnavailableError("it does not say how long the answer is");
  }
  return static_cast<int64_t>(*length);
}

absl::Status GetFrom(const Url& url, int64_t offset,
                     const rpc::TakeBytes& take) {
  const std::string request = absl::StrCat(
      "GET ", url.target, " HTTP/1.1\r\nHost: ", url.HostHeader(),
      "\r\nUser-Agent: optfarm\r\nAccept-Encoding: identity\r\nRange: bytes=",
      offset, "-\r\nConnection: close\r\n\r\n");
  OutgoingRequest sent;
  OPTFARM_RETURN_IF_ERROR(
      sent.Send(url, request, absl::Now() + kConnectLimit, nullptr));
  beast::flat_buffer buffer;
  OPTFARM_ASSIGN_OR_RETURN(int64_t left,
                           ReadHead(sent.stream(), offset, &buffer));
  const auto first = std::min(static_cast<size_t>(left), buffer.size());
  OPTFARM_RETURN_IF_ERROR(
      take({static_cast<const char*>(buffer.data().data()), first}));
  left -= static_cast<int64_t>(first);
  std::vector<char> bytes(kReadBytes);
  while (left > 0) {
    const auto most = std::min(static_cast<size_t>(left), bytes.size());
    OPTFARM_ASSIGN_OR_RETURN(
        const size_t read,
        sent.stream().Read(bytes.data(), most, absl::Now() + kStallLimit));
    if (read == 0) return absl::UnavailableError("the answer broke off");
    OPTFARM_RETURN_IF_ERROR(take({bytes.data(), read}));
    left -= static_cast<int64_t>(read);
  }
  return absl::OkStatus();
}

class HttpUrlSource final : public rpc::UrlSource {
 public:
  bool WantsUrl() override { return absl::Now() >= not_before(); }

  absl::Status Fetch(const std::string& text, int64_t offset,
                     const rpc::TakeBytes& take) override {
    // What the address is signed with is not for the log.
    const absl::StatusOr<Url> url = ParseUrl(text);
    absl::Status taken;
    const absl::Status status =
        !url.ok() ? absl::UnavailableError("its address cannot be used")
                  : GetFrom(*url, offset, [&](absl::string_view bytes) {
                      taken = take(bytes);
                      return taken;
                    });
    if (status.ok() || !taken.ok()) return status;
    not_before_ = absl::ToUnixMillis(absl::Now() + kPauseAfterFailure);
    const std::string where =
        url.ok() ? url->Authority() : std::string("the object store");
    LogWarning("cannot fetch from ", where, " (", status.message(),
               "); files come through the server for ",
               absl::FormatDuration(kPauseAfterFailure));
    return status;
  }

 private:
  absl::Time not_before() const { return absl::FromUnixMillis(not_before_); }

  std::atomic<int64_t> not_before_ = 0;
};

}  // namespace

std::unique_ptr<rpc::UrlSource> MakeUrlSource() {
  return std::make_unique<HttpUrlSource>();
}

}  // namespace optfarm::http
