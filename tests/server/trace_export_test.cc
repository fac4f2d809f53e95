// Traces of jobs, as a collector gets them from a server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/delivery/trace_exporter.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"
#include "tests/support/trace_collector.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::SeenSpan;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TraceCollector;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kParent[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kTag[] =
    "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kParentTrace[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kParentSpan[] = "b7ad6b7169203331";

std::string Hex(const std::string& bytes) {
  return absl::BytesToHexString(bytes);
}

class TraceExportTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.traces.endpoint = collector_.endpoint();
    options_.traces.headers = {{"X-Key", "abc"}};
    options_.http_address = "127.0.0.1:0";
    ServerFixture::SetUp();
  }
  v1::SubmitJobRequest Fresh() {
    v1::SubmitJobRequest request = GoodSubmit();
    request.mutable_spec()->set_no_cache(true);
    return request;
  }
  v1::SynchronizeRequest AgentCall() {
    v1::SynchronizeRequest request;
    request.set_participant_id("agent-1");
    request.set_name("agent-1");
    request.set_kind(v1::SynchronizeRequest::AGENT);
    v1::DeviceStatus& status = *request.add_devices();
    status.mutable_info()->set_name("pi4");
    status.set_ready(true);
    return request;
  }
  // The one task that the call brings.
  v1::LeasedTask Lease(const v1::SynchronizeRequest& call) {
    const auto response = Synchronize(call);
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok() || response->new_tasks_size() != 1) {
      ADD_FAILURE() << "there is no task";
      return {};
    }
    return response->new_tasks(0);
  }
  // What the task's holder says of it.
  void Report(v1::SynchronizeRequest call, const v1::LeasedTask& lease,
              const std::string& progress, v1::Completion completion = {}) {
    call.set_free_slots(0);
    v1::HeldTask& held = *call.add_held();
    held.set_task_id(lease.task_id());
    held.set_attempt(lease.attempt());
    held.set_progress_message(progress);
    held.set_progress(0.5);
    if (completion.outcome_case() != v1::Completion::OUTCOME_NOT_SET) {
      *held.mutable_completion() = std::move(completion);
    }
    EXPECT_THAT(Synchronize(call), IsOk());
  }
  v1::Completion Failing(v1::Failure::Kind kind, const std::string& code) {
    v1::Completion completion;
    completion.mutable_failure()->set_kind(kind);
    completion.mutable_failure()->set_code(code);
    completion.mutable_failure()->set_message("the disk is full");
    return completion;
  }
  v1::Completion Measured() {
    v1::Completion completion;
    v1::Measurement& one = *completion.mutable_benchmark()->add_measurements();
    one.set_device("pi4");
    one.set_variant("int8");
    one.set_threads(1);
    one.set_runs(50);
    one.set_median_us(125);
    *one.mutable_model() = Put("optimized");
    return completion;
  }
  // The spans of one job's trace, by name; the last of several.
  std::map<std::string, SeenSpan> Trace(size_t requests = 1) {
    const auto all = collector_.Await(requests);
    EXPECT_THAT(all, SizeIs(requests));
    std::map<std::string, SeenSpan> spans;
    if (all.empty()) return spans;
    for (SeenSpan& span : TraceCollector::SpansOf(all.back())) {
      spans[span.span.name()] = span;
    }
    return spans;
  }
  std::string Metrics() {
    return RestClient(server_->http_address()).Get("/metrics").body;
  }
  // Until the server has counted it, which is soon after it happened.
  void AwaitMetric(const std::string& line) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (!absl::StrContains(Metrics(), line + "\n")) {
      ASSERT_LT(absl::Now(), deadline) << line << " in\n" << Metrics();
    }
  }

  TraceCollector collector_;
};

