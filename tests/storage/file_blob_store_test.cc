// The blob store keeps whole, right bytes or none, whatever the uploads and the
// disk do.

#include "storage/file_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/digest.h"
#include "base/files.h"
#include "tests/storage/faulty_file_system.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

class FileBlobStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(root_, MakeTemporaryFolder("blobs"));
    options_.root = root_;
    options_.files = &files_;
    options_.reserved_free_bytes = 0;
    Reopen();
  }
  void TearDown() override {
    store_.reset();
    EXPECT_THAT(RemoveAll(root_), IsOk());
  }
  void Reopen() {
    store_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, OpenFileBlobStore(options_));
  }
  static BlobId IdOf(absl::string_view bytes) {
    return BlobId{Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
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

TEST_F(FileBlobStoreTest, KeepsBlobsAcrossRestart) {
  ASSERT_THAT(PutBlob(*store_, "hello", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "", kNow), IsOk());
  Reopen();
  EXPECT_TRUE(Has("hello"));
  EXPECT_EQ(ReadBack("hello"), "hello");
  EXPECT_TRUE(Has(""));
  EXPECT_EQ(store_->Usage().blob_bytes, 5);
}

TEST_F(FileBlobStoreTest, UploadResumesAfterBreakAndRestart) {
  const BlobId id = IdOf("0123456789");
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
    ASSERT_THAT(upload->Append(0, "0123"), IsOk());
  }
  Reopen();
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 4);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
  EXPECT_EQ(upload->staged_bytes(), 4);
  // Two bytes come again; they are skipped.
  ASSERT_THAT(upload->Append(2, "23456789"), IsOk());
  ASSERT_THAT(upload->Finish(kNow), IsOk());
  EXPECT_EQ(ReadBack("0123456789"), "0123456789");
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 10);
  EXPECT_EQ(store_->Usage().staged_bytes, 0);
}

TEST_F(FileBlobStoreTest, UploadWithWrongDigestIsRefusedAndForgotten) {
  const BlobId id = IdOf("right");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
  ASSERT_THAT(upload->Append(0, "wrong"), IsOk());
  EXPECT_THAT(upload->Finish(kNow),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(id.sha256)));
  EXPECT_FALSE(Has("right"));
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 0);
  upload.reset();
  EXPECT_THAT(PutBlob(*store_, "right", kNow), IsOk());
}

