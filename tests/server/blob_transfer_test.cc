// Blobs over the wire: breaks, wrong digests, limits, stalled clients.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

class BlobTransferTest : public ServerFixture {
 protected:
  static v1::Digest DigestOf(const std::string& bytes) {
    return rpc::DigestOfBytes(bytes);
  }
  // One stream with one message; ends it properly or breaks it.
  absl::Status Stream(const v1::Digest& digest, int64_t offset,
                      const std::string& data) {
    Context context;
    v1::UploadResponse response;
    auto writer = models_->Upload(&context, &response);
    v1::UploadRequest request;
    *request.mutable_digest() = digest;
    request.set_offset(offset);
    request.set_data(data);
    writer->Write(request);
    writer->WritesDone();
    return rpc::FromGrpc(writer->Finish());
  }
  int64_t Committed(const v1::Digest& digest) {
    Context context;
    v1::QueryUploadRequest request;
    *request.mutable_digest() = digest;
    v1::QueryUploadResponse response;
    EXPECT_TRUE(models_->QueryUpload(&context, request, &response).ok());
    return response.committed_bytes();
  }
  absl::StatusOr<std::string> Download(const v1::Digest& digest,
                                       int64_t offset = 0, int64_t most = 0) {
    Context context;
    v1::DownloadRequest request;
    *request.mutable_digest() = digest;
    request.set_offset(offset);
    request.set_max_bytes(most);
    auto reader = models_->Download(&context, request);
    std::string bytes;
    v1::DownloadResponse response;
    while (reader->Read(&response)) bytes += response.data();
    const absl::Status status = rpc::FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }
};

TEST_F(BlobTransferTest, UploadResumesAfterBreakAndServerRestart) {
  const std::string bytes(3000000, 'b');
  const v1::Digest digest = DigestOf(bytes);
  EXPECT_THAT(Stream(digest, 0, bytes.substr(0, 1000)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("1000 of 3000000")));
  EXPECT_EQ(Committed(digest), 1000);
  Restart();
  EXPECT_EQ(Committed(digest), 1000);
  EXPECT_THAT(Stream(digest, 1000, bytes.substr(1000)), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string back, Download(digest));
  EXPECT_EQ(back, bytes);
}

TEST_F(BlobTransferTest, UploadWithWrongDigestIsRefused) {
  const v1::Digest digest = DigestOf("right");
  EXPECT_THAT(Stream(digest, 0, "wrong"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("SHA-256")));
  EXPECT_THAT(Download(digest), StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_THAT(Stream(digest, 0, "right"), IsOk());
}

TEST_F(BlobTransferTest, RefusesMalformedUploads) {
  v1::Digest bad = DigestOf("x");
  bad.set_sha256("../../../../etc/passwd");
  EXPECT_THAT(Stream(bad, 0, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(Stream(DigestOf("xyz"), 1, "y"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(Stream(DigestOf("xyz"), 0, "xyz+"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(Stream(DigestOf("x"), 0, std::string(5 << 20, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(BlobTransferTest, EmptyBlobAndRepeatedUploadWork) {
  EXPECT_THAT(Stream(DigestOf(""), 0, ""), IsOk());
  EXPECT_THAT(Stream(DigestOf(""), 0, ""), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string back, Download(DigestOf("")));
  EXPECT_EQ(back, "");
}

TEST_F(BlobTransferTest, DownloadsPartsAndRefusesImpossibleOnes) {
  const v1::Digest digest = Put("0123456789");
  EXPECT_EQ(*Download(digest, 3, 4), "3456");
  EXPECT_EQ(*Download(digest, 10), "");
  v1::Digest unknown_size = digest;
  unknown_size.set_size_bytes(0);
  EXPECT_EQ(*Download(unknown_size, 8), "89");
  EXPECT_THAT(Download(digest, 11),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(Download(digest, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(BlobTransferTest, FindsMissingBlobsOnce) {
  const v1::Digest here = Put("here");
  Context context;
  v1::FindMissingRequest request;
  *request.add_digests() = here;
  *request.add_digests() = DigestOf("not here");
  *request.add_digests() = DigestOf("not here");
  v1::FindMissingResponse response;
  ASSERT_TRUE(models_->FindMissing(&context, request, &response).ok());
  ASSERT_EQ(response.missing_size(), 1);
  EXPECT_EQ(response.missing(0).sha256(), DigestOf("not here").sha256());
}

TEST_F(BlobTransferTest, StalledUploadIsCutOffAndCanGoOn) {
  const std::string bytes = "0123456789";
  const v1::Digest digest = DigestOf(bytes);
  Context context;
  v1::UploadResponse response;
  auto writer = models_->Upload(&context, &response);
  v1::UploadRequest request;
  *request.mutable_digest() = digest;
  request.set_data("0123");
  ASSERT_TRUE(writer->Write(request));
  while (Committed(digest) < 4) {
  }
  clock_.Advance(absl::Minutes(2));
  server_->Wake();
  EXPECT_FALSE(writer->Finish().ok());
  EXPECT_THAT(Stream(digest, 4, "456789"), IsOk());
}

TEST_F(BlobTransferTest, MessagesWithoutBytesAreNoProgress) {
  options_.transfers.least_bytes = 4;
  Restart();
  const std::string bytes = "0123456789";
  const v1::Digest digest = DigestOf(bytes);
  Context context;
  v1::UploadResponse response;
  auto writer = models_->Upload(&context, &response);
  v1::UploadRequest request;
  *request.mutable_digest() = digest;
  request.set_data("0123");
  ASSERT_TRUE(writer->Write(request));
  while (Committed(digest) < 4) {
  }
  // Enough came in the first period.
  clock_.Advance(absl::Seconds(61));
  server_->Wake();
  request.set_data("");
  request.set_offset(4);
  while (writer->Write(request)) {
    clock_.Advance(absl::Seconds(1));
    server_->Wake();
  }
  EXPECT_FALSE(writer->Finish().ok());
  EXPECT_THAT(Stream(digest, 4, "456789"), IsOk());
}

TEST_F(BlobTransferTest, FullStoreEvictsOnlyWhatNoJobNeeds) {
  options_.max_store_bytes = 1000;
  Restart();
  v1::SubmitJobRequest submit = GoodSubmit();
  const std::string model = "\x0a" + std::string(399, 'm');
  *submit.mutable_spec()->mutable_model()->mutable_digest() = Put(model);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(submit));
  const std::string unused(400, 'u');
  Put(unused);
  clock_.Advance(absl::Hours(2));
  const std::string wanted(500, 'w');
  EXPECT_THAT(Stream(DigestOf(wanted), 0, wanted), IsOk());
  EXPECT_THAT(Download(DigestOf(unused)),
              StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_THAT(Download(DigestOf(model)), IsOk());
  const std::string too_much(600, 't');
  EXPECT_THAT(Stream(DigestOf(too_much), 0, too_much),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
}

}  // namespace
}  // namespace optfarm::server
