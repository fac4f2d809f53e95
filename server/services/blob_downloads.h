// Blobs on their way out: who may have one, and its bytes, sent from here or by
// a server that stands by.

#ifndef OPTFARM_SERVER_SERVICES_BLOB_DOWNLOADS_H_
#define OPTFARM_SERVER_SERVICES_BLOB_DOWNLOADS_H_

#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "optfarm/v1/models.pb.h"
#include "server/access/call_door.h"
#include "server/services/leased_blobs.h"
#include "server/services/transfer_watch.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

inline constexpr char kDownload[] = "optfarm.v1.ModelService.Download";

// What is still to be sent of a blob. UNITS: bytes.
struct BlobRange {
  int64_t total = 0;
  int64_t offset = 0;
  int64_t left = 0;
};

// What the caller wants of a blob that has `total` bytes. ERRORS:
// InvalidArgument when that does not fit.
absl::StatusOr<BlobRange> RangeOf(const v1::DownloadRequest& request,
                                  int64_t total);

// Takes a piece on its way; false: the client has gone.
using WritePiece = std::function<bool(const v1::DownloadResponse&)>;

// Sends the range in pieces, at least one, and moves its beginning on.
// ERRORS: Cancelled when `write` says so; those of the reader.
absl::Status SendRange(storage::BlobReader& blob, BlobRange& range,
                       const WritePiece& write);

// THREADS: safe.
class BlobDownloads {
 public:
  // OWNERSHIP: all outlive it.
  BlobDownloads(const CallDoor& door, storage::BlobStore& blobs,
                storage::MetadataStore& store, TransferWatch& transfers,
                LeasedBlobs& leased, Clock& clock)
      : door_(door),
        blobs_(blobs),
        store_(store),
        transfers_(transfers),
        leased_(leased),
        clock_(clock) {}

  // ERRORS: those of ModelService.Download.
  absl::Status Send(Call& call, grpc::ServerContext& context,
                    const v1::DownloadRequest& request,
                    const WritePiece& write);

  // Lets another server send the bytes; see LeaderService.GrantDownload.
  // `read` waits until that has told how many more are sent: OutOfRange when
  // there are no more.
  absl::Status Grant(Call& call, grpc::ServerContext& context,
                     const v1::DownloadRequest& request,
                     const WritePiece& write,
                     const std::function<absl::StatusOr<int64_t>()>& read);

 private:
  // What was decided.
  struct Opened {
    std::unique_ptr<storage::BlobReader> blob;
    BlobRange range;
    // Where the caller gets it instead; empty: here.
    std::string url;
  };

  absl::StatusOr<Opened> Open(Call& call, const v1::DownloadRequest& request);
  // ERRORS: NotFound when the caller may not read the blob, as if there were
  // none; those of LeasedBlobs::MayRead.
  absl::Status MayRead(const Caller& caller, const std::string& sha256);

  const CallDoor& door_;
  storage::BlobStore& blobs_;
  storage::MetadataStore& store_;
  TransferWatch& transfers_;
  LeasedBlobs& leased_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_BLOB_DOWNLOADS_H_
