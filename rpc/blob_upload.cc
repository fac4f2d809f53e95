// The sending half of rpc/blob_transfer.h.

#include <fcntl.h>
#include <grpcpp/client_context.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "rpc/blob_transfer.h"
#include "rpc/status.h"

namespace optfarm::rpc {
namespace {

constexpr size_t kMaxDigestsInOneCall = 10000;

// Reads pieces of a source at any offset.
class SourceReader {
 public:
  static absl::StatusOr<SourceReader> Open(const UploadSource& source) {
    if (source.path.empty()) return SourceReader(&source, -1);
    const int fd = ::open(source.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoToStatus(errno, Doing(source));
    return SourceReader(&source, fd);
  }
  SourceReader(SourceReader&& other) noexcept
      : source_(other.source_), fd_(std::exchange(other.fd_, -1)) {}
  ~SourceReader() {
    if (fd_ >= 0) ::close(fd_);
  }

  // Replaces `*piece` by exactly `size` bytes at `offset`.
  absl::Status Read(int64_t offset, int64_t size, std::string* piece) {
    if (fd_ < 0) {
      piece->assign(source_->bytes.data() + offset, static_cast<size_t>(size));
      return absl::OkStatus();
    }
    piece->resize(static_cast<size_t>(size));
    for (int64_t done = 0; done < size;) {
      const ssize_t n =
          ::pread(fd_, piece->data() + done, static_cast<size_t>(size - done),
                  offset + done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoToStatus(errno, Doing(*source_));
      if (n == 0) {
        return absl::FailedPreconditionError(
            absl::StrCat(Doing(*source_), ": it became shorter than the ",
                         source_->digest.size_bytes(),
                         " bytes it had; do not change it "
                         "while it is being uploaded"));
      }
      done += n;
    }
    return absl::OkStatus();
  }

 private:
  SourceReader(const UploadSource* source, int fd) : source_(source), fd_(fd) {}
  static std::string Doing(const UploadSource& source) {
    return absl::StrCat("reading '", source.path, "' for upload");
  }

  const UploadSource* source_;
  int fd_;
};

class Uploader {
 public:
  // UNITS: bytes of all blobs, and of those sent before this one.
  Uploader(ModelStub* stub, const TransferOptions& options, int64_t total,
           int64_t sent)
      : stub_(stub), options_(options), total_(total), sent_(sent) {}

  absl::Status Upload(const UploadSource& source) {
    OPTFARM_ASSIGN_OR_RETURN(SourceReader reader, SourceReader::Open(source));
    absl::Status status =
        Retry(options_.retry, [&] { return OneStream(source, &reader); });
    if (absl::IsDataLoss(status)) status = ExplainDataLoss(source, status);
    return Annotate(
        status,
        absl::StrCat("uploading '",
                     source.path.empty() ? source.digest.sha256() : source.path,
                     "'"));
  }

 private:
  // One QueryUpload and one stream from the offset it names.
  Attempt OneStream(const UploadSource& source, SourceReader* reader) {
    grpc::ClientContext query_context;
    query_context.set_deadline(absl::ToChronoTime(
        absl::Now() + std::min(options_.stream_timeout, absl::Seconds(60))));
    v1::QueryUploadRequest query;
    *query.mutable_digest() = source.digest;
    v1::QueryUploadResponse state;
    const absl::Status queried =
        FromGrpc(stub_->QueryUpload(&query_context, query, &state));
    if (!queried.ok()) return {queried, false};
    if (state.complete()) return {absl::OkStatus(), true};
    const int64_t begin = state.committed_bytes();
    if (begin < 0 || begin > source.digest.size_bytes()) {
      return {absl::InternalError(
                  absl::StrCat("the server claims to hold ", begin, " of ",
                               source.digest.size_bytes(), " bytes")),
              false};
    }
    // What was sent before is progress only once the server has kept it.
    const bool progress = begin > std::exchange(committed_before_, begin);
    return {Stream(source, begin, reader), progress};
  }

  absl::Status Stream(const UploadSource& source, int64_t begin,
                      SourceReader* reader) {
    grpc::ClientContext context;
    context.set_deadline(
        absl::ToChronoTime(absl::Now() + options_.stream_timeout));
    v1::UploadResponse response;
    auto writer = stub_->Upload(&context, &response);
    v1::UploadRequest request;
    *request.mutable_digest() = source.digest;
    const int64_t size = source.digest.size_bytes();
    int64_t offset = begin;
    // An empty blob is one message without data.
    do {
      const int64_t piece = std::min(options_.chunk_bytes, size - offset);
      request.set_offset(offset);
      absl::Status read = reader->Read(offset, piece, request.mutable_data());
      if (options_.retry.cancelled != nullptr && options_.retry.cancelled()) {
        read = absl::CancelledError("cancelled by the caller");
      }
      if (!read.ok()) {
        context.TryCancel();
        writer->Finish();
        return read;
      }
      if (!writer->Write(request)) break;
      request.clear_digest();
      offset += piece;
      if (options_.progress) options_.progress(sent_ + offset, total_);
    } while (offset < size);
    writer->WritesDone();
    return FromGrpc(writer->Finish());
  }

  // The server got other bytes than promised: is it the file, or the way?
  absl::Status ExplainDataLoss(const UploadSource& source,
                               const absl::Status& status) {
    if (source.path.empty()) return status;
    OPTFARM_ASSIGN_OR_RETURN(const v1::Digest now, DigestOfFile(source.path));
    if (now.sha256() == source.digest.sha256()) return status;
    return absl::FailedPreconditionError(
        "the file changed while it was being uploaded; try again");
  }

  ModelStub* const stub_;
  const TransferOptions& options_;
  const int64_t total_;
  const int64_t sent_;
  int64_t committed_before_ = 0;
};

// Which of `digests` the server lacks, by SHA-256.
absl::StatusOr<absl::flat_hash_set<std::string>> FindMissing(
    ModelStub* stub, const std::vector<const v1::Digest*>& digests,
    const RetryOptions& retry) {
  absl::flat_hash_set<std::string> missing;
  for (size_t at = 0; at < digests.size(); at += kMaxDigestsInOneCall) {
    v1::FindMissingRequest request;
    const size_t end = std::min(at + kMaxDigestsInOneCall, digests.size());
    for (size_t i = at; i < end; ++i) *request.add_digests() = *digests[i];
    v1::FindMissingResponse response;
    OPTFARM_RETURN_IF_ERROR(Retry(retry, [&]() -> Attempt {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
      response.Clear();
      return {FromGrpc(stub->FindMissing(&context, request, &response)), false};
    }));
    for (const v1::Digest& digest : response.missing()) {
      missing.insert(digest.sha256());
    }
  }
  return missing;
}

}  // namespace

absl::StatusOr<v1::Digest> DigestOfFile(const std::string& path) {
  v1::Digest digest;
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  OPTFARM_ASSIGN_OR_RETURN(*digest.mutable_sha256(), Sha256OfFile(path));
  digest.set_size_bytes(static_cast<int64_t>(size));
  return digest;
}

v1::Digest DigestOfBytes(absl::string_view bytes) {
  v1::Digest digest;
  digest.set_sha256(Sha256Hex(bytes));
  digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
  return digest;
}

absl::Status CheckDigest(const v1::Digest& digest) {
  if (!IsSha256Hex(digest.sha256()) || digest.size_bytes() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "digest '", digest.sha256().substr(0, 80), "' of ", digest.size_bytes(),
        " bytes is not 64 lower-case hexadecimal digits with a size"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> UploadMissing(ModelStub* stub,
                                      absl::Span<const UploadSource> sources,
                                      const TransferOptions& options) {
  absl::flat_hash_map<std::string, const UploadSource*> distinct;
  std::vector<const v1::Digest*> digests;
  for (const UploadSource& source : sources) {
    OPTFARM_RETURN_IF_ERROR(CheckDigest(source.digest));
    if (distinct.emplace(source.digest.sha256(), &source).second) {
      digests.push_back(&source.digest);
    }
  }
  absl::flat_hash_set<std::string> missing;
  OPTFARM_ASSIGN_OR_RETURN(missing, FindMissing(stub, digests, options.retry));
  int64_t total = 0;
  for (const v1::Digest* digest : digests) {
    if (missing.contains(digest->sha256())) total += digest->size_bytes();
  }
  int64_t sent = 0;
  for (const v1::Digest* digest : digests) {
    if (!missing.contains(digest->sha256())) continue;
    Uploader uploader(stub, options, total, sent);
    OPTFARM_RETURN_IF_ERROR(uploader.Upload(*distinct[digest->sha256()]));
    sent += digest->size_bytes();
  }
  return total;
}

absl::StatusOr<v1::Digest> UploadFile(ModelStub* stub, const std::string& path,
                                      const TransferOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(const v1::Digest digest, DigestOfFile(path));
  const UploadSource source = {digest, path, {}};
  OPTFARM_RETURN_IF_ERROR(
      UploadMissing(stub, absl::MakeConstSpan(&source, 1), options).status());
  return digest;
}

absl::StatusOr<v1::Digest> UploadBytes(ModelStub* stub, absl::string_view bytes,
                                       const TransferOptions& options) {
  const UploadSource source = {DigestOfBytes(bytes), "", bytes};
  OPTFARM_RETURN_IF_ERROR(
      UploadMissing(stub, absl::MakeConstSpan(&source, 1), options).status());
  return source.digest;
}

}  // namespace optfarm::rpc
