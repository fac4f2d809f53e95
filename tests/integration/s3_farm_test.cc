// A farm whose files are in an object store: jobs run to their end, uploads
// survive the server, and the bucket alone is enough to find the files again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/digest.h"
#include "http/url_download.h"
#include "rpc/blob_transfer.h"
#include "tests/integration/farm.h"
#include "tests/support/s3_server.h"

namespace optfarm::integration {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::ProgramPath;
using ::optfarm::testing::S3Server;
using ::optfarm::testing::SourcePath;
using ::testing::HasSubstr;

class S3FarmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto server = S3Server::Shared();
    if (absl::IsFailedPrecondition(server.status())) {
      GTEST_SKIP() << server.status().message();
    }
    OPTFARM_ASSERT_OK(server.status());
    s3_ = *server;
  }
  // Flags of a server that keeps its files below the prefix.
  std::vector<std::string> Flags(const std::string& prefix) {
    const std::string keys = JoinPath(folder_, "keys");
    EXPECT_THAT(
        WriteFileAtomically(
            keys, absl::StrCat(
                      "[default]\naws_access_key_id = ", s3_->access_key(),
                      "\naws_secret_access_key = ", s3_->secret_key(), "\n")),
        testing::IsOk());
    return {absl::StrCat("--blobs=s3://", S3Server::kBucket, "/", prefix),
            absl::StrCat("--s3_endpoint=", s3_->endpoint()),
            absl::StrCat("--s3_region=", s3_->region()), "--s3_path_style",
            absl::StrCat("--s3_credentials_file=", keys)};
  }
  // Returns the exit code; output_ is what was printed.
  int Run(std::vector<std::string> command) {
    SubprocessOptions options;
    options.argv = std::move(command);
    options.output_file = JoinPath(folder_, absl::StrCat("out", ++runs_));
    options.environment = {{"XDG_CONFIG_HOME", folder_}};
    auto child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok()) return -1;
    const auto exit = child->Wait(kPatience);
    output_ = ReadFile(options.output_file).value_or("");
    return exit ? exit->exit_code : -1;
  }

  S3Server* s3_ = nullptr;
  const std::string folder_ = FreshFolder();
  int runs_ = 0;
  std::string output_;
};

TEST_F(S3FarmTest, JobOfOptctlRunsToItsEndAndItsFilesAreFoundAgain) {
  Farm farm(Flags("job"));
  const auto worker = farm.StartWorker("w");
  ASSERT_EQ(Run({ProgramPath("optctl"), "submit",
                 SourcePath("examples/digits/digits.pb"), "--recipe=weights8",
                 "--server=" + farm.address(), "--wait"}),
            0)
      << output_;
  const auto download = [&](const std::string& name) {
    const std::string path = JoinPath(folder_, name);
    EXPECT_EQ(Run({ProgramPath("optctl"), "download", "latest",
                   "--out_graph=" + path, "--server=" + farm.address()}),
              0)
        << output_;
    return ReadFile(path).value_or("");
  };
  const std::string first = download("first.pb");
  EXPECT_GT(first.size(), 1000u);
  EXPECT_FALSE(Exists(farm.folder() + "/data/blobs"));
  // All that this machine knows of the bucket.
  farm.server().Terminate();
  ASSERT_THAT(RemoveAll(farm.folder() + "/data/s3"), testing::IsOk());
  farm.StartServer();
  EXPECT_TRUE(download("second.pb") == first);
}

// Counts what comes from the store.
class CountedSource final : public rpc::UrlSource {
 public:
  bool WantsUrl() override { return source_->WantsUrl(); }
  absl::Status Fetch(const std::string& url, int64_t offset,
                     const rpc::TakeBytes& take) override {
    return source_->Fetch(url, offset, [&](absl::string_view bytes) {
      fetched += bytes.size();
      return take(bytes);
    });
  }

  size_t fetched = 0;

 private:
  const std::unique_ptr<rpc::UrlSource> source_ = http::MakeUrlSource();
};

