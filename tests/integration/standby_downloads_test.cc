// A server that stands by sends files from the store itself, and only to those
// to whom the leader would have sent them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "optfarm/servers/v1/leader.grpc.pb.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "optfarm/v1/store.grpc.pb.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "tests/integration/several_servers.h"

namespace optfarm::integration {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// More than is under way between two programs at once.
constexpr size_t kLarge = size_t{64} << 20;

std::string Bytes(size_t size) {
  std::string bytes(size, 'x');
  for (size_t i = 0; i < size; i += 97) bytes[i] = static_cast<char>(i % 251);
  return bytes;
}

// A download that is read piece by piece.
class Reading {
 public:
  Reading(std::shared_ptr<grpc::Channel> channel,
          const v1::DownloadRequest& request)
      : models_(v1::ModelService::NewStub(std::move(channel))),
        reader_(models_->Download(&context_, request)) {}

  bool ReadPiece() {
    v1::DownloadResponse piece;
    if (!reader_->Read(&piece)) return false;
    bytes_ += piece.data();
    return true;
  }
  grpc::StatusCode ReadOn() {
    while (ReadPiece()) continue;
    return reader_->Finish().error_code();
  }
  const std::string& bytes() const { return bytes_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::ModelService::Stub> models_;
  std::unique_ptr<grpc::ClientReader<v1::DownloadResponse>> reader_;
  std::string bytes_;
};

class StandbyDownloadsTest : public SeveralServers {
 protected:
  v1::DownloadRequest Put(const std::string& bytes, const std::string& token) {
    const std::string file = JoinPath(logs_, absl::StrCat("file", ++made_));
    EXPECT_TRUE(WriteFileAtomically(file, bytes).ok());
    const auto models = v1::ModelService::NewStub(ChannelTo(0, token));
    const auto digest = rpc::UploadFile(models.get(), file);
    EXPECT_TRUE(digest.ok()) << digest.status();
    v1::DownloadRequest request;
    if (digest.ok()) *request.mutable_digest() = *digest;
    return request;
  }
  grpc::StatusCode Ask(int server, const std::string& token,
                       const v1::DownloadRequest& request) {
    return Reading(ChannelTo(server, token), request).ReadOn();
  }

