#include "storage/blob_id.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"

namespace optfarm::storage {

absl::StatusOr<BlobId> BlobIdFromProto(const v1::Digest& digest) {
  if (!IsSha256Hex(digest.sha256())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "digest '", absl::CHexEscape(digest.sha256().substr(0, 80)),
        "' is not a SHA-256: give 64 lower-case hexadecimal digits"));
  }
  if (digest.size_bytes() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("blob ", digest.sha256(), " has the size ",
                     digest.size_bytes(), ": give its length in bytes"));
  }
  return BlobId{digest.sha256(), digest.size_bytes()};
}

v1::Digest ToProto(const BlobId& id) {
  v1::Digest digest;
  digest.set_sha256(id.sha256);
  digest.set_size_bytes(id.size_bytes);
  return digest;
}

}  // namespace optfarm::storage
