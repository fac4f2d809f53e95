#include "http/reply_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace optfarm::http {
namespace {

constexpr size_t kWorthCopying = 64 << 10;

}  // namespace

absl::Status ReplyWriter::Write(absl::string_view bytes) {
  return stream_.Write(bytes, absl::Now() + options_.write_time);
}

absl::Status ReplyWriter::Continue() {
  return Write("HTTP/1.1 100 Continue\r\n\r\n");
}

std::string ReplyWriter::Head(const Reply& reply, int64_t body_bytes) {
  std::string head = absl::StrCat(
      "HTTP/1.1 ", reply.status, " ", ReasonOf(reply.status), "\r\nDate: ",
      absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(),
                       absl::UTCTimeZone()),
      "\r\nServer: optfarm\r\nX-Content-Type-Options: nosniff\r\n");
  bool cached = false;
  for (const auto& [name, value] : reply.headers) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
    cached = cached || name == "Cache-Control";
  }
  if (!cached) head.append("Cache-Control: no-store\r\n");
  if (!reply.content_type.empty()) {
    absl::StrAppend(&head, "Content-Type: ", reply.content_type, "\r\n");
  }
  const bool bodiless = reply.status == 204 || reply.status == 304;
  if (chunked_) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (body_bytes >= 0 && !bodiless) {
    absl::StrAppend(&head, "Content-Length: ", body_bytes, "\r\n");
  }
  absl::StrAppend(&head,
                  "Connection: ", options_.keep_alive ? "keep-alive" : "close",
                  "\r\n\r\n");
  return head;
}

absl::Status ReplyWriter::Send(const Reply& reply) {
  begun_ = true;
  std::string bytes = Head(reply, static_cast<int64_t>(reply.body.size()));
  if (options_.head_only || reply.status == 204 || reply.status == 304) {
    return Write(bytes);
  }
  // One packet where that can be.
  if (reply.body.size() < kWorthCopying) {
    bytes.append(reply.body);
    return Write(bytes);
  }
  OPTFARM_RETURN_IF_ERROR(Write(bytes));
  return Write(reply.body);
}

absl::Status ReplyWriter::Begin(const Reply& head, int64_t body_bytes) {
  begun_ = true;
  chunked_ = body_bytes < 0 && !options_.old_version;
  // Without chunks only the connection's end says that the body has ended.
  if (body_bytes < 0 && !chunked_) options_.keep_alive = false;
  return Write(Head(head, body_bytes));
}

absl::Status ReplyWriter::SendPiece(absl::string_view piece) {
  if (piece.empty() || options_.head_only) return absl::OkStatus();
  if (!chunked_) return Write(piece);
  return Write(absl::StrCat(absl::Hex(piece.size()), "\r\n", piece, "\r\n"));
}

absl::Status ReplyWriter::End() {
  if (!chunked_ || options_.head_only) return absl::OkStatus();
  return Write("0\r\n\r\n");
}

}  // namespace optfarm::http
