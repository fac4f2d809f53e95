// Tunes of a whole server: what they refuse, that they outlive it, and how they
// end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "optfarm/v1/tunes.grpc.pb.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"
#include "tests/support/trace_collector.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::SeenSpan;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TraceCollector;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The recipes that a tune begins with.
constexpr size_t kWholeRecipes = 6;

class TunesTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    ServerFixture::SetUp();
    ConnectDevice();
  }
  void ConnectDevice() {
    v1::SynchronizeRequest request;
    request.set_participant_id("agent-1");
    request.set_name("agent-1");
    request.set_kind(v1::SynchronizeRequest::AGENT);
    v1::DeviceStatus& status = *request.add_devices();
    status.mutable_info()->set_name("pi4");
    status.set_ready(true);
    EXPECT_THAT(Synchronize(request), IsOk());
  }

  v1::TuneSpec GoodSpec() {
    v1::TuneSpec spec;
    v1::JobSpec& job = *spec.mutable_job();
    *job.mutable_model() = GoodSubmit().spec().model();
    v1::DataSource& source = *job.mutable_calibration()->add_sources();
    source.set_role(v1::DataSource::SAMPLES);
    for (int i = 0; i < 9; ++i) {
      v1::DataFile& file = *source.add_files();
      file.set_path(absl::StrCat("picture", i, ".png"));
      *file.mutable_digest() = Put(absl::StrCat("picture ", i));
    }
    spec.add_devices("pi4");
    return spec;
  }
  absl::StatusOr<v1::CreateTuneResponse> Create(const v1::TuneSpec& spec,
                                                const std::string& id = "") {
    Context context;
    v1::CreateTuneRequest request;
    request.set_client_request_id(id);
    *request.mutable_spec() = spec;
    v1::CreateTuneResponse response;
    const absl::Status status =
        rpc::FromGrpc(Tunes()->CreateTune(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  v1::Tune CreateOk(const v1::TuneSpec& spec, const std::string& id = "") {
    const auto created = Create(spec, id);
    EXPECT_THAT(created, IsOk());
    return created.ok() ? created->tune() : v1::Tune();
  }
  v1::Tune Get(const std::string& tune_id) {
    Context context;
    v1::GetTuneRequest request;
    request.set_tune_id(tune_id);
    v1::Tune tune;
    EXPECT_THAT(rpc::FromGrpc(Tunes()->GetTune(&context, request, &tune)),
                IsOk());
    return tune;
  }
  v1::Tune AwaitEnd(const std::string& tune_id) {
    v1::Tune tune = Get(tune_id);
    for (int i = 0; i < 3000 && tune.state() == v1::TUNE_RUNNING; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      tune = Get(tune_id);
    }
    return tune;
  }
  std::vector<v1::Job> JobsOf(const v1::Tune& tune) {
    Context context;
    v1::ListJobsRequest request;
    request.set_filter(absl::StrCat("name=", tune.job_name()));
    v1::ListJobsResponse response;
    EXPECT_THAT(rpc::FromGrpc(jobs_->ListJobs(&context, request, &response)),
                IsOk());
    return {response.jobs().begin(), response.jobs().end()};
  }
  // The jobs of the tune's first batch, which a thread of the server submits.
  std::vector<v1::Job> AwaitJobs(const v1::Tune& tune) {
    std::vector<v1::Job> jobs = JobsOf(tune);
    for (int i = 0; i < 3000 && jobs.size() < kWholeRecipes; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      jobs = JobsOf(tune);
    }
    return jobs;
  }
  // A worker takes one task and says that the model is bad.
  void FailOne() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto leased, Synchronize(WorkerCall()));
    ASSERT_EQ(leased.new_tasks_size(), 1);
    v1::SynchronizeRequest done = WorkerCall();
    done.set_free_slots(0);
    v1::HeldTask& held = *done.add_held();
    held.set_task_id(leased.new_tasks(0).task_id());
    held.set_attempt(leased.new_tasks(0).attempt());
    v1::Failure& failure = *held.mutable_completion()->mutable_failure();
    failure.set_kind(v1::Failure::USER);
    failure.set_code("BAD_MODEL");
    failure.set_message("the model has no inputs");
    EXPECT_THAT(Synchronize(done), IsOk());
  }
  std::unique_ptr<v1::TuneService::Stub> Tunes() {
    return v1::TuneService::NewStub(channel_);
  }
};