TEST_F(TraceExportTest, ShowsWhoWaitedAndWhoWorkedHowLong) {
  ASSERT_THAT(Synchronize(AgentCall()), IsOk());
  v1::SubmitJobRequest request = Fresh();
  request.mutable_spec()->set_name("nightly");
  request.mutable_spec()->add_tags("commit=1a2b");
  request.mutable_spec()->mutable_benchmark()->add_devices("pi4");
  const absl::Time begin = clock_.Now();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(request));
  clock_.Advance(absl::Seconds(5));
  const v1::LeasedTask optimize = Lease(WorkerCall());
  clock_.Advance(absl::Seconds(1));
  Report(WorkerCall(), optimize, "loading");
  clock_.Advance(absl::Seconds(2));
  Report(WorkerCall(), optimize, "waiting: 71 degrees");
  clock_.Advance(absl::Seconds(2));
  Report(WorkerCall(), optimize, "waiting: 70 degrees");
  clock_.Advance(absl::Seconds(4));
  v1::Completion report = GoodCompletion();
  v1::TransformStats& transform = *report.mutable_report()->add_transforms();
  transform.set_name("fold_constants");
  transform.set_seconds(0.25);
  Report(WorkerCall(), optimize, "waiting: 69 degrees", report);
  clock_.Advance(absl::Seconds(3));
  const v1::LeasedTask benchmark = Lease(AgentCall());
  clock_.Advance(absl::Seconds(10));
  Report(AgentCall(), benchmark, "measuring with 1 thread", Measured());

  const std::map<std::string, SeenSpan> spans = Trace();
  const SeenSpan& root = spans.at("job");
  EXPECT_EQ(root.service, "optfarm-server");
  EXPECT_EQ(Hex(root.span.trace_id()), Sha256Hex(job.job_id()).substr(0, 32));
  EXPECT_EQ(root.span.parent_span_id(), "");
  EXPECT_EQ(root.start(), begin);
  EXPECT_EQ(root.length(), absl::Seconds(27));
  EXPECT_EQ(root.span.status().code(), otlp::Status::STATUS_CODE_OK);
  EXPECT_EQ(root.Attribute("optfarm.job.id"), job.job_id());
  EXPECT_EQ(root.Attribute("optfarm.job.name"), "nightly");
  EXPECT_EQ(root.Attribute("optfarm.recipe"), "int8");
  EXPECT_EQ(root.Attribute("optfarm.project"), "default");
  EXPECT_EQ(root.Attribute("optfarm.model.name"), "model.pb");
  EXPECT_EQ(root.Attribute("optfarm.model.sha256"),
            job.spec().model().digest().sha256());

  const SeenSpan& task = spans.at("optimize task");
  EXPECT_EQ(task.span.parent_span_id(), root.span.span_id());
  EXPECT_EQ(task.length(), absl::Seconds(14));
  const SeenSpan& attempt = spans.at("optimize attempt");
  EXPECT_EQ(attempt.service, "optfarm-worker");
  EXPECT_EQ(attempt.instance, "worker-1");
  EXPECT_EQ(attempt.span.parent_span_id(), task.span.span_id());
  EXPECT_EQ(attempt.start(), begin + absl::Seconds(5));
  EXPECT_EQ(attempt.length(), absl::Seconds(9));
  EXPECT_EQ(attempt.Attribute("optfarm.outcome"), "done");
  ASSERT_EQ(attempt.span.events_size(), 1);
  EXPECT_EQ(SeenSpan::ValueOf(attempt.span.events(0).attributes(),
                              "optfarm.transform"),
            "fold_constants");
  const SeenSpan& loading = spans.at("loading");
  EXPECT_EQ(loading.service, "optfarm-worker");
  EXPECT_EQ(loading.span.parent_span_id(), attempt.span.span_id());
  EXPECT_EQ(loading.start(), begin + absl::Seconds(6));
  EXPECT_EQ(loading.length(), absl::Seconds(2));
  EXPECT_EQ(spans.at("waiting").length(), absl::Seconds(6));
  EXPECT_EQ(spans.at("waiting").Attribute("optfarm.message"),
            "waiting: 71 degrees");

  const SeenSpan& measuring = spans.at("benchmark attempt");
  EXPECT_EQ(measuring.service, "optfarm-agent");
  EXPECT_EQ(measuring.instance, "pi4");
  EXPECT_EQ(measuring.length(), absl::Seconds(10));
  EXPECT_EQ(measuring.span.parent_span_id(),
            spans.at("benchmark task").span.span_id());
  ASSERT_EQ(measuring.span.events_size(), 1);
  EXPECT_EQ(SeenSpan::ValueOf(measuring.span.events(0).attributes(),
                              "optfarm.median_us"),
            "125");
  // The benchmark task's, which comes last.
  EXPECT_EQ(spans.at("wait").length(), absl::Seconds(3));

  const TraceCollector::Request sent = collector_.Await(1).at(0);
  EXPECT_EQ(sent.target, "/v1/traces");
  EXPECT_EQ(sent.headers.at("content-type"), "application/x-protobuf");
  EXPECT_EQ(sent.headers.at("X-Key"), "abc");
  std::set<std::string> ids;
  for (const SeenSpan& span : TraceCollector::SpansOf(sent)) {
    EXPECT_EQ(span.span.trace_id(), root.span.trace_id());
    EXPECT_THAT(span.span.span_id(), SizeIs(8));
    EXPECT_TRUE(ids.insert(span.span.span_id()).second) << span.span.name();
    EXPECT_LE(span.start(), span.end());
  }
  EXPECT_THAT(ids, SizeIs(10));
  AwaitMetric("optfarm_traces_total{outcome=\"sent\"} 1");
}

