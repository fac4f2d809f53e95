#include "storage/blob_source.h"

#include <utility>

#include "base/files.h"
#include "storage/blob_file.h"

namespace optfarm::storage {
namespace {

class FileBlobSource final : public BlobSource {
 public:
  FileBlobSource(std::string root, FileSystem* files)
      : root_(std::move(root)), files_(*files) {}

  absl::StatusOr<std::unique_ptr<BlobReader>> Open(const BlobId& id) override {
    return OpenBlobFile(files_,
                        JoinPath(BlobFolder(root_, id.sha256), id.sha256), id);
  }

 private:
  const std::string root_;
  FileSystem& files_;
};

}  // namespace

std::unique_ptr<BlobSource> MakeFileBlobSource(std::string root,
                                               FileSystem* files) {
  return std::make_unique<FileBlobSource>(std::move(root), files);
}

}  // namespace optfarm::storage