TEST_F(FileBlobStoreTest, RefusesGapsAndTooManyBytes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(IdOf("12345")));
  EXPECT_THAT(upload->Append(1, "2"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(upload->Append(0, "123456"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(upload->Append(-1, "1"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(upload->Finish(kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition, _));
}

TEST_F(FileBlobStoreTest, NewerUploadTakesOver) {
  const BlobId id = IdOf("abcdef");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto older, store_->OpenUpload(id));
  ASSERT_THAT(older->Append(0, "abc"), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto newer, store_->OpenUpload(id));
  EXPECT_EQ(newer->staged_bytes(), 3);
  EXPECT_THAT(older->Append(3, "def"), StatusIs(absl::StatusCode::kAborted, _));
  older.reset();
  ASSERT_THAT(newer->Append(3, "def"), IsOk());
  EXPECT_THAT(newer->Finish(kNow), IsOk());
  EXPECT_TRUE(Has("abcdef"));
}

TEST_F(FileBlobStoreTest, FullDiskHarmsNothingElse) {
  ASSERT_THAT(PutBlob(*store_, "before", kNow), IsOk());
  for (const int64_t room : {0, 1, 4, 9}) {
    files_.room = room;
    EXPECT_THAT(
        PutBlob(*store_, "0123456789", kNow),
        StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("free space")))
        << room;
    EXPECT_EQ(store_->Usage().staged_bytes, 0) << room;
  }
  files_.room = 100;
  EXPECT_EQ(ReadBack("before"), "before");
  EXPECT_THAT(PutBlob(*store_, "0123456789", kNow), IsOk());
}

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

TEST_F(FileBlobStoreTest, SizeLimitsHoldBeforeAnythingIsWritten) {
  options_.max_blob_bytes = 8;
  options_.max_total_bytes = 10;
  Reopen();
  EXPECT_THAT(store_->OpenUpload(IdOf("123456789")),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("9 bytes")));
  ASSERT_THAT(PutBlob(*store_, "1234567", kNow), IsOk());
  EXPECT_THAT(PutBlob(*store_, "abcd", kNow),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("--max_store_bytes")));
  EXPECT_THAT(PutBlob(*store_, "abc", kNow), IsOk());
  EXPECT_EQ(store_->Usage().staged_bytes, 0);
}

TEST_F(FileBlobStoreTest, TwoUploadsCannotBothTakeTheLastRoom) {
  options_.max_total_bytes = 10;
  Reopen();
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto first, store_->OpenUpload(IdOf("123456")));
  EXPECT_THAT(store_->OpenUpload(IdOf("abcdef")),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  first.reset();
  EXPECT_THAT(store_->OpenUpload(IdOf("abcdef")), IsOk());
}

TEST_F(FileBlobStoreTest, KeepsDiskFreeForTheDatabase) {
  options_.reserved_free_bytes = 1000;
  files_.reported_free_bytes = 1004;
  Reopen();
  EXPECT_THAT(PutBlob(*store_, "12345", kNow),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  EXPECT_THAT(PutBlob(*store_, "1234", kNow), IsOk());
}

TEST_F(FileBlobStoreTest, EvictsLeastRecentlyUsedButNeverKeptOnes) {
  ASSERT_THAT(PutBlob(*store_, "old", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "kept", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "newer", kNow + absl::Minutes(1)), IsOk());
  ASSERT_THAT(PutBlob(*store_, "new", kNow + absl::Hours(2)), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      int64_t freed,
      store_->Evict({IdOf("kept").sha256}, kNow + absl::Hours(1), 1));
  EXPECT_EQ(freed, 3);
  EXPECT_FALSE(Has("old"));
  EXPECT_TRUE(Has("newer"));
  // Asking for it has made it recently used only as far as kNow.
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      freed, store_->Evict({IdOf("kept").sha256}, kNow + absl::Hours(1), 1000));
  EXPECT_EQ(freed, 5);
  EXPECT_TRUE(Has("kept"));
  EXPECT_TRUE(Has("new"));
}

TEST_F(FileBlobStoreTest, ReaderOutlivesEviction) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store_->OpenBlob(IdOf("bytes").sha256));
  ASSERT_THAT(store_->Evict({}, kNow + absl::Hours(1), 100), IsOk());
  EXPECT_EQ(reader->Read(1, 3).value_or(""), "yte");
  EXPECT_THAT(reader->Read(6, 1), StatusIs(absl::StatusCode::kOutOfRange, _));
  EXPECT_THAT(store_->OpenBlob(IdOf("bytes").sha256),
              StatusIs(absl::StatusCode::kNotFound, _));
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

TEST_F(FileBlobStoreTest, ForgetsStaleUploadsOnly) {
  const BlobId id = IdOf("0123456789");
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
    ASSERT_THAT(upload->Append(0, "01"), IsOk());
    // Still open: not forgotten however old.
    ASSERT_THAT(store_->ForgetUploads(absl::InfiniteFuture()), IsOk());
    EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 2);
  }
  ASSERT_THAT(store_->ForgetUploads(kNow), IsOk());
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 2);
  ASSERT_THAT(store_->ForgetUploads(absl::InfiniteFuture()), IsOk());
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 0);
}

TEST_F(FileBlobStoreTest, WrongSizeOfKnownBlobIsAnError) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  EXPECT_THAT(store_->Contains(BlobId{IdOf("bytes").sha256, 6}, kNow),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
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