TEST_F(TraceExportTest, AttemptsThatFailedSayWhy) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(Fresh()));
  Report(WorkerCall(), Lease(WorkerCall()), "loading",
         Failing(v1::Failure::INTERNAL, "RESOURCE_EXHAUSTED"));
  clock_.Advance(absl::Minutes(1));
  Report(WorkerCall(), Lease(WorkerCall()), "loading",
         Failing(v1::Failure::USER, "INVALID_ARGUMENT"));
  std::vector<std::string> attempts;
  int waits = 0;
  for (const SeenSpan& seen :
       TraceCollector::SpansOf(collector_.Await(1).at(0))) {
    waits += seen.span.name() == "wait";
    if (seen.span.name() != "optimize attempt") continue;
    EXPECT_EQ(seen.span.status().code(), otlp::Status::STATUS_CODE_ERROR);
    EXPECT_EQ(seen.span.status().message(), "the disk is full");
    attempts.push_back(seen.Attribute("error.type"));
  }
  EXPECT_THAT(attempts, ElementsAre("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"));
  EXPECT_EQ(waits, 2);
  const std::map<std::string, SeenSpan> spans = Trace();
  EXPECT_EQ(spans.at("job").span.status().code(),
            otlp::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(spans.at("job").Attribute("optfarm.job.state"), "FAILED");
}

TEST_F(TraceExportTest, AnAttemptThatWasGivenBackDidNotFail) {
  ASSERT_THAT(Submit(Fresh()), IsOk());
  Report(WorkerCall(), Lease(WorkerCall()), "loading",
         Failing(v1::Failure::INTERNAL, "RESOURCE_EXHAUSTED"));
  clock_.Advance(absl::Minutes(1));
  v1::Completion released;
  released.mutable_released()->set_reason("its holder shuts down");
  Report(WorkerCall(), Lease(WorkerCall()), "loading", released);
  RunOptimize();
  std::vector<std::string> outcomes;
  for (const SeenSpan& seen :
       TraceCollector::SpansOf(collector_.Await(1).at(0))) {
    if (seen.span.name() != "optimize attempt") continue;
    outcomes.push_back(absl::StrCat(seen.Attribute("optfarm.outcome"), " ",
                                    seen.span.status().message()));
  }
  EXPECT_THAT(outcomes,
              ElementsAre("failed the disk is full", "released ", "done "));
}

