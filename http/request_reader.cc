#include "http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace optfarm::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;

// UNITS: bytes asked of the connection at once.
constexpr size_t kReadBytes = 16 << 10;
// UNITS: bytes. No chunked body has less left before its end: "0\r\n\r\n".
constexpr size_t kLastChunkBytes = 5;

using Parser = beast::http::request_parser<beast::http::buffer_body>;

std::string ToString(beast::string_view text) {
  return std::string(text.data(), text.size());
}

}  // namespace

struct RequestReader::Parsers {
  std::optional<Parser> parser;
  beast::flat_buffer buffer;
};

RequestReader::RequestReader(ByteStream& stream, const Limits& limits)
    : stream_(stream), limits_(limits), parsers_(std::make_unique<Parsers>()) {}

RequestReader::~RequestReader() = default;

bool RequestReader::Fail(int http_status, const absl::Status& status) {
  failure_ = {http_status, status};
  return false;
}

// Waits for more bytes. An end or a broken connection leaves nobody to answer.
bool RequestReader::Fill(absl::Time deadline) {
  const auto space = parsers_->buffer.prepare(kReadBytes);
  const absl::StatusOr<size_t> read =
      stream_.Read(static_cast<char*>(space.data()), space.size(), deadline);
  if (absl::IsDeadlineExceeded(read.status())) {
    return Fail(408, absl::DeadlineExceededError(
                         "the request did not come in time; send it again"));
  }
  if (!read.ok()) return Fail(0, read.status());
  if (*read == 0) return Fail(0, absl::UnavailableError("the client left"));
  parsers_->buffer.commit(*read);
  return true;
}

bool RequestReader::ReadHead(RequestHead* head) {
  parsers_->parser.emplace();
  Parser& parser = *parsers_->parser;
  parser.header_limit(static_cast<uint32_t>(limits_.max_head_bytes));
  // Whoever reads the body sets a limit of its own.
  parser.body_limit(std::numeric_limits<int64_t>::max());
  beast::flat_buffer& buffer = parsers_->buffer;
  if (buffer.size() == 0) {
    const absl::Duration wait = first_ ? limits_.head_time : limits_.idle_time;
    if (!Fill(absl::Now() + wait)) {
      // Nobody asked anything yet, so nobody is told.
      failure_.http_status = 0;
      return false;
    }
  }
  first_ = false;
  const absl::Time deadline = absl::Now() + limits_.head_time;
  while (true) {
    error_code error;
    buffer.consume(parser.put(buffer.data(), error));
    if (parser.is_header_done()) break;
    if (error == beast::http::error::header_limit) {
      return Fail(431, absl::ResourceExhaustedError(absl::StrCat(
                           "the request's headers are longer than ",
                           limits_.max_head_bytes, " bytes")));
    }
    if (error && error != beast::http::error::need_more) {
      return Fail(400, absl::InvalidArgumentError(absl::StrCat(
                           "this is not an HTTP request: ", error.message())));
    }
    if (!Fill(deadline)) return false;
  }
  const auto& message = parser.get();
  *head = RequestHead();
  head->verb = ToString(message.method_string());
  const std::string target = ToString(message.target());
  const size_t question = std::min(target.find('?'), target.size());
  head->path = target.substr(0, question);
  head->query = target.substr(std::min(question + 1, target.size()));
  for (const auto& field : message) {
    head->headers[absl::AsciiStrToLower(ToString(field.name_string()))] =
        ToString(field.value());
  }
  if (!parser.chunked()) {
    const auto length = parser.content_length();
    const uint64_t bytes = length ? *length : 0;
    if (bytes > uint64_t{1} << 62) {
      return Fail(413, absl::ResourceExhaustedError("the body is too long"));
    }
    head->content_length = static_cast<int64_t>(bytes);
  }
  return true;
}

bool RequestReader::ExpectsContinue() const {
  const auto& message = parsers_->parser->get();
  const auto found = message.find(beast::http::field::expect);
  return found != message.end() &&
         absl::EqualsIgnoreCase(ToString(found->value()), "100-continue");
}

bool RequestReader::KeepAlive() const {
  return parsers_->parser->get().keep_alive();
}

bool RequestReader::IsOldVersion() const {
  return parsers_->parser->get().version() < 11;
}

bool RequestReader::BodyDone() const {
  return !parsers_->parser || parsers_->parser->is_done();
}

bool RequestReader::ReadBody(size_t max_bytes, std::string* body) {
  body->clear();
  const auto announced = parsers_->parser->content_length();
  if (announced && *announced > max_bytes) return FailBody(max_bytes);
  const absl::Time deadline = absl::Now() + limits_.body_time;
  std::string piece;
  while (true) {
    // One byte more than allowed is enough to know.
    const size_t room = std::min(max_bytes - body->size() + 1, kReadBytes);
    if (!ReadPiece(room, &piece)) return false;
    if (piece.empty()) return true;
    body->append(piece);
    if (body->size() > max_bytes) return FailBody(max_bytes);
    if (absl::Now() > deadline) {
      return Fail(408, absl::DeadlineExceededError(
                           "the body did not come in time; send it again"));
    }
  }
}

bool RequestReader::FailBody(size_t max_bytes) {
  return Fail(413, absl::ResourceExhaustedError(absl::StrCat(
                       "the body is longer than ", max_bytes,
                       " bytes, which is all that is taken here; files go to "
                       "/v1/blobs/")));
}

bool RequestReader::ReadPiece(size_t max_bytes, std::string* piece) {
  Parser& parser = *parsers_->parser;
  beast::flat_buffer& buffer = parsers_->buffer;
  piece->resize(max_bytes);
  size_t filled = 0;
  const absl::Time deadline = absl::Now() + limits_.body_time;
  while (filled < max_bytes && !parser.is_done()) {
    // Beast asserts that the last chunk's line, which it leaves in the buffer
    // until all is there, has not come with less.
    if (parser.chunked() && buffer.size() < kLastChunkBytes) {
      if (!Fill(deadline)) return false;
      continue;
    }
    auto& body = parser.get().body();
    body.data = piece->data() + filled;
    body.size = max_bytes - filled;
    body.more = true;
    error_code error;
    const size_t used = parser.put(buffer.data(), error);
    buffer.consume(used);
    filled = max_bytes - body.size;
    if (error == beast::http::error::need_buffer) error = {};
    if (error && error != beast::http::error::need_more) {
      return Fail(400,
                  absl::InvalidArgumentError(absl::StrCat(
                      "the request's body is malformed: ", error.message())));
    }
    const bool wants_more = error == beast::http::error::need_more ||
                            used == 0 || buffer.size() == 0;
    if (filled < max_bytes && !parser.is_done() && wants_more) {
      if (!Fill(deadline)) return false;
    }
  }
  piece->resize(filled);
  return true;
}

}  // namespace optfarm::http
