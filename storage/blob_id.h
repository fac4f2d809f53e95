// BlobId: the checked form of optfarm.v1.Digest. A BlobId always holds a real
// SHA-256 in hex, so it may become part of a path; a Digest from outside may
// not.

#ifndef OPTFARM_STORAGE_BLOB_ID_H_
#define OPTFARM_STORAGE_BLOB_ID_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "optfarm/v1/blobs.pb.h"

namespace optfarm::storage {

struct BlobId {
  // 64 lower-case hex digits.
  std::string sha256;
  // UNITS: bytes; >= 0.
  int64_t size_bytes = 0;
  // Whose upload it is, safe in file names; uploads of different ones share no
  // bytes until they are whole, so that nobody finishes what others began.
  std::string uploader = {};

  friend bool operator==(const BlobId&, const BlobId&) = default;
};

// Checks a digest from outside. ERRORS: InvalidArgument naming the value.
absl::StatusOr<BlobId> BlobIdFromProto(const v1::Digest& digest);

v1::Digest ToProto(const BlobId& id);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_BLOB_ID_H_
