// A SHA-256 that can be saved between two pieces of a stream and resumed by
// another process, and the MD5 that object stores name uploaded bytes by.

#ifndef OPTFARM_BASE_RESUMABLE_SHA256_H_
#define OPTFARM_BASE_RESUMABLE_SHA256_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm {

// THREADS: one object belongs to one thread at a time.
class ResumableSha256 {
 public:
  // The state between two blocks is small; within a block it holds bytes.
  static constexpr int64_t kBlockBytes = 64;

  ResumableSha256();
  ~ResumableSha256();
  ResumableSha256(const ResumableSha256& other);
  ResumableSha256& operator=(const ResumableSha256& other);

  void Update(absl::string_view bytes);
  // UNITS: bytes hashed so far.
  int64_t bytes() const { return bytes_; }

  // REQUIRES: bytes() is a multiple of kBlockBytes.
  std::string Save() const;
  // ERRORS: InvalidArgument for what Save does not write.
  static absl::StatusOr<ResumableSha256> Restore(absl::string_view saved);

  // The digest as 64 lower-case hex digits; more bytes may follow.
  std::string Digest() const;

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  int64_t bytes_ = 0;
};

// 32 lower-case hex digits. Finds damage, proves nothing about intent.
std::string Md5Hex(absl::string_view bytes);

}  // namespace optfarm

#endif  // OPTFARM_BASE_RESUMABLE_SHA256_H_