TEST_F(TunesTest, WhatIsWrongInASpecIsSaid) {
  const auto refused = [&](auto change, absl::StatusCode code,
                           const std::string& words) {
    v1::TuneSpec spec = GoodSpec();
    change(spec);
    EXPECT_THAT(Create(spec), StatusIs(code, HasSubstr(words)));
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  refused([](auto& spec) { spec.clear_devices(); }, kInvalid,
          "devices lists 0 names");
  refused([](auto& spec) { spec.add_devices("pi4"); }, kInvalid,
          "more than once");
  refused([](auto& spec) { spec.add_devices("any:fast"); }, kInvalid,
          "each is named");
  refused([](auto& spec) { spec.add_devices("pi5"); },
          absl::StatusCode::kNotFound, "pi5");
  refused([](auto& spec) { spec.set_bound(-1); }, kInvalid, "give measure too");
  refused(
      [](auto& spec) {
        spec.set_measure(v1::TuneReport::AGREEMENT);
        spec.set_bound(101);
      },
      kInvalid, "bound is 101");
  refused([](auto& spec) { spec.set_max_measured(5); }, kInvalid,
          "max_measured is 5; give 6 to 200");
  refused([](auto& spec) { spec.set_threads(-1); }, kInvalid, "threads is -1");
  refused([](auto& spec) { spec.set_calibration_samples(-1); }, kInvalid,
          "calibration_samples is -1");
  refused([](auto& spec) { spec.set_seed(-1); }, kInvalid, "seed is -1");
  refused([](auto& spec) { spec.mutable_budget(); }, kInvalid,
          "budget is not a time above 0");
  refused([](auto& spec) { spec.mutable_job()->set_name("mine"); }, kInvalid,
          "job.name is set");
  refused([](auto& spec) { spec.mutable_job()->set_recipe_name("int8"); },
          kInvalid, "job.recipe is set");
  refused([](auto& spec) { spec.mutable_job()->clear_calibration(); }, kInvalid,
          "job.calibration has no samples");
  refused(
      [](auto& spec) {
        spec.mutable_job()->mutable_model()->mutable_digest()->set_sha256(
            std::string(64, 'a'));
      },
      absl::StatusCode::kFailedPrecondition, "blobs are not on the server");
  EXPECT_THAT(Create(v1::TuneSpec()), StatusIs(kInvalid, HasSubstr("devices")));
}

TEST_F(TunesTest, ARequestIdMakesOneTune) {
  const v1::TuneSpec spec = GoodSpec();
  const v1::Tune tune = CreateOk(spec, "mine");
  const auto again = Create(spec, "mine");
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->existed());
  EXPECT_EQ(again->tune().tune_id(), tune.tune_id());
  v1::TuneSpec other = spec;
  other.set_seed(2);
  EXPECT_THAT(Create(other, "mine"), StatusIs(absl::StatusCode::kAlreadyExists,
                                              HasSubstr(tune.tune_id())));
  // Those that ask for the same work share their jobs.
  other = spec;
  other.set_objective(v1::TuneReport::SIZE);
  EXPECT_EQ(CreateOk(other).job_name(), tune.job_name());
  EXPECT_THAT(AwaitJobs(tune), SizeIs(kWholeRecipes));
}

