#include "storage/s3/s3_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "storage/s3/s3_staging.h"

namespace optfarm::storage {
namespace {

// Between two looks for a key that must be there.
constexpr absl::Duration kFirstPause = absl::Milliseconds(10);
constexpr absl::Duration kLastPause = absl::Milliseconds(160);

class S3Reader final : public BlobReader {
 public:
  S3Reader(S3Client& client, BlobId id, int64_t read_ahead_bytes,
           std::function<void()> closed)
      : client_(client),
        id_(std::move(id)),
        read_ahead_bytes_(read_ahead_bytes),
        closed_(std::move(closed)) {}
  ~S3Reader() override { closed_(); }

  int64_t size_bytes() const override { return id_.size_bytes; }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override;

 private:
  // No key is deleted while it is read. Where it is written again meanwhile,
  // some stores say for a moment that it is not there.
  absl::StatusOr<std::string> Fetch(int64_t offset, int64_t length) {
    absl::Duration pause = kFirstPause;
    while (true) {
      absl::StatusOr<std::string> bytes =
          client_.Get(S3BlobKey(id_.sha256), offset, length, id_.size_bytes);
      if (!absl::IsNotFound(bytes.status()) || pause > kLastPause) return bytes;
      absl::SleepFor(pause);
      pause *= 2;
    }
  }

  S3Client& client_;
  const BlobId id_;
  const int64_t read_ahead_bytes_;
  const std::function<void()> closed_;
  absl::Mutex mutex_;
  // The piece fetched last, and where it begins.
  std::string piece_ ABSL_GUARDED_BY(mutex_);
  int64_t piece_begin_ ABSL_GUARDED_BY(mutex_) = 0;
  // Where the last read ended: one that begins there reads on.
  int64_t last_end_ ABSL_GUARDED_BY(mutex_) = -1;
};

absl::StatusOr<std::string> S3Reader::Read(int64_t offset, int64_t max_bytes) {
  if (offset < 0 || offset > id_.size_bytes || max_bytes < 0) {
    return absl::OutOfRangeError(
        absl::StrCat("reading blob ", id_.sha256, " from byte ", offset,
                     ": it has ", id_.size_bytes, " bytes"));
  }
  const int64_t length = std::min(max_bytes, id_.size_bytes - offset);
  if (length == 0) return std::string();
  absl::MutexLock lock(&mutex_);
  const int64_t piece_end = piece_begin_ + static_cast<int64_t>(piece_.size());
  if (offset < piece_begin_ || offset + length > piece_end) {
    const bool reads_on = offset == last_end_;
    const int64_t wanted =
        std::min(id_.size_bytes - offset,
                 reads_on ? std::max(length, read_ahead_bytes_) : length);
    OPTFARM_ASSIGN_OR_RETURN(piece_, Fetch(offset, wanted));
    piece_begin_ = offset;
  }
  last_end_ = offset + length;
  std::string bytes = piece_.substr(static_cast<size_t>(offset - piece_begin_),
                                    static_cast<size_t>(length));
  // A caller that reads the whole does not come back for the last piece.
  if (last_end_ == id_.size_bytes) piece_ = std::string();
  return bytes;
}

}  // namespace

std::unique_ptr<BlobReader> MakeS3Reader(S3Client& client, const BlobId& id,
                                         int64_t read_ahead_bytes,
                                         std::function<void()> closed) {
  return std::make_unique<S3Reader>(client, id, read_ahead_bytes,
                                    std::move(closed));
}

}  // namespace optfarm::storage
