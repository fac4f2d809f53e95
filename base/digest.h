// SHA-256, the name of everything Optfarm stores.

#ifndef OPTFARM_BASE_DIGEST_H_
#define OPTFARM_BASE_DIGEST_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm {

// Incremental SHA-256.
// THREADS: one object belongs to one thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::string_view bytes);
  // Returns the digest as 64 lower-case hex digits.
  // REQUIRES: called once, last.
  std::string Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Returns the SHA-256 of `bytes` as 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view bytes);

// Returns the SHA-256 of the file's bytes, read in pieces.
// ERRORS: NotFound, PermissionDenied or Unavailable naming the file.
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

// True for exactly 64 lower-case hex digits: the only strings that may ever
// become part of a blob's path.
bool IsSha256Hex(absl::string_view digest);

}  // namespace optfarm

#endif  // OPTFARM_BASE_DIGEST_H_
