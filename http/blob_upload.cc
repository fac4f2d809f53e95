// Files on their way in: the body of a PUT or PATCH becomes the messages of
// ModelService.Upload. A part says where it belongs by Content-Range.

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "http/byte_range.h"
#include "http/exchange.h"
#include "http/json.h"
#include "optfarm/v1/models.pb.h"

namespace optfarm::http {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// What the headers say about the body.
absl::StatusOr<SentRange> RangeOf(const RequestHead& head) {
  const absl::string_view header = head.Header("content-range");
  if (header.empty()) {
    if (!head.content_length) {
      return absl::InvalidArgumentError(
          "a chunked body needs the header Content-Range: the length of the "
          "whole file must be known before its first byte is taken");
    }
    return SentRange{0, *head.content_length, *head.content_length};
  }
  OPTFARM_ASSIGN_OR_RETURN(const SentRange range, ParseContentRange(header));
  if (head.content_length && *head.content_length != range.length) {
    return absl::InvalidArgumentError(
        absl::StrCat("Content-Range speaks of ", range.length,
                     " bytes and Content-Length of ", *head.content_length));
  }
  return range;
}

class Upload {
 public:
  Upload(Exchange& exchange, const SentRange& range)
      : exchange_(exchange), range_(range) {}

  absl::Status Run(const v1::UploadRequest& first) {
    // The service says so too, but as what passes when one waits.
    const int64_t most = exchange_.services.limits.max_file_bytes;
    if (range_.total > most) {
      return Refuse(
          Problem(413, absl::ResourceExhaustedError(absl::StrCat(
                           "the file has ", range_.total,
                           " bytes and this server takes ", most,
                           " at most: make it smaller or start the server with "
                           "a higher --max_blob_bytes"))));
    }
    call_ = exchange_.services.backend->Open(exchange_.call);
    message_ = first;
    message_.mutable_digest()->set_size_bytes(range_.total);
    if (exchange_.reader.ExpectsContinue()) {
      OPTFARM_RETURN_IF_ERROR(exchange_.writer.Continue());
    }
    int64_t sent = 0;
    do {
      if (!exchange_.reader.ReadPiece(kPieceBytes, message_.mutable_data())) {
        return BreakOff();
      }
      const int64_t size = static_cast<int64_t>(message_.data().size());
      if (sent + size > range_.length || (size == 0 && sent < range_.length)) {
        return Refuse(Problem(absl::InvalidArgumentError(absl::StrCat(
            "the body has ", size == 0 ? "fewer" : "more", " than the ",
            range_.length, " bytes that the headers speak of"))));
      }
      message_.set_offset(range_.offset + sent);
      if (!call_->Write(message_.SerializeAsString())) break;
      message_.clear_digest();
      sent += size;
    } while (sent < range_.length);
    call_->WritesDone();
    return Answer();
  }

 private:
  // The client went away or is malformed. What came is kept by the service.
  absl::Status BreakOff() {
    const ReadFailure& failure = exchange_.reader.failure();
    call_->WritesDone();
    call_->Finish().IgnoreError();
    exchange_.writer.DoNotKeepAlive();
    if (failure.http_status == 0) return failure.status;
    return exchange_.writer.Send(Problem(failure.http_status, failure.status));
  }

  absl::Status Refuse(const Reply& reply) {
    exchange_.writer.DoNotKeepAlive();
    return exchange_.writer.Send(reply);
  }

  absl::Status Answer() {
    std::string bytes;
    v1::UploadResponse response;
    const bool answered = call_->Read(absl::InfiniteDuration(), &bytes) ==
                          BackendStream::ReadResult::kMessage;
    const absl::Status status = call_->Finish();
    if (!exchange_.reader.BodyDone()) exchange_.writer.DoNotKeepAlive();
    const int64_t end = range_.offset + range_.length;
    Reply reply;
    if (status.ok() && answered && response.ParseFromString(bytes)) {
      reply.status = response.already_present() ? 200 : 201;
    } else if (absl::IsFailedPrecondition(status) && end < range_.total) {
      // A part, as announced: more is to come.
      reply.status = 202;
      response.set_committed_bytes(end);
    } else if (absl::IsDataLoss(status)) {
      // What came is not what the path promises: the sender's mistake.
      return exchange_.writer.Send(Problem(400, status));
    } else {
      return exchange_.writer.Send(
          Problem(status.ok() ? absl::InternalError("the service said nothing")
                              : status));
    }
    reply.headers.emplace_back("Upload-Offset",
                               absl::StrCat(response.committed_bytes()));
    absl::StatusOr<std::string> json = ToJson(response);
    if (!json.ok()) return exchange_.writer.Send(Problem(json.status()));
    reply.content_type = "application/json";
    reply.body = absl::StrCat(*json, "\n");
    return exchange_.writer.Send(reply);
  }

  Exchange& exchange_;
  const SentRange range_;
  std::unique_ptr<BackendStream> call_;
  v1::UploadRequest message_;
};

}  // namespace

absl::Status ServeUpload(Exchange& exchange) {
  const absl::StatusOr<std::unique_ptr<google::protobuf::Message>> request =
      MakeRequest(exchange);
  const absl::StatusOr<SentRange> range = RangeOf(exchange.head);
  const absl::Status status = request.ok() ? range.status() : request.status();
  if (!status.ok()) {
    exchange.writer.DoNotKeepAlive();
    return exchange.writer.Send(Problem(status));
  }
  return Upload(exchange, *range)
      .Run(static_cast<const v1::UploadRequest&>(**request));
}

}  // namespace optfarm::http
