#include "server/standby_downloads.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::server {

StandbyDownloads::StandbyDownloads(const LeaderDoor& door,
                                   CallForwarder& forwarder,
                                   std::unique_ptr<storage::BlobSource> source,
                                   TransferWatch& transfers, Clock& clock)
    : forwarder_(forwarder),
      source_(std::move(source)),
      transfers_(transfers),
      clock_(clock) {
  AdmitDownload<v1::DownloadRequest, v1::DownloadResponse>(
      [&door](grpc::ServerContext& context) {
        return door.Enter(context, kDownload);
      },
      kDownload,
      [this](grpc::ServerContext& context, const v1::DownloadRequest& request,
             const WritePiece& write) {
        return CallDoor::Answer(Serve(context, request, write));
      });
  ServeOnly(kDownload);
}

absl::Status StandbyDownloads::Serve(grpc::ServerContext& context,
                                     const v1::DownloadRequest& request,
                                     const WritePiece& write) {
  if (source_ == nullptr) return PassOn(context, request, write);
  OPTFARM_ASSIGN_OR_RETURN(auto place, forwarder_.Enter(context));
  const auto asked = DownloadGrant::Ask(std::move(place), request,
                                        [&context] { context.TryCancel(); });
  if (absl::IsUnimplemented(asked.status())) {
    return PassOn(context, request, write);
  }
  OPTFARM_RETURN_IF_ERROR(asked.status());
  DownloadGrant& grant = **asked;
  if (!grant.answer().url().empty()) {
    forwarder_.NoteSentOn();
    write(grant.answer());
    return grant.Finish();
  }
  OPTFARM_ASSIGN_OR_RETURN(BlobRange range,
                           RangeOf(request, grant.answer().total_bytes()));
  const absl::Status sent =
      SendGranted(context, grant, request.digest().sha256(), range, write);
  const absl::Status verdict = grant.Finish();
  if (sent.ok()) {
    if (verdict.ok()) ++served_;
    return verdict;
  }
  if (absl::IsCancelled(sent)) return sent;
  // Its message says why: the token was revoked, the leader is gone.
  if (absl::IsAborted(sent)) return verdict.ok() ? sent : verdict;
  LogWarning("a file that this server cannot read comes from the leader: ",
             sent.message());
  v1::DownloadRequest rest = request;
  rest.set_offset(range.offset);
  if (request.max_bytes() > 0) rest.set_max_bytes(range.left);
  return PassOn(context, rest, write);
}

absl::Status StandbyDownloads::SendGranted(grpc::ServerContext& context,
                                           DownloadGrant& grant,
                                           const std::string& sha256,
                                           BlobRange& range,
                                           const WritePiece& write) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransferWatch::Transfer> transfer,
      transfers_.Begin(
          {}, [&context] { context.TryCancel(); }, clock_.Now()));
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::BlobReader> blob,
                           source_->Open(storage::BlobId{sha256, range.total}));
  bool holds = true;
  const absl::Status sent =
      SendRange(*blob, range, [&](const v1::DownloadResponse& piece) {
        holds = grant.Holds();
        if (!holds || !write(piece)) return false;
        grant.NoteMoved(piece.data().size());
        transfer->Moved(piece.data().size());
        return true;
      });
  if (holds) return sent;
  return absl::AbortedError("the leader takes no notice of this download");
}

absl::Status StandbyDownloads::PassOn(grpc::ServerContext& context,
                                      const v1::DownloadRequest& request,
                                      const WritePiece& write) {
  OPTFARM_ASSIGN_OR_RETURN(const auto place, forwarder_.Enter(context));
  forwarder_.NoteSentOn();
  const auto stub = v1::ModelService::NewStub(place->channel());
  const auto stream = stub->Download(&place->context(), request);
  v1::DownloadResponse piece;
  while (stream->Read(&piece)) {
    if (write(piece)) continue;
    place->context().TryCancel();
    break;
  }
  return place->Outcome(stream->Finish());
}

}  // namespace optfarm::server
