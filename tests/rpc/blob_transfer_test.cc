// Blobs arrive whole, whatever breaks on the way, and wrong ones do not arrive.

#include "rpc/blob_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "rpc/blob_cache.h"
#include "tests/rpc/fake_model_service.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::rpc {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  }
  return bytes;
}

class BlobTransferTest : public ::testing::Test {
 protected:
  BlobTransferTest() {
    options_.retry.clock = &clock_;
    options_.retry.seed = 1;
    options_.chunk_bytes = 1000;
  }

  std::string MakeFile(const std::string& name, const std::string& bytes) {
    const std::string path = JoinPath(folder_, name);
    EXPECT_THAT(WriteFileAtomically(path, bytes), IsOk());
    return path;
  }

  v1::Digest Stored(const std::string& bytes) {
    const v1::Digest digest = DigestOfBytes(bytes);
    service_.blobs[digest.sha256()] = bytes;
    return digest;
  }

  const std::string folder_ = FreshFolder();
  FakeClock clock_{absl::UnixEpoch()};
  FakeModelService service_;
  LocalServer server_{&service_};
  std::unique_ptr<v1::ModelService::Stub> stub_ =
      v1::ModelService::NewStub(server_.channel());
  TransferOptions options_;
};

TEST_F(BlobTransferTest, UploadsFilesOfAllSizes) {
  for (const size_t size : {0, 1, 999, 1000, 1001, 12345}) {
    const std::string bytes = Bytes(size);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const v1::Digest digest,
        UploadFile(stub_.get(), MakeFile("f", bytes), options_));
    EXPECT_EQ(service_.blobs[digest.sha256()], bytes) << size;
    EXPECT_EQ(digest.size_bytes(), static_cast<int64_t>(size));
  }
}

TEST_F(BlobTransferTest, DoesNotSendWhatTheServerHas) {
  Stored(Bytes(5000));
  OPTFARM_ASSERT_OK(UploadBytes(stub_.get(), Bytes(5000), options_));
  EXPECT_EQ(service_.uploads, 0);
}

TEST_F(BlobTransferTest, AnUploadGoesOnWhereItBroke) {
  service_.break_after = 1000;
  OPTFARM_ASSERT_OK(UploadBytes(stub_.get(), Bytes(20000), options_));
  // More breaks than attempts in a row are allowed: progress counts.
  EXPECT_EQ(service_.uploads, 20);
  EXPECT_EQ(service_.blobs.begin()->second, Bytes(20000));
}

TEST_F(BlobTransferTest, SendsEachDistinctBlobOnceWithProgress) {
  std::vector<UploadSource> sources;
  const std::vector<std::string> contents = {Bytes(10), Bytes(3000), Bytes(10)};
  for (const std::string& bytes : contents) {
    sources.push_back({DigestOfBytes(bytes), "", bytes});
  }
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    EXPECT_EQ(total, 3010);
    last = done;
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const int64_t sent,
                               UploadMissing(stub_.get(), sources, options_));
  EXPECT_EQ(sent, 3010);
  EXPECT_EQ(last, 3010);
  EXPECT_EQ(service_.uploads, 2);
}

TEST_F(BlobTransferTest, AFileThatIsNotWhatItWasIsRefused) {
  const std::string path = MakeFile("f", Bytes(3000));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Digest digest, DigestOfFile(path));
  const std::vector<UploadSource> sources = {{digest, path, {}}};
  MakeFile("f", std::string(3000, 'x'));
  EXPECT_THAT(
      UploadMissing(stub_.get(), sources, options_),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("changed")));
  MakeFile("f", "short");
  EXPECT_THAT(
      UploadMissing(stub_.get(), sources, options_),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("shorter")));
  EXPECT_TRUE(service_.blobs.empty());
}

TEST_F(BlobTransferTest, ServerErrorsAreNotHiddenByRetries) {
  service_.upload_status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "disk full"};
  EXPECT_THAT(
      UploadBytes(stub_.get(), "x", options_),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_EQ(service_.uploads, 1);
}

TEST_F(BlobTransferTest, DownloadsBlobsOfAllSizes) {
  for (const size_t size : {0, 1, 1000, 12345}) {
    const std::string path = JoinPath(folder_, "out");
    OPTFARM_ASSERT_OK(
        DownloadBlob(stub_.get(), Stored(Bytes(size)), path, options_));
    EXPECT_EQ(ReadFile(path).value(), Bytes(size));
    EXPECT_FALSE(Exists(path + ".part"));
  }
}

