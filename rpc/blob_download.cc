// The receiving half of rpc/blob_transfer.h.

#include <fcntl.h>
#include <grpcpp/client_context.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "rpc/blob_transfer.h"
#include "rpc/status.h"

namespace optfarm::rpc {
namespace {

// The growing "PATH.part".
class PartFile {
 public:
  static absl::StatusOr<PartFile> Open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return ErrnoToStatus(errno, Doing(path));
    const off_t size = ::lseek(fd, 0, SEEK_END);
    return PartFile(path, fd, size < 0 ? 0 : size);
  }
  PartFile(PartFile&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        size_(other.size_) {}
  ~PartFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  // UNITS: bytes.
  int64_t size() const { return size_; }

  absl::Status Append(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), size_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoToStatus(errno, Doing(path_));
      size_ += n;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status Empty() {
    if (::ftruncate(fd_, 0) != 0) return ErrnoToStatus(errno, Doing(path_));
    size_ = 0;
    return absl::OkStatus();
  }

 private:
  PartFile(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  static std::string Doing(const std::string& path) {
    return absl::StrCat("writing '", path, "'");
  }

  std::string path_;
  int fd_;
  int64_t size_;
};

class Downloader {
 public:
  Downloader(ModelStub* stub, const v1::Digest& digest,
             const TransferOptions& options, bool wants_url)
      : stub_(stub),
        digest_(digest),
        options_(options),
        wants_url_(wants_url && options.urls != nullptr) {}

  // Fills `part` up to the blob's size.
  absl::Status Fill(PartFile* part) {
    if (part->size() > digest_.size_bytes()) {
      OPTFARM_RETURN_IF_ERROR(part->Empty());
    }
    return Retry(options_.retry, [&]() -> Attempt {
      const int64_t before = part->size();
      const absl::Status status = OneStream(part);
      return {status, part->size() > before};
    });
  }

 private:
  absl::Status OneStream(PartFile* part) {
    // Also asked for an empty rest: the server says whether it has the blob.
    grpc::ClientContext context;
    context.set_deadline(
        absl::ToChronoTime(absl::Now() + options_.stream_timeout));
    v1::DownloadRequest request;
    *request.mutable_digest() = digest_;
    request.set_offset(part->size());
    request.set_accepts_url(wants_url_ && options_.urls->WantsUrl());
    auto reader = stub_->Download(&context, request);
    v1::DownloadResponse response;
    std::string url;
    while (reader->Read(&response)) {
      if (!response.url().empty() && request.accepts_url()) {
        url = response.url();
        continue;
      }
      const absl::Status status = Take(response, part);
      if (!status.ok()) {
        context.TryCancel();
        reader->Finish();
        return status;
      }
    }
    OPTFARM_RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    if (!url.empty()) return FromUrl(url, part);
    return CheckWhole(*part);
  }

  // The rest from elsewhere; where that fails, from the server after all.
  absl::Status FromUrl(const std::string& url, PartFile* part) {
    absl::Status status = options_.urls->Fetch(
        url, part->size(),
        [&](absl::string_view bytes) { return Append(bytes, part); });
    if (status.ok()) status = CheckWhole(*part);
    if (status.ok() || absl::IsCancelled(status)) return status;
    wants_url_ = false;
    return OneStream(part);
  }

  absl::Status CheckWhole(const PartFile& part) const {
    if (part.size() == digest_.size_bytes()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("the server ended the transfer after ", part.size(),
                     " of ", digest_.size_bytes(), " bytes"));
  }

  absl::Status Take(const v1::DownloadResponse& response, PartFile* part) {
    const int64_t room = digest_.size_bytes() - part->size();
    if (response.offset() != part->size() ||
        static_cast<int64_t>(response.data().size()) > room) {
      return absl::DataLossError(absl::StrCat(
          "the server sent ", response.data().size(), " bytes at offset ",
          response.offset(), " where at most ", room, " at ", part->size(),
          " were expected"));
    }
    return Append(response.data(), part);
  }

  absl::Status Append(absl::string_view bytes, PartFile* part) {
    if (static_cast<int64_t>(bytes.size()) >
        digest_.size_bytes() - part->size()) {
      return absl::DataLossError("more bytes came than the blob has");
    }
    OPTFARM_RETURN_IF_ERROR(part->Append(bytes));
    if (options_.retry.cancelled != nullptr && options_.retry.cancelled()) {
      return absl::CancelledError("cancelled by the caller");
    }
    if (options_.progress) {
      options_.progress(part->size(), digest_.size_bytes());
    }
    return absl::OkStatus();
  }

  ModelStub* const stub_;
  const v1::Digest& digest_;
  const TransferOptions& options_;
  bool wants_url_;
};

}  // namespace

absl::Status DownloadBlob(ModelStub* stub, const v1::Digest& digest,
                          const std::string& path,
                          const TransferOptions& options) {
  OPTFARM_RETURN_IF_ERROR(CheckDigest(digest));
  const std::string part_path = absl::StrCat(path, ".part");
  const std::string doing =
      absl::StrCat("downloading ", digest.sha256().substr(0, 12), "...");
  // Twice: bytes left over from another day may be what is wrong.
  for (int pass = 0; pass < 2; ++pass) {
    {
      OPTFARM_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(part_path));
      OPTFARM_RETURN_IF_ERROR(Annotate(
          Downloader(stub, digest, options, pass == 0).Fill(&part), doing));
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(part_path));
    if (sha256 == digest.sha256()) {
      if (::rename(part_path.c_str(), path.c_str()) != 0) {
        return ErrnoToStatus(errno, absl::StrCat("writing '", path, "'"));
      }
      return absl::OkStatus();
    }
    OPTFARM_RETURN_IF_ERROR(RemoveAll(part_path));
  }
  return absl::DataLossError(
      absl::StrCat(doing, ": what the server sent does not have this SHA-256"));
}

}  // namespace optfarm::rpc
