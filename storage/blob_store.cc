#include "storage/blob_store.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"

namespace optfarm::storage {

absl::Status NoSuchBlob(absl::string_view sha256) {
  return absl::NotFoundError(absl::StrCat(
      "there is no blob ", absl::CHexEscape(sha256.substr(0, 80)),
      " here; it was never uploaded or has been evicted: upload it again"));
}

absl::StatusOr<BlobId> PutBlob(BlobStore& store, absl::string_view bytes,
                               absl::Time now) {
  BlobId id{Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
  OPTFARM_ASSIGN_OR_RETURN(const bool present, store.Contains(id, now));
  if (present) return id;
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<BlobUpload> upload,
                           store.OpenUpload(id));
  OPTFARM_RETURN_IF_ERROR(upload->Append(0, bytes));
  OPTFARM_RETURN_IF_ERROR(upload->Finish(now));
  return id;
}

}  // namespace optfarm::storage