TEST_F(BlobTransferTest, ADownloadGoesOnWhereItBroke) {
  service_.break_after = 1000;
  const std::string path = JoinPath(folder_, "out");
  OPTFARM_ASSERT_OK(
      DownloadBlob(stub_.get(), Stored(Bytes(20000)), path, options_));
  EXPECT_EQ(service_.downloads, 20);
  EXPECT_EQ(ReadFile(path).value(), Bytes(20000));
}

TEST_F(BlobTransferTest, BytesOfAnEarlierProcessAreUsedIfTheyAreRight) {
  const std::string bytes = Bytes(5000);
  const std::string path = JoinPath(folder_, "out");
  MakeFile("out.part", bytes.substr(0, 4000));
  service_.break_after = 1000;
  OPTFARM_ASSERT_OK(DownloadBlob(stub_.get(), Stored(bytes), path, options_));
  EXPECT_EQ(service_.downloads, 1);
  MakeFile("out.part", std::string(4000, 'x'));
  OPTFARM_ASSERT_OK(DownloadBlob(stub_.get(), Stored(bytes), path, options_));
  EXPECT_EQ(ReadFile(path).value(), bytes);
}

TEST_F(BlobTransferTest, WrongBytesNeverArrive) {
  service_.corrupt = true;
  const std::string path = JoinPath(folder_, "out");
  EXPECT_THAT(DownloadBlob(stub_.get(), Stored(Bytes(5000)), path, options_),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("SHA-256")));
  EXPECT_FALSE(Exists(path));
}

TEST_F(BlobTransferTest, NoMoreThanPromisedIsWritten) {
  v1::Digest digest = Stored(Bytes(5000));
  digest.set_size_bytes(1500);
  const std::string path = JoinPath(folder_, "out");
  EXPECT_THAT(DownloadBlob(stub_.get(), digest, path, options_),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("at most")));
  EXPECT_LE(FileSize(path + ".part").value(), 1500u);
}

TEST_F(BlobTransferTest, RefusesMalformedDigests) {
  v1::Digest digest;
  digest.set_sha256("../../etc/passwd");
  EXPECT_THAT(DownloadBlob(stub_.get(), digest, JoinPath(folder_, "out")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("64")));
}

// What is at an address, in pieces; after `break_after` bytes nothing comes.
class Place final : public UrlSource {
 public:
  explicit Place(std::string bytes) : bytes_(std::move(bytes)) {}

  bool WantsUrl() override { return wants; }
  absl::Status Fetch(const std::string& url, int64_t offset,
                     const TakeBytes& take) override {
    asked.push_back(absl::StrCat(url, " ", offset));
    for (size_t at = static_cast<size_t>(offset); at < bytes_.size();
         at += 1000) {
      if (at >= break_after) return absl::UnavailableError("it broke");
      OPTFARM_RETURN_IF_ERROR(take(bytes_.substr(at, 1000)));
    }
    return absl::OkStatus();
  }

  bool wants = true;
  size_t break_after = SIZE_MAX;
  std::vector<std::string> asked;

 private:
  const std::string bytes_;
};

class UrlTransferTest : public BlobTransferTest {
 protected:
  // Downloads `bytes` from a server that says where `there` is.
  std::string Download(const std::string& bytes, std::shared_ptr<Place> there) {
    service_.url = "http://there/blob";
    options_.urls = std::move(there);
    const std::string path = JoinPath(folder_, "out");
    EXPECT_THAT(DownloadBlob(stub_.get(), Stored(bytes), path, options_),
                IsOk());
    return ReadFile(path).value_or("");
  }
};

TEST_F(UrlTransferTest, BytesComeFromWhereTheServerSays) {
  const auto there = std::make_shared<Place>(Bytes(5000));
  MakeFile("out.part", Bytes(5000).substr(0, 1500));
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t total) { last = done; };
  EXPECT_EQ(Download(Bytes(5000), there), Bytes(5000));
  EXPECT_THAT(there->asked, ::testing::ElementsAre("http://there/blob 1500"));
  EXPECT_EQ(service_.downloads, 1);
  EXPECT_EQ(last, 5000);
}

