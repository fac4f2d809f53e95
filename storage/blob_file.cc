#include "storage/blob_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr int64_t kHashPieceBytes = 1 << 20;

class FileBlobReader final : public BlobReader {
 public:
  FileBlobReader(std::unique_ptr<ReadFileHandle> file, BlobId id)
      : file_(std::move(file)), id_(std::move(id)) {}

  int64_t size_bytes() const override { return id_.size_bytes; }

  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    if (offset < 0 || offset > id_.size_bytes || max_bytes < 0) {
      return absl::OutOfRangeError(
          absl::StrCat("reading blob ", id_.sha256, " from byte ", offset,
                       ": it has ", id_.size_bytes, " bytes"));
    }
    const int64_t length = std::min(max_bytes, id_.size_bytes - offset);
    OPTFARM_ASSIGN_OR_RETURN(std::string bytes, file_->Read(offset, length));
    if (static_cast<int64_t>(bytes.size()) != length) {
      return absl::DataLossError(
          absl::StrCat("reading blob ", id_.sha256, ": its file ends at byte ",
                       offset + static_cast<int64_t>(bytes.size()), " of ",
                       id_.size_bytes, "; restore it or upload it again"));
    }
    return bytes;
  }

 private:
  const std::unique_ptr<ReadFileHandle> file_;
  const BlobId id_;
};

}  // namespace

std::string BlobFolder(absl::string_view root, absl::string_view sha256) {
  return JoinPath(root,
                  absl::StrCat(sha256.substr(0, 2), "/", sha256.substr(2, 2)));
}

absl::StatusOr<std::string> HashBlobFile(FileSystem& files,
                                         const std::string& path,
                                         int64_t size_bytes) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<ReadFileHandle> file,
                           files.OpenForRead(path));
  Sha256 hash;
  for (int64_t offset = 0; offset < size_bytes;) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string piece,
                             file->Read(offset, kHashPieceBytes));
    if (piece.empty()) break;
    hash.Update(piece);
    offset += static_cast<int64_t>(piece.size());
  }
  return hash.Finish();
}

absl::StatusOr<std::unique_ptr<BlobReader>> OpenBlobFile(
    FileSystem& files, const std::string& path, const BlobId& id) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<ReadFileHandle> file,
                           files.OpenForRead(path));
  return std::make_unique<FileBlobReader>(std::move(file), id);
}

}  // namespace optfarm::storage