TEST_F(TraceExportTest, AJobFromTheCacheHasNoAttempts) {
  ASSERT_THAT(Submit(GoodSubmit()), IsOk());
  v1::SynchronizeRequest call = WorkerCall();
  call.set_build_version("tool-1");
  Report(call, Lease(call), "done", GoodCompletion());
  collector_.Await(1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  ASSERT_EQ(job.state(), v1::SUCCEEDED);
  const std::map<std::string, SeenSpan> spans = Trace(2);
  EXPECT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans.at("job").Attribute("optfarm.cached_from"),
            job.cached_from_job_id());
  EXPECT_EQ(spans.at("optimize task").length(), absl::ZeroDuration());
}

TEST_F(TraceExportTest, IsTriedAgainWhenTheCollectorAsksForIt) {
  collector_.AnswerNext({.status = 503});
  collector_.AnswerNext({.status = 429, .retry_after = "30"});
  ASSERT_THAT(Submit(Fresh()), IsOk());
  const absl::Time begin = clock_.Now();
  RunOptimize();
  const auto requests = collector_.Await(3);
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_EQ(requests[0].body, requests[1].body);
  EXPECT_EQ(requests[0].body, requests[2].body);
  // The fake clock says how long was waited.
  EXPECT_GE(clock_.Now() - begin, absl::Seconds(30.8));
  EXPECT_LE(clock_.Now() - begin, absl::Seconds(31.2));
  AwaitMetric("optfarm_traces_total{outcome=\"sent\"} 1");
}

TEST_F(TraceExportTest, WhatTheCollectorRefusesIsSentOnceAndCounted) {
  collector_.AnswerNext({.status = 400});
  ASSERT_THAT(Submit(Fresh()), IsOk());
  RunOptimize();
  AwaitMetric("optfarm_traces_total{outcome=\"refused\"} 1");
  EXPECT_THAT(collector_.Await(1), SizeIs(1));
  // The next one is another matter.
  otlp::ExportTraceServiceResponse partial;
  partial.mutable_partial_success()->set_rejected_spans(2);
  partial.mutable_partial_success()->set_error_message("too many");
  collector_.AnswerNext({.body = partial.SerializeAsString()});
  ASSERT_THAT(Submit(Fresh()), IsOk());
  RunOptimize();
  AwaitMetric("optfarm_trace_spans_rejected_total 2");
  AwaitMetric("optfarm_traces_total{outcome=\"sent\"} 1");
}

TEST_F(TraceExportTest, ACollectorThatIsAwayDelaysNoJob) {
  // Nobody listens there.
  options_.traces.endpoint = "http://127.0.0.1:1";
  Restart();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(Fresh()));
  RunOptimize();
  AwaitMetric("optfarm_traces_total{outcome=\"gave_up\"} 1");
  EXPECT_EQ(GetJob(job.job_id())->state(), v1::SUCCEEDED);
  EXPECT_THAT(Metrics(), HasSubstr("optfarm_traces_waiting 0\n"));
}

TEST_F(TraceExportTest, TheServerStopsWhileTheCollectorHoldsTheConnection) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor silent(
      context, {boost::asio::ip::make_address("127.0.0.1"), 0});
  options_.traces.endpoint =
      absl::StrCat("http://127.0.0.1:", silent.local_endpoint().port());
  options_.traces.max_waiting = 1;
  Restart();
  ASSERT_THAT(Submit(Fresh()), IsOk());
  RunOptimize();
  boost::asio::ip::tcp::socket socket = silent.accept();
  // One waits behind it, and for another there is no room.
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(Submit(Fresh()), IsOk());
    RunOptimize();
  }
  EXPECT_THAT(Metrics(),
              HasSubstr("optfarm_traces_total{outcome=\"queue_full\"} 1\n"));
  EXPECT_THAT(Metrics(), HasSubstr("optfarm_traces_waiting 1\n"));
  server_.reset();
}

