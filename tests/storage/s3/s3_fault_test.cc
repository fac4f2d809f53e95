// Whatever the network and the store do to single requests: an upload ends
// whole or with a plain error, what is read is right or an error, and all is
// well when the fault stops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/s3/s3_blob_store.h"
#include "tests/storage/blob_store_engine.h"
#include "tests/storage/s3/s3_fixture.h"
#include "tests/support/faulty_proxy.h"
#include "tests/support/s3_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::Fault;
using ::optfarm::testing::FaultyProxy;
using ::optfarm::testing::S3Server;

constexpr Fault kFaults[] = {Fault::kCutAtHead,       Fault::kCutInBody,
                             Fault::kStatus500,       Fault::kSlowDown,
                             Fault::kCutBeforeAnswer, Fault::kCutInAnswer,
                             Fault::kWrongEtag};
constexpr int kForever = 1'000'000;

std::string NameOf(const ::testing::TestParamInfo<Fault>& fault) {
  constexpr const char* kNames[] = {
      "None",  "CutAtHead",       "CutInBody",   "Status500", "SlowDown",
      "Stall", "CutBeforeAnswer", "CutInAnswer", "WrongEtag"};
  return kNames[static_cast<int>(fault.param)];
}

class S3FaultTest : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    const auto server = S3Server::Shared();
    if (absl::IsFailedPrecondition(server.status())) {
      GTEST_SKIP() << server.status().message();
    }
    OPTFARM_ASSERT_OK(server.status());
    OPTFARM_ASSERT_OK_AND_ASSIGN(proxy_, FaultyProxy::Start((*server)->port()));
    engine_ = std::make_unique<S3Engine>(**server, proxy_->endpoint());
    Reopen();
  }
  // The proxy ends last.
  void TearDown() override {
    if (proxy_ != nullptr) proxy_->Mend();
    store_.reset();
  }
  void Reopen() {
    store_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, engine_->Open({}));
  }
  // One full part and a little; no two have equal bytes.
  std::string NextBytes() {
    return VariedBytes(static_cast<size_t>(kPartBytes) + 1000 +
                       static_cast<size_t>(++contents_));
  }
  // Sends what is not staged yet, as a client does.
  absl::Status Upload(const std::string& bytes) {
    const BlobId id = IdOf(bytes);
    OPTFARM_ASSIGN_OR_RETURN(auto upload, store_->OpenUpload(id));
    const int64_t staged = upload->staged_bytes();
    OPTFARM_RETURN_IF_ERROR(upload->Append(
        staged, absl::string_view(bytes).substr(static_cast<size_t>(staged))));
    return upload->Finish(kNow);
  }
  bool Has(const std::string& bytes) {
    return store_->Contains(IdOf(bytes), kNow).value_or(false);
  }
  std::string ReadBack(const std::string& bytes) {
    const auto reader = store_->OpenBlob(IdOf(bytes).sha256);
    if (!reader.ok()) return reader.status().ToString();
    return (*reader)->Read(0, (*reader)->size_bytes()).value_or("unreadable");
  }
  // Requests of one upload that nothing disturbs.
  int CountRequests() {
    proxy_->Mend();
    EXPECT_THAT(Upload(NextBytes()), IsOk());
    return proxy_->requests();
  }

  std::unique_ptr<FaultyProxy> proxy_;
  std::unique_ptr<S3Engine> engine_;
  std::unique_ptr<BlobStore> store_;
  int contents_ = 0;
};

TEST_P(S3FaultTest, OneFaultAtAnyRequestIsNotSeen) {
  const int requests = CountRequests();
  ASSERT_GE(requests, 5);
  for (int number = 0; number < requests; ++number) {
    const std::string bytes = NextBytes();
    proxy_->Break(GetParam(), number, 1);
    EXPECT_THAT(Upload(bytes), IsOk()) << "at request " << number;
    EXPECT_GE(proxy_->requests(), requests);
    proxy_->Mend();
    EXPECT_TRUE(ReadBack(bytes) == bytes) << "at request " << number;
  }
}