TEST_F(TunesTest, BeginsWithTheRecipesOnTheDevice) {
  const v1::Tune tune = CreateOk(GoodSpec());
  EXPECT_EQ(tune.state(), v1::TUNE_RUNNING);
  EXPECT_EQ(tune.spec().calibration_samples(), 3);
  // The list of files may be long, and is known to who asks.
  EXPECT_EQ(tune.spec().job().calibration().sources(0).files_size(), 0);
  const std::vector<v1::Job> jobs = AwaitJobs(tune);
  ASSERT_THAT(jobs, SizeIs(kWholeRecipes));
  for (const v1::Job& job : jobs) {
    EXPECT_THAT(job.spec().benchmark().devices(), Each("pi4"));
    EXPECT_EQ(job.spec().name(), tune.job_name());
    EXPECT_EQ(absl::StrCat("tune-", job.spec().tags(0).substr(5)),
              tune.job_name());
  }
}

TEST_F(TunesTest, GoesOnAfterARestartAndSaysWhyItFailed) {
  const v1::Tune tune = CreateOk(GoodSpec());
  ASSERT_THAT(AwaitJobs(tune), SizeIs(kWholeRecipes));
  for (size_t i = 0; i < kWholeRecipes / 2; ++i) FailOne();
  Restart();
  EXPECT_EQ(Get(tune.tune_id()).state(), v1::TUNE_RUNNING);
  for (size_t i = 0; i < kWholeRecipes / 2; ++i) FailOne();
  const v1::Tune ended = AwaitEnd(tune.tune_id());
  EXPECT_EQ(ended.state(), v1::TUNE_FAILED);
  EXPECT_THAT(ended.failure(), AllOf(HasSubstr("the search begins with int8"),
                                     HasSubstr("the model has no inputs")));
  EXPECT_TRUE(ended.has_end_time());
  EXPECT_EQ(ended.progress(), "");
  // No job came twice.
  EXPECT_THAT(JobsOf(tune), SizeIs(kWholeRecipes));
  Restart();
  EXPECT_EQ(Get(tune.tune_id()).SerializeAsString(), ended.SerializeAsString());
}