TEST_F(S3FarmTest, LargeFilesComeFromTheStoreWhereItCanBeReached) {
  const std::string bytes(3 << 20, 'b');
  // Where the store is for others: as for the server, at a port where nobody
  // listens, and nowhere.
  for (const std::string there : {"", "http://127.0.0.1:9", "none"}) {
    std::vector<std::string> flags = Flags("downloads");
    if (!there.empty()) {
      flags.push_back(absl::StrCat("--s3_download_endpoint=", there));
    }
    Farm farm(flags);
    const auto digest = rpc::UploadBytes(farm.models(), bytes);
    ASSERT_TRUE(digest.ok()) << digest.status();
    const auto small = rpc::UploadBytes(farm.models(), "small");
    ASSERT_TRUE(small.ok()) << small.status();
    const auto source = std::make_shared<CountedSource>();
    rpc::TransferOptions options;
    options.urls = source;
    const std::string path = JoinPath(folder_, "large");
    // Goes on behind what is here.
    ASSERT_THAT(WriteFileAtomically(path + ".part", bytes.substr(0, 1000)),
                testing::IsOk());
    absl::Status status =
        rpc::DownloadBlob(farm.models(), *digest, path, options);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(ReadFile(path).value_or("") == bytes);
    EXPECT_EQ(source->fetched, there.empty() ? bytes.size() - 1000 : 0);
    EXPECT_EQ(source->WantsUrl(), there != "http://127.0.0.1:9");
    status = rpc::DownloadBlob(farm.models(), *small, path, options);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(source->fetched, there.empty() ? bytes.size() - 1000 : 0);
  }
}

TEST_F(S3FarmTest, UploadGoesOnWhereAKilledServerLeftIt) {
  Farm farm(Flags("upload"));
  std::string bytes(40 << 20, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((i * i) >> 11 ^ i);
  }
  const v1::Digest digest = rpc::DigestOfBytes(bytes);
  constexpr size_t kSent = size_t{21} << 20;
  {
    grpc::ClientContext context;
    v1::UploadResponse response;
    const auto stream = farm.models()->Upload(&context, &response);
    v1::UploadRequest request;
    *request.mutable_digest() = digest;
    for (size_t offset = 0; offset < kSent; offset += 1 << 20) {
      request.set_offset(static_cast<int64_t>(offset));
      request.set_data(bytes.substr(offset, 1 << 20));
      ASSERT_TRUE(stream->Write(request));
    }
    const auto committed = [&] {
      grpc::ClientContext query;
      v1::QueryUploadRequest question;
      *question.mutable_digest() = digest;
      v1::QueryUploadResponse answer;
      farm.models()->QueryUpload(&query, question, &answer);
      return answer.committed_bytes();
    };
    ASSERT_TRUE(Await([&] {
      return committed() == static_cast<int64_t>(kSent);
    })) << committed();
    farm.server().Kill9();
    context.TryCancel();
    stream->Finish();
  }
  farm.StartServer();
  std::vector<int64_t> moved;
  rpc::TransferOptions options;
  options.progress = [&](int64_t done, int64_t /*total*/) {
    moved.push_back(done);
  };
  const auto uploaded = rpc::UploadBytes(farm.models(), bytes, options);
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  ASSERT_FALSE(moved.empty());
  EXPECT_GE(moved.front(), static_cast<int64_t>(kSent));
  const std::string path = JoinPath(folder_, "downloaded");
  const absl::Status status = rpc::DownloadBlob(farm.models(), digest, path);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(ReadFile(path).value_or("") == bytes);
}

TEST_F(S3FarmTest, ServerSaysAtItsStartWhatIsWrong) {
  const auto start = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {ProgramPath("optfarm-server"), "--grpc=127.0.0.1:0",
                  "--data_dir=" + FreshFolder()});
    return Run(std::move(flags));
  };
  std::vector<std::string> flags = Flags("start");
  flags[1] = "--s3_endpoint=http://127.0.0.1:9";
  flags.pop_back();
  EXPECT_EQ(start(flags), 1);
  EXPECT_THAT(output_, HasSubstr("AWS_ACCESS_KEY_ID"));
  EXPECT_EQ(start({"--s3_region=us-east-1"}), 1);
  EXPECT_THAT(output_, HasSubstr("--blobs=s3://BUCKET/PREFIX"));
  EXPECT_EQ(start({"--blobs=ftp://x"}), 1);
  EXPECT_THAT(output_, HasSubstr("write file:FOLDER or s3://BUCKET/PREFIX"));
  flags = Flags("start");
  flags[0] = "--blobs=s3://no-such-bucket";
  EXPECT_EQ(start(flags), 1);
  EXPECT_THAT(output_, HasSubstr("make the bucket first"));
  EXPECT_EQ(output_.find(s3_->secret_key() + "\n"), std::string::npos);
}

}  // namespace
}  // namespace optfarm::integration
