// The blob store in a bucket: the suite of all stores against a real S3 server,
// and what only buckets can do.

#include "storage/s3/s3_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "storage/s3/s3_staging.h"
#include "tests/storage/blob_store_suite.h"
#include "tests/storage/s3/s3_fixture.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::testing::AllOf;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(S3, BlobStoreSuite,
                         ::testing::Values(NamedEngine{"S3", MakeS3Engine}),
                         [](const auto& engine) { return engine.param.name; });

class S3BlobStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto server = testing::S3Server::Shared();
    if (absl::IsFailedPrecondition(server.status())) {
      GTEST_SKIP() << server.status().message();
    }
    OPTFARM_ASSERT_OK(server.status());
    server_ = *server;
    engine_ = std::make_unique<S3Engine>(*server_);
    client_ = std::make_unique<S3Client>(engine_->options.client);
    Reopen();
  }
  void Reopen() {
    store_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, engine_->Open({}));
  }
  std::vector<S3OpenUpload> OpenUploads() {
    const auto page = client_->ListUploads("", "", "");
    EXPECT_THAT(page, IsOk());
    return page.ok() ? page->uploads : std::vector<S3OpenUpload>();
  }
  std::string IndexPath() const {
    return JoinPath(engine_->options.folder, "index.db");
  }

  testing::S3Server* server_ = nullptr;
  std::unique_ptr<S3Engine> engine_;
  // Beside the store.
  std::unique_ptr<S3Client> client_;
  std::unique_ptr<BlobStore> store_;
};

TEST_F(S3BlobStoreTest, KeysAreWhatTheDocumentationSays) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const BlobId id,
                               PutBlob(*store_, "bytes", kNow));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const S3ObjectPage page, client_->List("", ""));
  ASSERT_THAT(page.objects, SizeIs(1));
  EXPECT_EQ(page.objects[0].key,
            "blobs/" + id.sha256.substr(0, 2) + "/" + id.sha256);
  EXPECT_EQ(page.objects[0].size_bytes, 5);
}

TEST_F(S3BlobStoreTest, LostOrDamagedIndexIsMadeFromTheBucket) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  for (const bool damaged : {false, true}) {
    store_.reset();
    ASSERT_THAT(RemoveAll(IndexPath()), IsOk());
    ASSERT_THAT(RemoveAll(IndexPath() + "-wal"), IsOk());
    if (damaged) {
      ASSERT_THAT(WriteFileAtomically(IndexPath(), std::string(8192, 'x')),
                  IsOk());
    }
    Reopen();
    EXPECT_TRUE(store_->Contains(IdOf("bytes"), kNow).value_or(false));
    EXPECT_EQ(store_->Usage().blob_bytes, 5);
  }
}

TEST_F(S3BlobStoreTest, IndexOfAnotherBucketIsNotUsed) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  engine_->options.client.transport.location.prefix = NewPrefix() + "/";
  Reopen();
  EXPECT_FALSE(store_->Contains(IdOf("bytes"), kNow).value_or(true));
}

TEST_F(S3BlobStoreTest, ReaderGoesOnAndItsBlobGoesAfterIt) {
  const std::string bytes = VariedBytes(1 << 20);
  ASSERT_THAT(PutBlob(*store_, bytes, kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store_->OpenBlob(IdOf(bytes).sha256));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Eviction evicted,
                               store_->Evict({}, kNow + absl::Hours(1), 1));
  EXPECT_EQ(evicted.bytes, 1 << 20);
  EXPECT_FALSE(store_->Contains(IdOf(bytes), kNow).value_or(true));
  EXPECT_TRUE(reader->Read(0, 1 << 20).value_or("") == bytes);
  const std::string key = S3BlobKey(IdOf(bytes).sha256);
  EXPECT_THAT(client_->SizeOf(key), IsOk());
  reader.reset();
  EXPECT_THAT(client_->SizeOf(key), StatusIs(absl::StatusCode::kNotFound, _));
}

TEST_F(S3BlobStoreTest, UploadBringsBackABlobThatIsStillRead) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store_->OpenBlob(IdOf("bytes").sha256));
  ASSERT_THAT(store_->Evict({}, kNow + absl::Hours(1), 1), IsOk());
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  reader.reset();
  EXPECT_EQ(client_->SizeOf(S3BlobKey(IdOf("bytes").sha256)).value_or(-1), 5);
}

