// Stores in the bucket of the program's S3 server, each test below a prefix of
// its own.

#ifndef OPTFARM_TESTS_STORAGE_S3_S3_FIXTURE_H_
#define OPTFARM_TESTS_STORAGE_S3_S3_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "storage/s3/s3_blob_source.h"
#include "storage/s3/s3_blob_store.h"
#include "tests/storage/blob_store_engine.h"
#include "tests/support/s3_server.h"
#include "tests/support/test_data.h"

namespace optfarm::storage {

// The least that S3 takes.
inline constexpr int64_t kPartBytes = int64_t{5} << 20;

// Retries that tests do not wait for.
inline S3ClientOptions FastClient(const testing::S3Server& server,
                                  const std::string& prefix,
                                  const std::string& endpoint) {
  S3ClientOptions options;
  options.transport.location =
      ParseS3Location(
          absl::StrCat("s3://", testing::S3Server::kBucket, "/", prefix),
          endpoint, server.region(), /*path_style=*/true)
          .value();
  options.transport.credentials = {server.access_key(), server.secret_key(),
                                   ""};
  options.transport.stall_timeout = absl::Seconds(20);
  options.max_attempts = 4;
  options.first_pause = absl::Milliseconds(1);
  options.longest_pause = absl::Milliseconds(10);
  return options;
}

inline std::string NewPrefix() {
  static int number = 0;
  return absl::StrCat("test-", ++number);
}

class S3Engine final : public BlobStoreEngine {
 public:
  // `endpoint`: of a proxy before the server; empty: the server's own.
  S3Engine(const testing::S3Server& server, const std::string& endpoint = "")
      : folder_(testing::FreshFolder()) {
    options.client = FastClient(
        server, NewPrefix(), endpoint.empty() ? server.endpoint() : endpoint);
    options.folder = folder_;
    options.files = &files;
    options.part_bytes = kPartBytes;
    options.read_ahead_bytes = 300'000;
  }

  absl::StatusOr<std::unique_ptr<BlobStore>> Open(
      const BlobStoreLimits& limits) override {
    options.max_blob_bytes = limits.max_blob_bytes;
    options.max_total_bytes = limits.max_total_bytes;
    options.reserved_free_bytes = limits.reserved_free_bytes;
    return OpenS3BlobStore(options);
  }
  std::unique_ptr<BlobSource> Source() override {
    return MakeS3BlobSource(options.client, options.read_ahead_bytes);
  }

  S3BlobStoreOptions options;

 private:
  const std::string folder_;
};

inline absl::StatusOr<std::unique_ptr<BlobStoreEngine>> MakeS3Engine() {
  OPTFARM_ASSIGN_OR_RETURN(testing::S3Server * server,
                           testing::S3Server::Shared());
  return std::make_unique<S3Engine>(*server);
}

}  // namespace optfarm::storage

#endif  // OPTFARM_TESTS_STORAGE_S3_S3_FIXTURE_H_
