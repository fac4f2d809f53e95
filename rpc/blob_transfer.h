// Blobs to and from the server: in pieces, checked by SHA-256, and going on
// where a broken connection left off.

#ifndef OPTFARM_RPC_BLOB_TRANSFER_H_
#define OPTFARM_RPC_BLOB_TRANSFER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "rpc/retry.h"

namespace optfarm::rpc {

using ModelStub = v1::ModelService::StubInterface;

// UNITS: bytes moved so far and to be moved in all.
using TransferProgress = std::function<void(int64_t done, int64_t total)>;

// Takes the next bytes; an error ends the transfer and is its error.
using TakeBytes = std::function<absl::Status(absl::string_view)>;

// Where bytes may come from beside the server: an address that it gives.
// THREADS: safe.
class UrlSource {
 public:
  virtual ~UrlSource() = default;
  // Whether an address is of use now.
  virtual bool WantsUrl() = 0;
  // Hands on what is there from `offset` to the end.
  // ERRORS: Unavailable when it is not to be had; those of `take`.
  virtual absl::Status Fetch(const std::string& url, int64_t offset,
                             const TakeBytes& take) = 0;
};

struct TransferOptions {
  RetryOptions retry;
  // Longest time one stream may take; a longer transfer goes on in the next.
  absl::Duration stream_timeout = absl::Minutes(5);
  // UNITS: bytes in one message, at most 4 MiB.
  int64_t chunk_bytes = 1 << 20;
  // Called from the transferring thread; may be null.
  TransferProgress progress;
  // For downloads; null: all bytes come from the server. What it cannot fetch
  // comes from there too.
  std::shared_ptr<UrlSource> urls;
};

// Bytes that are to be on the server: a file, or a string the caller keeps.
struct UploadSource {
  // What the bytes must be. A file whose bytes changed since is refused.
  v1::Digest digest;
  // The file; empty: `bytes`.
  std::string path;
  // OWNERSHIP: must outlive the call.
  absl::string_view bytes;
};

// Returns the digest of a file, read in pieces. ERRORS: as Sha256OfFile.
absl::StatusOr<v1::Digest> DigestOfFile(const std::string& path);

v1::Digest DigestOfBytes(absl::string_view bytes);

// ERRORS: InvalidArgument unless the digest is 64 lower-case hexadecimal
// digits with a size that is not negative.
absl::Status CheckDigest(const v1::Digest& digest);

// Makes sure that the server holds all of `sources`: asks which are missing,
// and uploads those. Returns the bytes that had to be sent.
// ERRORS: the server's, after retries (ResourceExhausted: too large, or its
// disk is full); those of reading a file; FailedPrecondition when a file is
// not what its digest says.
absl::StatusOr<int64_t> UploadMissing(ModelStub* stub,
                                      absl::Span<const UploadSource> sources,
                                      const TransferOptions& options = {});

// The same for one file or string; returns its digest.
absl::StatusOr<v1::Digest> UploadFile(ModelStub* stub, const std::string& path,
                                      const TransferOptions& options = {});
absl::StatusOr<v1::Digest> UploadBytes(ModelStub* stub, absl::string_view bytes,
                                       const TransferOptions& options = {});

// Writes the blob to `path` and checks it. The bytes gather in "`path`.part",
// which is kept when the transfer fails half-way: the next call goes on there.
// No more than digest.size_bytes are ever written.
// ERRORS: the server's, after retries (NotFound: it does not hold the blob);
// those of writing; DataLoss when what came is twice not what was promised.
absl::Status DownloadBlob(ModelStub* stub, const v1::Digest& digest,
                          const std::string& path,
                          const TransferOptions& options = {});

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_BLOB_TRANSFER_H_
