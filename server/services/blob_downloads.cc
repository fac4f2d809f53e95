#include "server/services/blob_downloads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::BlobId;
using ::optfarm::storage::BlobIdFromProto;

constexpr int64_t kPieceBytes = 1 << 20;
// Less is sent at once, without another connection.
constexpr int64_t kLeastUrlBytes = 1 << 20;
constexpr absl::Duration kUrlValidity = absl::Minutes(15);

bool WriteUrl(const std::string& url, int64_t total, const WritePiece& write) {
  v1::DownloadResponse elsewhere;
  elsewhere.set_url(url);
  elsewhere.set_total_bytes(total);
  return write(elsewhere);
}

}  // namespace

absl::StatusOr<BlobRange> RangeOf(const v1::DownloadRequest& request,
                                  int64_t total) {
  const int64_t said = request.digest().size_bytes();
  if ((said != 0 && said != total) || request.offset() < 0 ||
      request.offset() > total || request.max_bytes() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "downloading blob ", request.digest().sha256(), " of ", total,
        " bytes: size ", said, ", offset ", request.offset(), " and max_bytes ",
        request.max_bytes(), " do not fit"));
  }
  BlobRange range{total, request.offset(), total - request.offset()};
  if (request.max_bytes() > 0) {
    range.left = std::min(range.left, request.max_bytes());
  }
  return range;
}

absl::Status SendRange(storage::BlobReader& blob, BlobRange& range,
                       const WritePiece& write) {
  v1::DownloadResponse response;
  response.set_total_bytes(range.total);
  do {
    response.set_offset(range.offset);
    OPTFARM_ASSIGN_OR_RETURN(
        *response.mutable_data(),
        blob.Read(range.offset, std::min(range.left, kPieceBytes)));
    if (!write(response)) {
      return absl::CancelledError("the transfer was broken off");
    }
    const int64_t sent = static_cast<int64_t>(response.data().size());
    range.offset += sent;
    range.left -= sent;
    response.clear_total_bytes();
  } while (range.left > 0);
  return absl::OkStatus();
}

absl::Status BlobDownloads::MayRead(const Caller& caller,
                                    const std::string& sha256) {
  if (caller.OfFarm()) return leased_.MayRead(caller, sha256, clock_.Now());
  OPTFARM_ASSIGN_OR_RETURN(const bool has,
                           store_.ProjectHasBlob(caller.project, sha256));
  return has ? absl::OkStatus() : storage::NoSuchBlob(sha256);
}

absl::StatusOr<BlobDownloads::Opened> BlobDownloads::Open(
    Call& call, const v1::DownloadRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const BlobId id, BlobIdFromProto(request.digest()));
  call.subject = id.sha256;
  OPTFARM_RETURN_IF_ERROR(MayRead(call.caller, id.sha256));
  Opened opened;
  OPTFARM_ASSIGN_OR_RETURN(opened.blob, blobs_.OpenBlob(id.sha256));
  const int64_t size = opened.blob->size_bytes();
  OPTFARM_ASSIGN_OR_RETURN(opened.range, RangeOf(request, size));
  OPTFARM_RETURN_IF_ERROR(
      blobs_.Contains(BlobId{id.sha256, size}, clock_.Now()).status());
  if (request.accepts_url() && request.max_bytes() == 0 &&
      opened.range.left >= kLeastUrlBytes) {
    opened.url = blobs_.DownloadUrl(id.sha256, clock_.Now(), kUrlValidity);
  }
  return opened;
}

absl::Status BlobDownloads::Send(Call& call, grpc::ServerContext& context,
                                 const v1::DownloadRequest& request,
                                 const WritePiece& write) {
  OPTFARM_ASSIGN_OR_RETURN(Opened opened, Open(call, request));
  if (!opened.url.empty()) {
    WriteUrl(opened.url, opened.range.total, write);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransferWatch::Transfer> transfer,
      transfers_.Begin(
          OwnerOf(call.caller), [&context] { context.TryCancel(); },
          clock_.Now()));
  const auto open = door_.HoldOpen(context, call.caller);
  const absl::Status sent = SendRange(*opened.blob, opened.range,
                                      [&](const v1::DownloadResponse& piece) {
                                        if (!write(piece)) return false;
                                        transfer->Moved(piece.data().size());
                                        return true;
                                      });
  return absl::IsCancelled(sent) ? WhyBroken(*transfer) : sent;
}

absl::Status BlobDownloads::Grant(
    Call& call, grpc::ServerContext& context,
    const v1::DownloadRequest& request, const WritePiece& write,
    const std::function<absl::StatusOr<int64_t>()>& read) {
  // The reader is held meanwhile: what is read is not deleted.
  OPTFARM_ASSIGN_OR_RETURN(const Opened opened, Open(call, request));
  if (!opened.url.empty()) {
    WriteUrl(opened.url, opened.range.total, write);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransferWatch::Transfer> transfer,
      transfers_.Begin(
          OwnerOf(call.caller), [&context] { context.TryCancel(); },
          clock_.Now()));
  const auto open = door_.HoldOpen(context, call.caller);
  v1::DownloadResponse granted;
  granted.set_total_bytes(opened.range.total);
  int64_t left = opened.range.left;
  absl::StatusOr<int64_t> moved = 0;
  // Each word of the other server is answered: it knows then that it may go on.
  while (write(granted) && (moved = read()).ok()) {
    transfer->Moved(static_cast<size_t>(std::max<int64_t>(*moved, 0)));
    left -= *moved;
    granted.Clear();
  }
  if (left == 0 && absl::IsOutOfRange(moved.status())) return absl::OkStatus();
  if (!moved.ok() && !absl::IsOutOfRange(moved.status())) return moved.status();
  return WhyBroken(*transfer);
}

}  // namespace optfarm::server
