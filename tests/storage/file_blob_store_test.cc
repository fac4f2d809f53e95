// The blob store in a folder: the suite of all stores, and what only files can
// do.

#include "storage/file_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "tests/storage/blob_store_suite.h"
#include "tests/storage/faulty_file_system.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

class FolderEngine final : public BlobStoreEngine {
 public:
  explicit FolderEngine(std::string root) : folder_(std::move(root)) {}

  absl::StatusOr<std::unique_ptr<BlobStore>> Open(
      const BlobStoreLimits& limits) override {
    FileBlobStoreOptions options;
    options.root = folder_.path();
    options.files = &files;
    options.max_blob_bytes = limits.max_blob_bytes;
    options.max_total_bytes = limits.max_total_bytes;
    options.reserved_free_bytes = limits.reserved_free_bytes;
    return OpenFileBlobStore(options);
  }
  std::unique_ptr<BlobSource> Source() override {
    return MakeFileBlobSource(folder_.path(), &files);
  }

 private:
  const ScopedFolder folder_;
};

absl::StatusOr<std::unique_ptr<BlobStoreEngine>> MakeFolderEngine() {
  OPTFARM_ASSIGN_OR_RETURN(std::string root, MakeTemporaryFolder("blobs"));
  return std::make_unique<FolderEngine>(std::move(root));
}

INSTANTIATE_TEST_SUITE_P(Folder, BlobStoreSuite,
                         ::testing::Values(NamedEngine{"Folder",
                                                       MakeFolderEngine}),
                         [](const auto& engine) { return engine.param.name; });

class FileBlobStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(root_, MakeTemporaryFolder("blobs"));
    options_.root = root_;
    options_.files = &files_;
    options_.reserved_free_bytes = 0;
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, OpenFileBlobStore(options_));
  }
  void TearDown() override {
    store_.reset();
    EXPECT_THAT(RemoveAll(root_), IsOk());
  }
  bool Has(absl::string_view bytes) {
    return store_->Contains(IdOf(bytes), kNow).value_or(false);
  }
  std::string ReadBack(absl::string_view bytes) {
    const auto reader = store_->OpenBlob(IdOf(bytes).sha256);
    if (!reader.ok()) return reader.status().ToString();
    return (*reader)->Read(0, (*reader)->size_bytes()).value_or("unreadable");
  }

  std::string root_;
  FaultyFileSystem files_;
  FileBlobStoreOptions options_;
  std::unique_ptr<BlobStore> store_;
};

TEST_F(FileBlobStoreTest, FailingSyncOrRenameNeverAcknowledges) {
  for (bool* fault : {&files_.fail_file_sync, &files_.fail_folder_sync,
                      &files_.fail_rename}) {
    *fault = true;
    EXPECT_FALSE(PutBlob(*store_, "bytes", kNow).ok());
    EXPECT_FALSE(Has("bytes"));
    *fault = false;
  }
  EXPECT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  EXPECT_EQ(ReadBack("bytes"), "bytes");
}

TEST_F(FileBlobStoreTest, ReportsShortenedFileInsteadOfSendingIt) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  const std::string sha256 = IdOf("bytes").sha256;
  ASSERT_THAT(WriteFileAtomically(
                  JoinPath(root_, sha256.substr(0, 2) + "/" +
                                      sha256.substr(2, 2) + "/" + sha256),
                  "byt"),
              IsOk());
  EXPECT_THAT(ReadBack("bytes"), HasSubstr("unreadable"));
}

TEST(BlobIdTest, RefusesDigestsThatCouldBecomePaths) {
  v1::Digest digest;
  for (const std::string& bad :
       {std::string(), std::string("../../etc/passwd"), std::string(64, 'G'),
        std::string(63, 'a'), std::string(64, 'A')}) {
    digest.set_sha256(bad);
    EXPECT_THAT(BlobIdFromProto(digest),
                StatusIs(absl::StatusCode::kInvalidArgument, _))
        << bad;
  }
  digest.set_sha256(std::string(64, 'a'));
  EXPECT_THAT(BlobIdFromProto(digest), IsOk());
  digest.set_size_bytes(-1);
  EXPECT_THAT(BlobIdFromProto(digest),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

}  // namespace
}  // namespace optfarm::storage
