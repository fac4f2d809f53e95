// What the tests of blob stores share: a kind of store in a place of one test,
// and bytes to put there.

#ifndef OPTFARM_TESTS_STORAGE_BLOB_STORE_ENGINE_H_
#define OPTFARM_TESTS_STORAGE_BLOB_STORE_ENGINE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "base/digest.h"
#include "storage/blob_source.h"
#include "storage/blob_store.h"
#include "tests/storage/faulty_file_system.h"
#include "tests/storage/sample_time.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

struct BlobStoreLimits {
  int64_t max_blob_bytes = int64_t{4} << 30;
  int64_t max_total_bytes = std::numeric_limits<int64_t>::max();
  int64_t reserved_free_bytes = 0;
};

// One kind of store in a place of one test.
class BlobStoreEngine {
 public:
  virtual ~BlobStoreEngine() = default;
  // Opens the store at that place, with what earlier ones left there.
  virtual absl::StatusOr<std::unique_ptr<BlobStore>> Open(
      const BlobStoreLimits& limits) = 0;
  // What another server reads there.
  virtual std::unique_ptr<BlobSource> Source() = 0;

  // The local disk of the store.
  FaultyFileSystem files;
};

// Makes an engine. ERRORS: FailedPrecondition when there is none here.
using MakeEngine =
    std::function<absl::StatusOr<std::unique_ptr<BlobStoreEngine>>()>;

struct NamedEngine {
  std::string name;
  MakeEngine make;
};

inline BlobId IdOf(absl::string_view bytes) {
  return BlobId{Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
}

// Bytes that no piece of them repeats.
inline std::string VariedBytes(size_t size) {
  std::string bytes(size, 0);
  uint64_t state = size + 1;
  for (char& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

}  // namespace optfarm::storage

#endif  // OPTFARM_TESTS_STORAGE_BLOB_STORE_ENGINE_H_