TEST_P(S3FaultTest, LastingFaultIsAPlainErrorAndTheUploadGoesOnAfterIt) {
  const int requests = CountRequests();
  for (int number = 0; number < requests; ++number) {
    const std::string bytes = NextBytes();
    proxy_->Break(GetParam(), number, kForever);
    const absl::Status status = Upload(bytes);
    // Only ETags of parts tell anything.
    if (GetParam() != Fault::kWrongEtag) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("127.0.0.1")))
          << "at request " << number;
    }
    EXPECT_EQ(Has(bytes), status.ok());
    proxy_->Mend();
    // A restart in between changes nothing.
    if (number % 2 == 1) Reopen();
    if (!status.ok()) {
      EXPECT_THAT(Upload(bytes), IsOk()) << "at request " << number;
    }
    EXPECT_TRUE(ReadBack(bytes) == bytes) << "at request " << number;
  }
}

TEST_P(S3FaultTest, SmallBlobsAndReadsAreRightOrAnError) {
  const std::string bytes = VariedBytes(100'000);
  proxy_->Break(GetParam(), 0, 1);
  ASSERT_THAT(PutBlob(*store_, bytes, kNow), IsOk());
  proxy_->Break(GetParam(), 0, 1);
  EXPECT_TRUE(ReadBack(bytes) == bytes);
  proxy_->Break(GetParam(), 0, kForever);
  const std::string read = ReadBack(bytes);
  EXPECT_TRUE(read == "unreadable" || read == bytes);
}

INSTANTIATE_TEST_SUITE_P(Faults, S3FaultTest, ::testing::ValuesIn(kFaults),
                         NameOf);

class S3StallTest : public S3FaultTest {};

TEST_P(S3StallTest, StoreThatDoesNotAnswerIsGivenUpInTime) {
  engine_->options.client.transport.stall_timeout = absl::Seconds(1);
  engine_->options.client.max_attempts = 1;
  Reopen();
  const std::string bytes = NextBytes();
  proxy_->Break(GetParam(), 1, kForever);
  const absl::Time begin = absl::Now();
  EXPECT_THAT(Upload(bytes), StatusIs(absl::StatusCode::kUnavailable, _));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
  EXPECT_FALSE(Has(bytes));
  proxy_->Mend();
  EXPECT_THAT(Upload(bytes), IsOk());
  EXPECT_TRUE(ReadBack(bytes) == bytes);
}

INSTANTIATE_TEST_SUITE_P(Stall, S3StallTest, ::testing::Values(Fault::kStall),
                         NameOf);

// A store that is killed and comes back has what it acknowledged.
TEST(S3RestartTest, UploadGoesOnWhenTheStoreIsBack) {
  const std::string folder = testing::FreshFolder();
  auto server = S3Server::Start(folder);
  if (absl::IsFailedPrecondition(server.status())) {
    GTEST_SKIP() << server.status().message();
  }
  OPTFARM_ASSERT_OK(server.status());
  const int port = (*server)->port();
  S3Engine engine(**server);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto store, engine.Open({}));
  ASSERT_THAT(PutBlob(*store, "before", kNow), IsOk());
  const std::string bytes = VariedBytes(12 << 20);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store->OpenUpload(IdOf(bytes)));
  const absl::string_view half = absl::string_view(bytes).substr(0, 6 << 20);
  ASSERT_THAT(upload->Append(0, half), IsOk());
  // Killed, not asked.
  server->reset();
  EXPECT_THAT(upload->Append(6 << 20, absl::string_view(bytes).substr(6 << 20)),
              StatusIs(absl::StatusCode::kUnavailable, _));
  // Known without the store.
  EXPECT_TRUE(store->Contains(IdOf("before"), kNow).value_or(false));
  server = S3Server::Start(folder, port);
  OPTFARM_ASSERT_OK(server.status());
  const int64_t staged = upload->staged_bytes();
  EXPECT_GE(staged, 6 << 20);
  ASSERT_THAT(upload->Append(staged, absl::string_view(bytes).substr(
                                         static_cast<size_t>(staged))),
              IsOk());
  ASSERT_THAT(upload->Finish(kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store->OpenBlob(IdOf(bytes).sha256));
  EXPECT_TRUE(reader->Read(0, reader->size_bytes()).value_or("") == bytes);
}

}  // namespace
}  // namespace optfarm::storage