TEST_F(TunesTest, ACancelledOneEndsWithItsOwnJobs) {
  const v1::TuneSpec spec = GoodSpec();
  v1::TuneSpec other = spec;
  other.set_seed(7);
  const v1::Tune tune = CreateOk(spec), stays = CreateOk(other);
  ASSERT_THAT(AwaitJobs(tune), SizeIs(kWholeRecipes));
  ASSERT_THAT(AwaitJobs(stays), SizeIs(kWholeRecipes));
  Context context;
  v1::CancelTuneRequest request;
  request.set_tune_id(tune.tune_id());
  request.set_reason("a mistake");
  v1::Tune ended;
  ASSERT_THAT(rpc::FromGrpc(Tunes()->CancelTune(&context, request, &ended)),
              IsOk());
  EXPECT_EQ(ended.state(), v1::TUNE_CANCELLED);
  EXPECT_EQ(ended.failure(), "a mistake");
  for (const v1::Job& job : JobsOf(tune)) EXPECT_EQ(job.state(), v1::CANCELLED);
  for (const v1::Job& job : JobsOf(stays)) EXPECT_EQ(job.state(), v1::QUEUED);
  // Begun again, it submits them again.
  clock_.Advance(absl::Seconds(1));
  const v1::Tune again = CreateOk(spec);
  EXPECT_EQ(again.job_name(), tune.job_name());
  for (int i = 0; i < 3000 && JobsOf(tune).size() < 2 * kWholeRecipes; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(JobsOf(tune), SizeIs(2 * kWholeRecipes));
}

class TracedTunesTest : public TunesTest {
 protected:
  void SetUp() override {
    options_.traces.endpoint = collector_.endpoint();
    TunesTest::SetUp();
  }
  // Once there are so many; a request has the spans of one or of several.
  std::vector<SeenSpan> AwaitSpans(size_t count) {
    std::vector<SeenSpan> spans;
    for (size_t requests = 1; spans.size() < count; ++requests) {
      const auto seen = collector_.Await(requests);
      if (seen.size() < requests) break;
      const auto more = TraceCollector::SpansOf(seen[requests - 1]);
      spans.insert(spans.end(), more.begin(), more.end());
    }
    return spans;
  }
  void Cancel(const v1::Tune& tune) {
    Context context;
    v1::CancelTuneRequest request;
    request.set_tune_id(tune.tune_id());
    request.set_reason("a mistake");
    v1::Tune ended;
    EXPECT_THAT(rpc::FromGrpc(Tunes()->CancelTune(&context, request, &ended)),
                IsOk());
  }

  TraceCollector collector_;
};

TEST_F(TracedTunesTest, ATuneIsTheParentOfItsJobs) {
  const v1::Tune tune = CreateOk(GoodSpec());
  ASSERT_THAT(AwaitJobs(tune), SizeIs(kWholeRecipes));
  clock_.Advance(absl::Seconds(7));
  Cancel(tune);
  // Of each job itself, its two tasks, and the wait of the first.
  const std::vector<SeenSpan> spans = AwaitSpans(1 + 4 * kWholeRecipes);
  const auto parent = std::find_if(spans.begin(), spans.end(), [](auto& seen) {
    return seen.span.name() == "tune";
  });
  ASSERT_NE(parent, spans.end());
  EXPECT_EQ(parent->service, "optfarm-server");
  EXPECT_EQ(parent->length(), absl::Seconds(7));
  EXPECT_EQ(parent->Attribute("optfarm.tune.id"), tune.tune_id());
  EXPECT_EQ(parent->Attribute("optfarm.tune.state"), "TUNE_CANCELLED");
  EXPECT_EQ(parent->span.parent_span_id(), "");
  size_t jobs = 0;
  for (const SeenSpan& seen : spans) {
    EXPECT_EQ(seen.span.trace_id(), parent->span.trace_id());
    if (seen.span.name() != "job") continue;
    ++jobs;
    EXPECT_EQ(seen.span.parent_span_id(), parent->span.span_id());
  }
  EXPECT_EQ(jobs, kWholeRecipes);
}

TEST_F(TracedTunesTest, ATuneIsAPartOfTheTraceThatItsJobsTagsName) {
  v1::TuneSpec spec = GoodSpec();
  spec.mutable_job()->add_tags(
      "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const v1::Tune tune = CreateOk(spec);
  ASSERT_THAT(AwaitJobs(tune), SizeIs(kWholeRecipes));
  Cancel(tune);
  std::set<std::string> names;
  for (const SeenSpan& seen : AwaitSpans(1 + 4 * kWholeRecipes)) {
    EXPECT_EQ(absl::BytesToHexString(seen.span.trace_id()),
              "0af7651916cd43dd8448eb211c80319c");
    if (seen.span.name() != "job" && seen.span.name() != "tune") continue;
    names.insert(seen.span.name());
    EXPECT_EQ(absl::BytesToHexString(seen.span.parent_span_id()),
              "b7ad6b7169203331");
  }
  EXPECT_THAT(names, SizeIs(2));
}

TEST_F(TunesTest, RestSpeaksOfThemToo) {
  const v1::Tune tune = CreateOk(GoodSpec());
  RestClient client(server_->http_address());
  const RestAnswer one = client.Get(absl::StrCat("/v1/tunes/", tune.tune_id()));
  EXPECT_EQ(one.json()["state"], "TUNE_RUNNING") << one.body;
  EXPECT_EQ(client.Get("/v1/tunes").json()["tunes"][0]["tune_id"],
            tune.tune_id());
  EXPECT_EQ(client.Get("/v1/tunes/t0").status, 404);
  EXPECT_EQ(client
                .Post(absl::StrCat("/v1/tunes/", tune.tune_id(), ":cancel"),
                      R"({"reason":"enough"})")
                .json()["failure"],
            "enough");
}

}  // namespace
}  // namespace optfarm::server