TEST_F(UrlTransferTest, TheRestComesFromTheServerWhereThePlaceFails) {
  const auto there = std::make_shared<Place>(Bytes(5000));
  there->break_after = 3000;
  EXPECT_EQ(Download(Bytes(5000), there), Bytes(5000));
  EXPECT_EQ(service_.downloads, 2);
  EXPECT_EQ(there->asked.size(), 1u);
}

TEST_F(UrlTransferTest, WrongBytesOfThePlaceComeFromTheServer) {
  for (const size_t size : {5000, 9000}) {
    const auto there = std::make_shared<Place>(std::string(size, 'x'));
    EXPECT_EQ(Download(Bytes(5000), there), Bytes(5000));
    EXPECT_EQ(there->asked.size(), 1u);
  }
}

TEST_F(UrlTransferTest, NoAddressIsAskedForWhereNoneIsWanted) {
  const auto there = std::make_shared<Place>(Bytes(5000));
  there->wants = false;
  EXPECT_EQ(Download(Bytes(5000), there), Bytes(5000));
  EXPECT_EQ(there->asked.size(), 0u);
}

class BlobCacheTest : public BlobTransferTest {
 protected:
  absl::Status Place(BlobCache* cache, const v1::Digest& digest,
                     const std::string& name) {
    return cache->Place(digest, JoinPath(folder_, name), placing_,
                        [&](const v1::Digest& wanted, const std::string& to) {
                          return DownloadBlob(stub_.get(), wanted, to,
                                              options_);
                        });
  }

  Placing placing_ = Placing::kLink;
};

TEST_F(BlobCacheTest, ACopyIsTheTasksOwn) {
  const std::string cache_folder = JoinPath(folder_, "cache");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto cache,
                               BlobCache::Open(cache_folder, 1 << 20));
  placing_ = Placing::kCopy;
  const v1::Digest digest = Stored(Bytes(5000));
  OPTFARM_ASSERT_OK(Place(cache.get(), digest, "a"));
  const std::string placed = JoinPath(folder_, "a");
  EXPECT_EQ(ReadFile(placed).value(), Bytes(5000));
  ASSERT_EQ(::chmod(placed.c_str(), 0600), 0);
  ASSERT_EQ(::truncate(placed.c_str(), 0), 0);
  EXPECT_EQ(ReadFile(JoinPath(cache_folder, digest.sha256())).value(),
            Bytes(5000));
}

TEST_F(BlobCacheTest, FetchesABlobOnce) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto cache, BlobCache::Open(JoinPath(folder_, "cache"), 1 << 20));
  const v1::Digest digest = Stored(Bytes(5000));
  OPTFARM_ASSERT_OK(Place(cache.get(), digest, "a"));
  OPTFARM_ASSERT_OK(Place(cache.get(), digest, "b"));
  EXPECT_EQ(service_.downloads, 1);
  EXPECT_EQ(ReadFile(JoinPath(folder_, "b")).value(), Bytes(5000));
}

TEST_F(BlobCacheTest, ABlobThatRottedIsFetchedAgain) {
  const std::string cache_folder = JoinPath(folder_, "cache");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto cache,
                               BlobCache::Open(cache_folder, 1 << 20));
  const v1::Digest digest = Stored(Bytes(5000));
  OPTFARM_ASSERT_OK(Place(cache.get(), digest, "a"));
  OPTFARM_ASSERT_OK(WriteFileAtomically(JoinPath(cache_folder, digest.sha256()),
                                        std::string(5000, 'x')));
  OPTFARM_ASSERT_OK(Place(cache.get(), digest, "b"));
  EXPECT_EQ(ReadFile(JoinPath(folder_, "b")).value(), Bytes(5000));
}

TEST_F(BlobCacheTest, StaysWithinItsBoundAndKeepsWhatIsPlaced) {
  const std::string cache_folder = JoinPath(folder_, "cache");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto cache,
                               BlobCache::Open(cache_folder, 10000));
  for (size_t i = 0; i < 10; ++i) {
    OPTFARM_ASSERT_OK(
        Place(cache.get(), Stored(Bytes(3000 + i)), absl::StrCat("placed", i)));
  }
  EXPECT_LE(ListFolder(cache_folder).value().size(), 3u);
  EXPECT_EQ(ReadFile(JoinPath(folder_, "placed0")).value(), Bytes(3000));
}

}  // namespace
}  // namespace optfarm::rpc
