// Benchmark tasks, devices, gates and the cache of finished work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/delivery/job_view.h"
#include "server/scheduling/completion_check.h"
#include "tests/server/scheduler_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BenchmarkSchedulingTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    Call(AgentCall("pi4"));
  }
};

TEST_F(BenchmarkSchedulingTest, BenchmarkWaitsForTheOptimizedGraph) {
  const std::string job = SubmitOk(Spec({"pi4"}));
  EXPECT_EQ(Task(job, 1).state, v1::BLOCKED);
  EXPECT_THAT(Call(AgentCall()).new_tasks(), IsEmpty());
  Complete(LeaseToWorker(), GoodReport());
  EXPECT_EQ(State(job), v1::RUNNING);
  const v1::LeasedTask lease = Lease(AgentCall());
  ASSERT_EQ(lease.benchmark().variants_size(), 2);
  EXPECT_EQ(lease.benchmark().device(), "pi4");
  EXPECT_EQ(lease.benchmark().variants(0).name(), "float");
  EXPECT_EQ(lease.benchmark().variants(1).name(), "int8");
  EXPECT_EQ(lease.benchmark().variants(1).model().digest().sha256(),
            Sha256Hex("optimized"));
  EXPECT_EQ(Complete(lease, GoodBenchmark(), "agent-1").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(State(job), v1::SUCCEEDED);
  storage::MeasurementFilter filter;
  filter.job_id = job;
  EXPECT_EQ(store_->QueryMeasurements(filter, {})->size(), 2u);
}

TEST_F(BenchmarkSchedulingTest, RepeatedBenchmarkIsStoredOnce) {
  const std::string job = SubmitOk(Spec({"pi4"}));
  Complete(LeaseToWorker(), GoodReport());
  const v1::LeasedTask lease = Lease(AgentCall());
  Complete(lease, GoodBenchmark(), "agent-1");
  Restart();
  EXPECT_EQ(Complete(lease, GoodBenchmark(), "agent-1").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  storage::MeasurementFilter filter;
  filter.job_id = job;
  EXPECT_EQ(store_->QueryMeasurements(filter, {})->size(), 2u);
}

TEST_F(BenchmarkSchedulingTest, OneTaskADeviceAtATime) {
  SubmitOk(Spec({"pi4"}));
  SubmitOk(Spec({"pi4"}));
  Complete(LeaseToWorker(), GoodReport());
  const v1::SynchronizeRequest worker = WorkerCall();
  const auto second = Call(worker);
  if (!second.new_tasks().empty()) {
    Complete(second.new_tasks(0), GoodReport());
  }
  const v1::LeasedTask lease = Lease(AgentCall());
  v1::SynchronizeRequest busy = AgentCall();
  Hold(busy, lease);
  EXPECT_THAT(Call(busy).new_tasks(), IsEmpty());
  // Not through another agent either.
  EXPECT_THAT(Call(AgentCall("pi4", true, "agent-2")).new_tasks(), IsEmpty());
  *busy.mutable_held(0)->mutable_completion() = GoodBenchmark();
  Call(busy);
  EXPECT_NE(Lease(AgentCall()).job_id(), "");
}

v1::SynchronizeRequest Tagged(v1::SynchronizeRequest call) {
  call.mutable_devices(0)->mutable_info()->add_tags("pixel");
  return call;
}

TEST_F(BenchmarkSchedulingTest, FirstFreeDeviceOfAPoolTakesTheTask) {
  Call(Tagged(AgentCall("pixel-1", /*ready=*/false, "agent-1")));
  Call(Tagged(AgentCall("pixel-2", /*ready=*/false, "agent-2")));
  const std::string job = SubmitOk(Spec({"any:pixel"}));
  Complete(LeaseToWorker(), GoodReport());
  EXPECT_EQ(Task(job, 1).device, "any:pixel");
  EXPECT_THAT(Call(AgentCall("pi4")).new_tasks(), IsEmpty());
  v1::LeasedTask lease = Lease(Tagged(AgentCall("pixel-2", true, "agent-2")));
  EXPECT_EQ(lease.benchmark().device(), "pixel-2");
  EXPECT_EQ(Task(job, 1).device, "pixel-2");
  // It breaks down: the other one may try, also after a restart.
  Complete(lease, Failing(v1::Failure::INTERNAL), "agent-2");
  EXPECT_EQ(Task(job, 1).device, "any:pixel");
  Restart();
  now_ += absl::Minutes(1);
  lease = Lease(Tagged(AgentCall("pixel-1", true, "agent-1")));
  EXPECT_EQ(lease.benchmark().device(), "pixel-1");
  Restart();
  EXPECT_EQ(Complete(lease, GoodBenchmark("pixel-1"), "agent-1").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(State(job), v1::SUCCEEDED);
  EXPECT_EQ(Task(job, 1).device, "pixel-1");
}

TEST_F(BenchmarkSchedulingTest, PoolsAndNamesAreServedByAge) {
  v1::JobSpec spec = Spec({"any:pixel"});
  spec.set_no_cache(true);
  const auto pixel = [&](bool ready) {
    return Tagged(AgentCall("pixel-1", ready, "agent-1"));
  };
  Call(pixel(false));
  const std::string first = SubmitOk(spec);
  Complete(LeaseToWorker(), GoodReport());
  spec.mutable_benchmark()->set_devices(0, "pixel-1");
  const std::string second = SubmitOk(spec);
  Complete(LeaseToWorker(), GoodReport());
  spec.mutable_benchmark()->set_devices(0, "any:pixel");
  const std::string third = SubmitOk(spec);
  Complete(LeaseToWorker(), GoodReport());
  for (const std::string& job : {first, second, third}) {
    const v1::LeasedTask lease = Lease(pixel(true));
    EXPECT_EQ(lease.job_id(), job);
    Complete(lease, GoodBenchmark("pixel-1"), "agent-1");
  }
}

TEST_F(BenchmarkSchedulingTest, PoolIsAnotherDeviceThanTheNamedOne) {
  const auto pixel = [&](const std::string& name) {
    return Tagged(AgentCall(name, true, "agent-" + name));
  };
  Call(pixel("pixel-1"));
  SubmitOk(Spec({"pixel-1", "any:pixel"}));
  Complete(LeaseToWorker(), GoodReport());
  const v1::LeasedTask named = Lease(pixel("pixel-1"));
  Complete(named, GoodBenchmark("pixel-1"), "agent-pixel-1");
  EXPECT_THAT(Call(pixel("pixel-1")).new_tasks(), IsEmpty());
  EXPECT_EQ(Lease(pixel("pixel-2")).benchmark().device(), "pixel-2");
}

TEST_F(BenchmarkSchedulingTest, UnknownPoolsAreRefused) {
  Call(Tagged(AgentCall("pixel-1", true, "agent-1")));
  EXPECT_THAT(Submit(Spec({"any:pixle"})).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no device has the tag 'pixle'")));
  EXPECT_THAT(CheckJobSpec(Spec({"any:"})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(BenchmarkSchedulingTest, UnreadyDeviceGetsNothing) {
  SubmitOk(Spec({"pi4"}));
  Complete(LeaseToWorker(), GoodReport());
  EXPECT_THAT(Call(AgentCall("pi4", false)).new_tasks(), IsEmpty());
}

TEST_F(BenchmarkSchedulingTest, DeadAgentsTaskGoesToItsSuccessor) {
  const std::string job = SubmitOk(Spec({"pi4"}));
  Complete(LeaseToWorker(), GoodReport());
  Lease(AgentCall());
  // Restarted: a new process with no memory.
  EXPECT_THAT(Call(AgentCall("pi4", true, "agent-1b")).new_tasks(), IsEmpty());
  now_ += options_.lease;
  scheduler_->Tick(now_);
  now_ += options_.retry_base;
  const v1::LeasedTask lease = Lease(AgentCall("pi4", true, "agent-1b"));
  EXPECT_EQ(lease.attempt(), 2);
  Complete(lease, GoodBenchmark(), "agent-1b");
  EXPECT_EQ(State(job), v1::SUCCEEDED);
}

TEST_F(BenchmarkSchedulingTest, RefusesMeasurementsThatCannotBe) {
  const std::string job = SubmitOk(Spec({"pi4"}));
  Complete(LeaseToWorker(), GoodReport());
  v1::Completion other_device = GoodBenchmark("pi5");
  v1::Completion nan = GoodBenchmark();
  nan.mutable_benchmark()->mutable_measurements(0)->set_median_us(
      std::numeric_limits<double>::quiet_NaN());
  v1::Completion other_variant = GoodBenchmark();
  other_variant.mutable_benchmark()->mutable_measurements(1)->set_variant("x");
  v1::Completion not_asked = GoodBenchmark();
  not_asked.mutable_benchmark()->mutable_measurements(1)->set_variant(
      "int8@tflite");
  v1::Completion chatty = GoodBenchmark();
  chatty.mutable_benchmark()
      ->mutable_measurements(0)
      ->add_engine_failures()
      ->set_reason(std::string(5000, 'x'));
  EXPECT_THAT(
      CheckCompletion(not_asked, Task(job, 1), Spec({"pi4"})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int8@tflite")));
  EXPECT_THAT(CheckCompletion(chatty, Task(job, 1), Spec({"pi4"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("5000 bytes of an engine")));
  for (const v1::Completion& bad : {other_device, nan, other_variant}) {
    const v1::LeasedTask lease = Lease(AgentCall());
    EXPECT_EQ(Complete(lease, bad, "agent-1").verdict(),
              v1::TaskVerdict::COMPLETION_REFUSED);
    now_ += options_.retry_max;
  }
  EXPECT_EQ(State(job), v1::FAILED);
}

TEST_F(BenchmarkSchedulingTest, EnginesGetTheFilesOfTheirFormats) {
  v1::SynchronizeRequest agent = AgentCall();
  v1::EngineInfo& engine =
      *agent.mutable_devices(0)->mutable_info()->add_engines();
  engine.set_name("onnxruntime");
  engine.set_version("1.30.0");
  Call(agent);
  v1::JobSpec spec = Spec({"pi4"});
  spec.mutable_benchmark()->add_engines("onnxruntime");
  spec.mutable_recipe()->add_transforms()->set_name("strip_unused_nodes");
  OPTFARM_ASSERT_OK_AND_ASSIGN(spec, CheckJobSpec(spec));
  EXPECT_THAT(spec.out_formats(), ::testing::ElementsAre(v1::PB, v1::ONNX));
  spec.mutable_model()->set_name("model.onnx");
  const std::string job = SubmitOk(spec);
  v1::Completion report = GoodReport();
  for (const std::string name : {"optimized.onnx", "float.pb"}) {
    v1::Artifact& artifact = *report.mutable_report()->add_artifacts();
    artifact.set_name(name);
    *artifact.mutable_digest() = Put(name);
  }
  v1::ExportedModel& made = *report.mutable_report()->add_exports();
  made.set_format(v1::ONNX);
  made.set_artifact("optimized.onnx");
  v1::SynchronizeRequest writer = WorkerCall();
  writer.set_writes_out_formats(true);
  Complete(Lease(writer), report);
  const v1::LeasedTask lease = Lease(agent);
  ASSERT_EQ(lease.benchmark().variants_size(), 2);
  const v1::BenchmarkVariant& original = lease.benchmark().variants(0);
  const v1::BenchmarkVariant& optimized = lease.benchmark().variants(1);
  EXPECT_EQ(original.model().name(), "float.pb");
  ASSERT_EQ(original.engine_models_size(), 1);
  EXPECT_EQ(original.engine_models(0).model().digest().sha256(),
            Sha256Hex("model"));
  ASSERT_EQ(optimized.engine_models_size(), 1);
  EXPECT_EQ(optimized.engine_models(0).engine(), "onnxruntime");
  EXPECT_EQ(optimized.engine_models(0).model().digest().sha256(),
            Sha256Hex("optimized.onnx"));
  v1::Completion measured = GoodBenchmark();
  v1::Measurement theirs = measured.benchmark().measurements(1);
  theirs.set_variant("int8@onnxruntime");
  theirs.set_engine("onnxruntime 1.30.0");
  *measured.mutable_benchmark()->add_measurements() = theirs;
  EXPECT_EQ(Complete(lease, measured, "agent-1").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(State(job), v1::SUCCEEDED);
}

TEST_F(BenchmarkSchedulingTest, RefusesEnginesThatNoDeviceHas) {
  v1::JobSpec spec = Spec({"pi4"});
  spec.mutable_benchmark()->add_engines("tflite");
  EXPECT_THAT(Submit(spec),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("start its agent with --engine=tflite:FILE")));
  v1::SynchronizeRequest other = AgentCall("pi5", true, "agent-2");
  other.mutable_devices(0)->mutable_info()->add_engines()->set_name("tflite");
  Call(other);
  EXPECT_THAT(Submit(spec), StatusIs(absl::StatusCode::kNotFound,
                                     HasSubstr("devices that have it: pi5")));
  // One device that has it is enough.
  spec.mutable_benchmark()->add_devices("pi5");
  EXPECT_THAT(Submit(spec), IsOk());
  spec.mutable_recipe()->add_transforms()->set_name("strip_unused_nodes");
  spec.mutable_benchmark()->add_engines("ncnn");
  EXPECT_THAT(CheckJobSpec(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("give onnxruntime or tflite")));
}

TEST_F(BenchmarkSchedulingTest, FailedDeviceDoesNotCostTheOthers) {
  Call(AgentCall("pi5", true, "agent-2"));
  const std::string job = SubmitOk(Spec({"pi4", "pi5"}));
  Complete(LeaseToWorker(), GoodReport());
  Complete(Lease(AgentCall("pi4")), Failing(v1::Failure::USER), "agent-1");
  EXPECT_EQ(State(job), v1::RUNNING);
  Complete(Lease(AgentCall("pi5", true, "agent-2")), GoodBenchmark("pi5"),
           "agent-2");
  EXPECT_EQ(State(job), v1::FAILED);
  storage::MeasurementFilter filter;
  filter.job_id = job;
  EXPECT_EQ(store_->QueryMeasurements(filter, {})->size(), 2u);
}

TEST_F(BenchmarkSchedulingTest, MissedGateFailsTheJobAfterMeasuring) {
  const std::string job = SubmitOk(Spec({"pi4"}));
  v1::Completion completion = GoodReport();
  completion.mutable_report()->set_passed(false);
  v1::GateResult& gate = *completion.mutable_report()->add_gates();
  gate.set_name("max_accuracy_drop");
  gate.set_message("47.4 points of top-1 lost, allowed are 1");
  Complete(LeaseToWorker(), completion);
  EXPECT_EQ(State(job), v1::RUNNING);
  Complete(Lease(AgentCall()), GoodBenchmark(), "agent-1");
  const storage::StoredJob ended = Job(job);
  EXPECT_EQ(ended.job.state, v1::FAILED);
  EXPECT_EQ(ended.job.failure->code(), "GATE_FAILED");
  EXPECT_THAT(ended.job.failure->message(), HasSubstr("47.4 points"));
}

TEST_F(BenchmarkSchedulingTest, ChecksSpeedupOnTheDevice) {
  for (const double int8_median : {50.0, 90.0}) {
    v1::JobSpec spec = Spec({"pi4"});
    spec.set_no_cache(true);
    spec.mutable_recipe()->mutable_bounds()->set_min_speedup(1.5);
    const std::string job = SubmitOk(spec);
    Complete(LeaseToWorker(), GoodReport());
    Complete(Lease(AgentCall()), GoodBenchmark("pi4", int8_median), "agent-1");
    EXPECT_EQ(State(job), int8_median == 50 ? v1::SUCCEEDED : v1::FAILED);
    ASSERT_EQ(Job(job).job.gates.size(), 1u);
    EXPECT_EQ(Job(job).job.gates[0].name(), "min_speedup[pi4,1]");
  }
}

TEST_F(BenchmarkSchedulingTest, UnknownDeviceIsRefusedWithNearestNames) {
  EXPECT_THAT(Submit(Spec({"pi5"})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'pi4'")));
}

TEST_F(BenchmarkSchedulingTest, DeviceStates) {
  const auto state = [&] {
    return scheduler_->FindDevice("pi4", now_)->state();
  };
  EXPECT_EQ(state(), v1::Device::AVAILABLE);
  SubmitOk(Spec({"pi4"}));
  Complete(LeaseToWorker(), GoodReport());
  const v1::LeasedTask lease = Lease(AgentCall());
  EXPECT_EQ(state(), v1::Device::BUSY);
  Complete(lease, GoodBenchmark(), "agent-1");
  Call(AgentCall());
  EXPECT_EQ(state(), v1::Device::AVAILABLE);
  now_ += options_.offline_after + absl::Seconds(1);
  EXPECT_EQ(state(), v1::Device::OFFLINE);
  v1::SynchronizeRequest disabled = AgentCall();
  disabled.mutable_devices(0)->set_disabled(true);
  Call(disabled);
  EXPECT_EQ(state(), v1::Device::DISABLED);
  Restart();
  EXPECT_THAT(scheduler_->FindDevice("pi4", now_), IsOk());
  EXPECT_THAT(scheduler_->FindDevice("pi", now_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'pi4'")));
}

TEST_F(BenchmarkSchedulingTest, SecondSubmitIsAnsweredFromTheFirst) {
  const std::string first = SubmitOk(Spec());
  Complete(LeaseToWorker(), GoodReport());
  const std::string second = SubmitOk(Spec());
  EXPECT_EQ(State(second), v1::SUCCEEDED);
  EXPECT_TRUE(Job(second).job.from_cache);
  EXPECT_EQ(Job(second).job.cached_from_job_id, first);
  EXPECT_EQ(store_->GetReport(second)->optimized_model().sha256(),
            Sha256Hex("optimized"));
  EXPECT_EQ(ToProto(Job(second)).artifacts(0).name(), "optimized.pb");
}

TEST_F(BenchmarkSchedulingTest, CachedJobIsStillMeasured) {
  SubmitOk(Spec());
  Complete(LeaseToWorker(), GoodReport());
  const std::string second = SubmitOk(Spec({"pi4"}));
  EXPECT_EQ(State(second), v1::QUEUED);
  Complete(Lease(AgentCall()), GoodBenchmark(), "agent-1");
  EXPECT_EQ(State(second), v1::SUCCEEDED);
}

TEST_F(BenchmarkSchedulingTest, CacheIsKeyedByEverythingThatMatters) {
  SubmitOk(Spec());
  Complete(LeaseToWorker(), GoodReport());
  v1::JobSpec no_cache = Spec();
  no_cache.set_no_cache(true);
  EXPECT_EQ(State(SubmitOk(no_cache)), v1::QUEUED);
  v1::JobSpec other_output = Spec();
  other_output.add_outputs("softmax");
  EXPECT_EQ(State(SubmitOk(other_output)), v1::QUEUED);
  v1::JobSpec other_recipe = Spec();
  other_recipe.mutable_recipe()->mutable_bounds()->set_max_size_ratio(0.3);
  EXPECT_EQ(State(SubmitOk(other_recipe)), v1::QUEUED);
  v1::JobSpec renamed = Spec();
  renamed.mutable_model()->set_name("copy of model.pb");
  EXPECT_EQ(State(SubmitOk(renamed)), v1::SUCCEEDED);
  // A worker of another version comes along.
  v1::SynchronizeRequest newer = WorkerCall("worker-9", 0);
  newer.set_build_version("tool-2");
  Call(newer);
  EXPECT_EQ(State(SubmitOk(Spec())), v1::QUEUED);
}

TEST_F(BenchmarkSchedulingTest, CacheIsNotUsedWhenItsBlobsAreGone) {
  SubmitOk(Spec());
  Complete(LeaseToWorker(), GoodReport());
  now_ += absl::Hours(2);
  ASSERT_THAT(blobs_->Evict({}, now_, int64_t{1} << 40), IsOk());
  EXPECT_EQ(State(SubmitOk(Spec())), v1::QUEUED);
}

}  // namespace
}  // namespace optfarm::server