TEST_F(TraceExportTest, IsAPartOfTheCallersTraceAlsoAfterARestart) {
  Context context;
  context.AddMetadata("traceparent", kParent);
  v1::SubmitJobResponse response;
  const v1::SubmitJobRequest request = Fresh();
  ASSERT_TRUE(jobs_->SubmitJob(&context, request, &response).ok());
  EXPECT_THAT(response.job().spec().tags(), ElementsAre(kTag));
  Restart();
  RunOptimize();
  const std::map<std::string, SeenSpan> spans = Trace();
  EXPECT_EQ(Hex(spans.at("job").span.trace_id()), kParentTrace);
  EXPECT_EQ(Hex(spans.at("job").span.parent_span_id()), kParentSpan);
  EXPECT_EQ(spans.at("job").span.flags(), 0x301u);
  EXPECT_EQ(Hex(spans.at("optimize attempt").span.trace_id()), kParentTrace);
}

TEST_F(TraceExportTest, TheCallersSpanComesOverHttpAsAHeaderOrATag) {
  const std::string digest = Fresh().spec().model().digest().sha256();
  const std::string spec = absl::StrCat(
      R"("no_cache":true,"model":{"name":"model.pb","digest":{"sha256":")",
      digest,
      R"(","size_bytes":3}},"recipe":{"name":"int8","transform_string":)",
      R"("fold_constants"})");
  RestClient client(server_->http_address());
  // The tags of the job that is made.
  const auto submit = [&](const std::string& tags, const std::string& header) {
    const RestAnswer answer = client.Post(
        "/v1/jobs", absl::StrCat("{\"spec\":{", spec, ",\"tags\":", tags, "}}"),
        {{"Traceparent", header}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["job"]["spec"]["tags"].dump();
  };
  EXPECT_EQ(submit(R"(["nightly"])", kParent),
            absl::StrCat(R"(["nightly",")", kTag, R"("])"));
  // What the job says itself counts more.
  EXPECT_EQ(submit(R"(["traceparent=mine"])", kParent),
            R"(["traceparent=mine"])");
  // What later versions add is left out, and what is malformed counts as none.
  EXPECT_EQ(submit("[]", absl::StrCat("cc", kParent + 2, "-more")),
            absl::StrCat(R"(["traceparent=cc)", kParent + 2, R"("])"));
  EXPECT_EQ(submit(R"(["a"])", "00-nonsense"), R"(["a"])");
  // There is no room for one more.
  std::vector<std::string> full;
  for (int i = 0; i < 16; ++i) full.push_back(absl::StrCat("\"t", i, "\""));
  const std::string tags = absl::StrCat("[", absl::StrJoin(full, ","), "]");
  EXPECT_EQ(submit(tags, kParent), tags);
}

TEST_F(TraceExportTest, ATraceThatTheCallerDropsIsNotSent) {
  v1::SubmitJobRequest request = Fresh();
  std::string dropped = kParent;
  dropped.back() = '0';
  request.mutable_spec()->add_tags("traceparent=" + dropped);
  ASSERT_THAT(Submit(request), IsOk());
  RunOptimize();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(Fresh()));
  RunOptimize();
  EXPECT_EQ(Trace().at("job").Attribute("optfarm.job.id"), job.job_id());
}

TEST_F(TraceExportTest, ARetryOfASubmitMayComeFromAnotherSpan) {
  v1::SubmitJobRequest request = Fresh();
  request.set_client_request_id("build-1");
  const auto submit = [&](const std::string& parent) {
    Context context;
    context.AddMetadata("traceparent", parent);
    v1::SubmitJobResponse response;
    EXPECT_TRUE(jobs_->SubmitJob(&context, request, &response).ok());
    return response.job();
  };
  const v1::Job first = submit(kParent);
  const v1::Job second =
      submit("00-11111111111111111111111111111111-2222222222222222-01");
  EXPECT_EQ(first.job_id(), second.job_id());
  EXPECT_THAT(second.spec().tags(), ElementsAre(kTag));
}

TEST_F(TraceExportTest, NeedsAnAddressBeforeTheServerStarts) {
  ServerOptions second = options_;
  second.data_dir = JoinPath(folder_, "second");
  second.traces.endpoint = "collector:4318";
  EXPECT_THAT(Server::Start(second).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--otlp_endpoint")));
  second.traces.endpoint = "";
  EXPECT_THAT(Server::Start(second).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("--otlp_headers_file")));
}

}  // namespace
}  // namespace optfarm::server
