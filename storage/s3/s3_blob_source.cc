#include "storage/s3/s3_blob_source.h"

#include "storage/s3/s3_reader.h"

namespace optfarm::storage {
namespace {

class S3BlobSource final : public BlobSource {
 public:
  S3BlobSource(const S3ClientOptions& options, int64_t read_ahead_bytes)
      : client_(options), read_ahead_bytes_(read_ahead_bytes) {}

  absl::StatusOr<std::unique_ptr<BlobReader>> Open(const BlobId& id) override {
    return MakeS3Reader(client_, id, read_ahead_bytes_, [] {});
  }

 private:
  S3Client client_;
  const int64_t read_ahead_bytes_;
};

}  // namespace

std::unique_ptr<BlobSource> MakeS3BlobSource(const S3ClientOptions& options,
                                             int64_t read_ahead_bytes) {
  return std::make_unique<S3BlobSource>(options, read_ahead_bytes);
}

}  // namespace optfarm::storage