  // Method, subject and outcome of what the audit log says, newest first.
  std::vector<std::string> Audit() {
    const auto store = v1::StoreService::NewStub(ChannelTo(0, kOperator));
    grpc::ClientContext context;
    v1::ListAuditResponse list;
    EXPECT_TRUE(store->ListAudit(&context, {}, &list).ok());
    std::vector<std::string> entries;
    for (const v1::AuditEntry& entry : list.entries()) {
      entries.push_back(absl::StrCat(entry.method(), " ", entry.subject(), " ",
                                     entry.outcome()));
    }
    return entries;
  }
};

TEST_F(StandbyDownloadsTest, SendsWholeFilesAndPartsFromTheStore) {
  StartAll(BucketOrFolder());
  const std::string bytes = Bytes(9'000'001);
  const v1::DownloadRequest all = Put(bytes, kOperator);
  {
    Reading whole(ChannelTo(1, kOperator), all);
    EXPECT_EQ(whole.ReadOn(), grpc::OK);
    EXPECT_TRUE(whole.bytes() == bytes);
  }
  EXPECT_EQ(Metric(1, "optfarm_served_calls_total"), "1");
  EXPECT_EQ(Metric(2, "optfarm_served_calls_total"), "0");
  v1::DownloadRequest part = all;
  part.mutable_digest()->clear_size_bytes();
  part.set_offset(5'000'000);
  part.set_max_bytes(1'500'000);
  {
    Reading some(ChannelTo(2, kOperator), part);
    EXPECT_EQ(some.ReadOn(), grpc::OK);
    EXPECT_TRUE(some.bytes() == bytes.substr(5'000'000, 1'500'000));
  }
  part.set_offset(9'000'001);
  EXPECT_EQ(Ask(2, kOperator, part), grpc::OK);
  part.set_offset(9'000'002);
  EXPECT_EQ(Ask(2, kOperator, part), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Metric(2, "optfarm_served_calls_total"), "2");
  // Over HTTP, which first asks for a byte.
  const std::string path = "/v1/blobs/" + all.digest().sha256();
  const std::string bearer = absl::StrCat("Authorization: Bearer ", kOperator);
  EXPECT_TRUE(Get(1, path, {bearer}) == bytes);
  EXPECT_EQ(Get(1, path, {bearer, "Range: bytes=7-17"}), bytes.substr(7, 11));
  EXPECT_EQ(Metric(1, "optfarm_served_calls_total"), "5");
  // The leader has noted them all.
  const std::vector<std::string> audit = Audit();
  EXPECT_EQ(std::count(audit.begin(), audit.end(),
                       absl::StrCat("ModelService.Download ",
                                    all.digest().sha256(), " OK")),
            7);
  EXPECT_EQ(Metric(0, "optfarm_leads"), "1");
}

TEST_F(StandbyDownloadsTest, OnlyThoseWhomTheLeaderLetsReadAFileGetIt) {
  std::vector<std::string> flags = SharedFolder();
  flags.insert(flags.end(),
               {"--project_calls_per_second=0.001", "--project_call_burst=10"});
  StartAll(flags);
  const auto [mine, my_id] =
      MakeToken("mine", {v1::Access::SUBMIT, v1::Access::READ});
  const auto [other, other_id] =
      MakeToken("other", {v1::Access::SUBMIT, v1::Access::READ});
  const auto [submits, submits_id] = MakeToken("mine", {v1::Access::SUBMIT});
  const auto [works, works_id] = MakeToken("", {v1::Access::WORK});
  const v1::DownloadRequest file = Put(Bytes(3'000'000), mine);
  v1::DownloadRequest unknown = file;
  unknown.mutable_digest()->set_sha256(std::string(64, 'a'));
  for (const int server : {0, 1}) {
    EXPECT_EQ(Ask(server, mine, file), grpc::OK);
    EXPECT_EQ(Ask(server, mine, unknown), grpc::NOT_FOUND);
    EXPECT_EQ(Ask(server, other, file), grpc::NOT_FOUND);
    EXPECT_EQ(Ask(server, submits, file), grpc::PERMISSION_DENIED);
    EXPECT_EQ(Ask(server, "", file), grpc::UNAUTHENTICATED);
    EXPECT_EQ(Ask(server, "wrong", file), grpc::UNAUTHENTICATED);
    // It has leased nothing.
    EXPECT_THAT(Ask(server, works, file),
                AnyOf(grpc::NOT_FOUND, grpc::UNAVAILABLE));
  }
  // All servers take from the project's one bucket: four calls and the upload's
  // two or three were before.
  int more = 0;
  while (Ask(1 + more % 2, mine, file) == grpc::OK) ASSERT_LT(++more, 10);
  EXPECT_LE(more, 4);
  for (const int server : {0, 1, 2}) {
    EXPECT_EQ(Ask(server, mine, file), grpc::RESOURCE_EXHAUSTED);
  }
  // What one server revokes, the others know.
  Revoke(2, my_id);
  Revoke(0, other_id);
  for (const int server : {0, 1, 2}) {
    EXPECT_EQ(Ask(server, mine, file), grpc::UNAUTHENTICATED);
    EXPECT_EQ(Ask(server, other, file), grpc::UNAUTHENTICATED);
  }
  // Who is no server is told nothing, and cannot ask through one.
  for (const int server : {0, 1}) {
    const auto leader =
        servers::v1::LeaderService::NewStub(ChannelTo(server, kOperator));
    grpc::ClientContext context;
    context.AddMetadata("optfarm-forwarded", "secret");
    servers::v1::AdmitCallResponse who;
    EXPECT_EQ(leader->AdmitCall(&context, {}, &who).error_code(),
              server == 0 ? grpc::PERMISSION_DENIED : grpc::UNIMPLEMENTED);
    grpc::ClientContext other_context;
    const auto grant = leader->GrantDownload(&other_context);
    EXPECT_EQ(grant->Finish().error_code(),
              server == 0 ? grpc::PERMISSION_DENIED : grpc::UNIMPLEMENTED);
  }
}

TEST_F(StandbyDownloadsTest, ARevokedTokenEndsADownloadThatIsUnderWay) {
  StartAll(SharedFolder());
  const auto [secret, id] =
      MakeToken("mine", {v1::Access::SUBMIT, v1::Access::READ});
  const v1::DownloadRequest file = Put(Bytes(kLarge), secret);
  Reading slow(ChannelTo(1, secret), file);
  ASSERT_TRUE(slow.ReadPiece());
  EXPECT_EQ(Metric(1, "optfarm_forwarded_calls_open"), "1");
  Revoke(2, id);
  // It does not wait for a caller who reads no further.
  EXPECT_TRUE(
      Await([&] { return Metric(1, "optfarm_forwarded_calls_open") == "0"; }));
  EXPECT_EQ(slow.ReadOn(), grpc::CANCELLED);
  EXPECT_LT(slow.bytes().size(), kLarge);
  EXPECT_THAT(Audit(),
              Contains(absl::StrCat("ModelService.Download ",
                                    file.digest().sha256(), " CANCELLED")));
  EXPECT_EQ(Metric(1, "optfarm_served_calls_total"), "0");
}

TEST_F(StandbyDownloadsTest, SendsNothingThatTheLeaderHasNotConfirmedLately) {
  StartAll(BucketOrFolder());
  const std::string bytes = Bytes(kLarge);
  const v1::DownloadRequest file = Put(bytes, kOperator);
  Reading slow(ChannelTo(1, kOperator), file);
  ASSERT_TRUE(slow.ReadPiece());
  ::kill(servers_[0]->pid(), SIGSTOP);
  gone_.push_back(0);
  // Its last word counts for a second.
  absl::SleepFor(absl::Seconds(2));
  EXPECT_EQ(slow.ReadOn(), grpc::UNAVAILABLE);
  EXPECT_LT(slow.bytes().size(), kLarge);
  EXPECT_TRUE(bytes.compare(0, slow.bytes().size(), slow.bytes()) == 0);
  // It goes on with the next leader, from where it was.
  const int second = AwaitLeader();
  const std::string copy = JoinPath(logs_, "copy");
  ASSERT_TRUE(WriteFileAtomically(copy + ".part", slow.bytes()).ok());
  const auto models =
      v1::ModelService::NewStub(ChannelTo(3 - second, kOperator));
  EXPECT_TRUE(rpc::DownloadBlob(models.get(), file.digest(), copy).ok());
  EXPECT_TRUE(ReadFile(copy).value_or("") == bytes);
  ::kill(servers_[0]->pid(), SIGCONT);
}

TEST_F(StandbyDownloadsTest, WhatItCannotReadComesFromTheLeader) {
  StartAll(SharedFolder());
  const std::string bytes = Bytes(3'000'001);
  const v1::DownloadRequest file = Put(bytes, kOperator);
  // A server whose file system is not there.
  servers_[1]->Terminate();
  flags_[0] = absl::StrCat("--blobs=file:", logs_, "/elsewhere");
  StartServer(1, flags_);
  Reading whole(ChannelTo(1, kOperator), file);
  EXPECT_EQ(whole.ReadOn(), grpc::OK);
  EXPECT_TRUE(whole.bytes() == bytes);
  EXPECT_EQ(Metric(1, "optfarm_served_calls_total"), "0");
  EXPECT_TRUE(servers_[1]->LogHas("comes from the leader"));
}

}  // namespace
}  // namespace optfarm::integration
