// Files on their way out: ModelService.Download as the body of a GET, whole or
// in part. A file is named by its digest, which is its ETag for ever.

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "http/byte_range.h"
#include "http/exchange.h"
#include "optfarm/v1/models.pb.h"

namespace optfarm::http {
namespace {

// Reads the next message. False: the call has ended.
bool ReadNext(BackendStream& call, v1::DownloadResponse* response) {
  std::string bytes;
  return call.Read(absl::InfiniteDuration(), &bytes) ==
             BackendStream::ReadResult::kMessage &&
         response->ParseFromString(bytes);
}

// Reads a call whose bytes are all here to its end: one that is broken off is
// in the audit log as that.
void ReadToEnd(BackendStream& call) {
  v1::DownloadResponse more;
  while (ReadNext(call, &more)) continue;
}

// A GET is answered by bytes.
v1::DownloadRequest ForBytes(v1::DownloadRequest request) {
  request.clear_accepts_url();
  return request;
}

class Download {
 public:
  Download(Exchange& exchange, const v1::DownloadRequest& request)
      : exchange_(exchange), request_(ForBytes(request)) {
    etag_ = absl::StrCat("\"", request.digest().sha256(), "\"");
  }

  absl::Status Run() {
    // Whether it is here, may be seen, and how long it is.
    v1::DownloadRequest probe = request_;
    probe.clear_offset();
    probe.set_max_bytes(1);
    const auto first = Open(probe);
    v1::DownloadResponse response;
    if (!ReadNext(*first, &response)) {
      const absl::Status status = first->Finish();
      return exchange_.writer.Send(Problem(
          status.ok() ? absl::DataLossError("the file has no end") : status));
    }
    ReadToEnd(*first);
    return SendRange(response.total_bytes());
  }

 private:
  std::unique_ptr<BackendStream> Open(const v1::DownloadRequest& request) {
    auto stream = exchange_.services.backend->Open(exchange_.call);
    if (stream->Write(request.SerializeAsString())) stream->WritesDone();
    return stream;
  }

  bool Unchanged() const {
    const absl::string_view known = exchange_.head.Header("if-none-match");
    return known == "*" || absl::StrContains(known, etag_);
  }

  absl::Status SendRange(int64_t total) {
    Reply head;
    head.headers = {{"ETag", etag_},
                    {"Accept-Ranges", "bytes"},
                    {"Cache-Control", "private, max-age=31536000, immutable"}};
    if (Unchanged()) {
      head.status = 304;
      return exchange_.writer.Send(head);
    }
    const absl::string_view condition = exchange_.head.Header("if-range");
    WantedRange range;
    if (condition.empty() || condition == etag_) {
      range = ParseRange(exchange_.head.Header("range"), total);
    }
    if (range.unsatisfiable) {
      Reply refusal = Problem(
          416, absl::OutOfRangeError(absl::StrCat(
                   "the file has ", total, " bytes and none of those asked")));
      refusal.headers.emplace_back("Content-Range",
                                   absl::StrCat("bytes */", total));
      return exchange_.writer.Send(refusal);
    }
    if (range.all) range.length = total;
    if (!range.all) {
      head.status = 206;
      head.headers.emplace_back(
          "Content-Range",
          absl::StrCat("bytes ", range.offset, "-",
                       range.offset + range.length - 1, "/", total));
    }
    head.content_type = "application/octet-stream";
    OPTFARM_RETURN_IF_ERROR(exchange_.writer.Begin(head, range.length));
    if (exchange_.writer.head_only() || range.length == 0) {
      return absl::OkStatus();
    }
    return SendBytes(range);
  }

  absl::Status SendBytes(const WantedRange& range) {
    v1::DownloadRequest request = request_;
    request.set_offset(range.offset);
    request.set_max_bytes(range.length);
    const auto stream = Open(request);
    v1::DownloadResponse response;
    int64_t left = range.length;
    while (left > 0 && ReadNext(*stream, &response)) {
      const int64_t size = static_cast<int64_t>(response.data().size());
      if (size == 0 || size > left) break;
      OPTFARM_RETURN_IF_ERROR(exchange_.writer.SendPiece(response.data()));
      left -= size;
    }
    if (left == 0) {
      ReadToEnd(*stream);
      return absl::OkStatus();
    }
    // Too late for an answer; the missing bytes say it.
    return absl::DataLossError("a download broke off");
  }

  Exchange& exchange_;
  const v1::DownloadRequest request_;
  std::string etag_;
};

}  // namespace

absl::Status ServeDownload(Exchange& exchange) {
  const absl::StatusOr<std::unique_ptr<google::protobuf::Message>> request =
      MakeRequest(exchange);
  if (!request.ok()) return exchange.writer.Send(Problem(request.status()));
  return Download(exchange, static_cast<const v1::DownloadRequest&>(**request))
      .Run();
}

}  // namespace optfarm::http