TEST_F(S3BlobStoreTest, BlobThatVanishedFromTheBucketIsAPlainError) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  ASSERT_THAT(client_->Delete(S3BlobKey(IdOf("bytes").sha256)), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store_->OpenBlob(IdOf("bytes").sha256));
  EXPECT_THAT(reader->Read(0, 5), StatusIs(absl::StatusCode::kNotFound, _));
}

TEST_F(S3BlobStoreTest, ObjectOfAnotherSizeIsNotSent) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  ASSERT_THAT(client_->Put(S3BlobKey(IdOf("bytes").sha256), "other bytes"),
              IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store_->OpenBlob(IdOf("bytes").sha256));
  EXPECT_THAT(reader->Read(0, 5), StatusIs(absl::StatusCode::kDataLoss, _));
}

TEST_F(S3BlobStoreTest, ForgettingUploadsLeavesNoPartsInTheBucket) {
  const std::string bytes = VariedBytes(6 << 20);
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(IdOf(bytes)));
    ASSERT_THAT(upload->Append(0, bytes), IsOk());
    EXPECT_THAT(OpenUploads(), SizeIs(1));
  }
  ASSERT_THAT(store_->ForgetUploads(kNow), IsOk());
  EXPECT_THAT(OpenUploads(), SizeIs(1));
  EXPECT_EQ(store_->CommittedBytes(IdOf(bytes)).value_or(-1), 6 << 20);
  ASSERT_THAT(store_->ForgetUploads(absl::InfiniteFuture()), IsOk());
  EXPECT_THAT(OpenUploads(), IsEmpty());
  EXPECT_EQ(store_->CommittedBytes(IdOf(bytes)).value_or(-1), 0);
}

TEST_F(S3BlobStoreTest, UploadWhosePartsTheStoreDroppedBeginsAgain) {
  const std::string bytes = VariedBytes(6 << 20);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(IdOf(bytes)));
  ASSERT_THAT(upload->Append(0, bytes), IsOk());
  const auto open = OpenUploads();
  ASSERT_THAT(open, SizeIs(1));
  ASSERT_THAT(client_->AbortUpload(open[0].key, open[0].upload_id), IsOk());
  EXPECT_THAT(upload->Finish(kNow), StatusIs(absl::StatusCode::kAborted,
                                             HasSubstr("begin it again")));
  EXPECT_THAT(PutBlob(*store_, bytes, kNow), IsOk());
}

// As when a server ends between the last call and its record.
TEST_F(S3BlobStoreTest, UploadThatWasCompletedUnseenIsFinished) {
  const std::string bytes = VariedBytes(10 << 20);
  const BlobId id = IdOf(bytes);
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
    ASSERT_THAT(upload->Append(0, bytes), IsOk());
  }
  const auto open = OpenUploads();
  ASSERT_THAT(open, SizeIs(1));
  const std::string key = S3BlobKey(id.sha256);
  std::vector<std::string> etags;
  for (const int number : {1, 2}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::string etag,
        client_->PutPart(key, open[0].upload_id, number,
                         absl::string_view(bytes).substr(
                             static_cast<size_t>((number - 1) * kPartBytes),
                             static_cast<size_t>(kPartBytes))));
    etags.push_back(etag);
  }
  ASSERT_THAT(client_->CompleteUpload(key, open[0].upload_id, etags), IsOk());
  Reopen();
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
  EXPECT_EQ(upload->staged_bytes(), id.size_bytes);
  EXPECT_THAT(upload->Finish(kNow), IsOk());
  EXPECT_TRUE(store_->Contains(id, kNow).value_or(false));
}

TEST_F(S3BlobStoreTest, RefusalsSayWhatToDo) {
  S3BlobStoreOptions options = engine_->options;
  options.client.transport.credentials.secret_key = "not-the-secret";
  EXPECT_THAT(OpenS3BlobStore(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("check the keys"),
                             HasSubstr("--s3_region=us-east-1"),
                             Not(HasSubstr("not-the-secret")))));
  options = engine_->options;
  options.client.transport.location.region = "mars-1";
  EXPECT_THAT(OpenS3BlobStore(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("--s3_region=mars-1")));
  options = engine_->options;
  options.client.transport.location.bucket = "no-such-bucket";
  EXPECT_THAT(OpenS3BlobStore(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("make the bucket first")));
  options = engine_->options;
  options.client.transport.location.endpoint = "http://127.0.0.1:9";
  EXPECT_THAT(OpenS3BlobStore(options),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("http://127.0.0.1:9")));
}

}  // namespace
}  // namespace optfarm::storage
