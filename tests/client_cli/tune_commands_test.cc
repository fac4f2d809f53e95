// optctl tune and tunes, against a farm in memory.

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/client_cli/farm_commands_fixture.h"

namespace optfarm::client_cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class TuneCommandsTest : public FarmCommandsTest {
 protected:
  TuneCommandsTest() {
    EXPECT_TRUE(MakeFolders(pictures_).ok());
    Write("pictures/a.png", "a");
    AddArtifact("optimized.pb", "graph");
    *farm_.job.mutable_report()->mutable_optimized_model() =
        farm_.job.artifacts(0).digest();
    farm_.job.mutable_spec()->mutable_recipe()->set_name("tune-int8");
    farm_.job.mutable_spec()->mutable_recipe()->set_transform_string(
        "fold_constants");
  }

  static v1::Tune TuneIn(v1::TuneState state) {
    v1::Tune tune;
    tune.set_tune_id("t1");
    tune.set_job_name("tune-abc");
    tune.set_state(state);
    tune.set_progress("int8, 1 of 6");
    return tune;
  }
  // One that has found int8.
  static v1::Tune Ended() {
    v1::Tune tune = TuneIn(v1::TUNE_SUCCEEDED);
    v1::TuneReport& report = *tune.mutable_report();
    report.set_model_name("model.pbtxt");
    report.set_measure(v1::TuneReport::AGREEMENT);
    report.set_objective(v1::TuneReport::LATENCY);
    report.set_bound(98);
    v1::TunedDevice& device = *report.add_devices();
    device.set_device("pi4");
    device.set_float_us(2000);
    device.set_recommended("int8");
    v1::TunedVariant& variant = *device.add_variants();
    variant.set_name("int8");
    variant.set_job_id("j1");
    variant.set_latency_us(1000);
    variant.set_latency_low_us(990);
    variant.set_latency_high_us(1010);
    variant.set_speedup(2);
    variant.set_speedup_low(1.9);
    variant.set_speedup_high(2.1);
    variant.set_quality(99);
    variant.set_meets_bound(true);
    return tune;
  }
  ExitCode Tune(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"tune", model_,
                                      "--calibration=" + pictures_};
    words.insert(words.end(), more.begin(), more.end());
    return CodeOf(words);
  }

  const std::string pictures_ = JoinPath(folder_, "pictures");
};

TEST_F(TuneCommandsTest, FollowsTheTuneThatItBegins) {
  farm_.tunes = {TuneIn(v1::TUNE_RUNNING), TuneIn(v1::TUNE_RUNNING),
                 FromServer(absl::UnavailableError("restarting")), Ended()};
  EXPECT_EQ(Tune({"--min_agreement=98", "--budget=30m", "--one_for_all"}),
            ExitCode::kOk)
      << message_;
  ASSERT_THAT(farm_.tune_requests, SizeIs(1));
  const v1::TuneSpec& spec = farm_.tune_requests[0].spec();
  EXPECT_THAT(spec.devices(), ElementsAre("pi4"));
  EXPECT_EQ(spec.measure(), v1::TuneReport::AGREEMENT);
  EXPECT_EQ(spec.bound(), 98);
  EXPECT_EQ(spec.budget().seconds(), 1800);
  EXPECT_TRUE(spec.one_for_all());
  EXPECT_EQ(spec.job().recipe_source_case(),
            v1::JobSpec::RECIPE_SOURCE_NOT_SET);
  EXPECT_TRUE(farm_.blobs.contains(spec.job().model().digest().sha256()));
  EXPECT_THAT(err_, HasSubstr("optctl list --name=tune-abc"));
  EXPECT_THAT(out_, AllOf(HasSubstr("On pi4: ship int8"),
                          HasSubstr("optctl download j1")));
}

TEST_F(TuneCommandsTest, ThreadsAndProcessorsArePartOfTheQuestion) {
  farm_.tunes = {Ended()};
  EXPECT_EQ(Tune({"--threads=1,2,4", "--cpus=0,3"}), ExitCode::kOk) << message_;
  ASSERT_THAT(farm_.tune_requests, SizeIs(1));
  EXPECT_THAT(farm_.tune_requests[0].spec().thread_counts(),
              ElementsAre(1, 2, 4));
  EXPECT_EQ(farm_.tune_requests[0].spec().threads(), 0);
  EXPECT_THAT(farm_.tune_requests[0].spec().cpus(), ElementsAre(0, 3));
  EXPECT_EQ(Tune({"--cpus=fast"}), ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("such as 0,1"));
}

TEST_F(TuneCommandsTest, ShowsPredictionsThreadsAndTheFront) {
  v1::Tune tune = Ended();
  v1::TunedDevice& device = *tune.mutable_report()->mutable_devices(0);
  device.set_recommended_threads(2);
  device.mutable_variants(0)->set_threads(2);
  device.mutable_variants(0)->set_predicted_us(1040);
  v1::TunedVariant& other = *device.add_variants();
  other = device.variants(0);
  other.set_threads(1);
  other.set_latency_us(1900);
  v1::FrontStep& step = *device.add_front_steps();
  step.set_from("int8");
  step.set_to("int8-float1-abcd");
  step.set_from_threads(2);
  step.set_to_threads(1);
  step.set_latency_us(250);
  step.set_quality(0.4);
  step.set_file_bytes(-2000);
  step.add_layers("conv1");
  device.set_known_steps(30);
  device.set_estimated_steps(2);
  farm_.tunes = {tune};
  EXPECT_EQ(CodeOf({"tunes", "show", "t1"}), ExitCode::kOk) << message_;
  EXPECT_THAT(out_,
              AllOf(HasSubstr("ship int8 on 2 threads"), HasSubstr("PREDICTED"),
                    HasSubstr("THR"), HasSubstr("1.04 ms"),
                    HasSubstr("int8 on 2 threads to int8-float1-abcd on "
                              "1 thread: +250 us, +0.4 %"),
                    HasSubstr("conv1 in float"), HasSubstr("Of 32 steps")));
  tune.mutable_report()->set_measure(v1::TuneReport::TOP1_CHANGE);
  farm_.tunes = {tune};
  EXPECT_EQ(CodeOf({"tunes", "show", "t1"}), ExitCode::kOk) << message_;
  EXPECT_THAT(out_, HasSubstr("+250 us, +0.4 points"));
}

TEST_F(TuneCommandsTest, WritesWhatToShip) {
  farm_.tunes = {Ended()};
  const std::string out = JoinPath(folder_, "out");
  EXPECT_EQ(Tune({"--out_dir=" + out}), ExitCode::kOk) << message_;
  EXPECT_EQ(ReadFile(JoinPath(out, "int8.pb")).value_or(""), "graph");
  EXPECT_THAT(ReadFile(JoinPath(out, "int8.yaml")).value_or(""),
              AllOf(HasSubstr("name: int8"), HasSubstr("fold_constants")));
  EXPECT_THAT(ReadFile(JoinPath(out, "pareto_1.svg")).value_or(""),
              HasSubstr("<svg"));
  EXPECT_THAT(ReadFile(JoinPath(out, "tune.json")).value_or(""),
              HasSubstr("\"recommended\""));
}

TEST_F(TuneCommandsTest, OneThatEndedBadlyIsBegunAnew) {
  v1::Tune failed = TuneIn(v1::TUNE_FAILED);
  failed.set_failure("the worker is too old");
  farm_.tunes = {failed, TuneIn(v1::TUNE_RUNNING), failed};
  EXPECT_EQ(Tune(), ExitCode::kJobFailed);
  EXPECT_THAT(message_, HasSubstr("tune t1 FAILED: the worker is too old"));
  ASSERT_THAT(farm_.tune_requests, SizeIs(2));
  EXPECT_THAT(farm_.tune_requests[0].client_request_id(),
              StartsWith("optctl-tune-"));
  EXPECT_EQ(farm_.tune_requests[1].client_request_id(),
            farm_.tune_requests[0].client_request_id() + "-2");
}

TEST_F(TuneCommandsTest, NothingThatKeepsTheBoundIsAMissedGate) {
  v1::Tune tune = Ended();
  tune.mutable_report()->mutable_devices(0)->clear_recommended();
  farm_.tunes = {tune};
  EXPECT_EQ(CodeOf({"tunes", "show", "t1"}), ExitCode::kGateMissed);
}

TEST_F(TuneCommandsTest, ListsShowsAndCancels) {
  EXPECT_EQ(CodeOf({"tunes"}), ExitCode::kOk);
  EXPECT_EQ(out_, "No tunes.\n");
  EXPECT_EQ(CodeOf({"tunes", "show", "t1"}), ExitCode::kNotFound);
  farm_.tunes = {TuneIn(v1::TUNE_RUNNING)};
  EXPECT_EQ(CodeOf({"tunes"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("t1"), HasSubstr("RUNNING"),
                          HasSubstr("int8, 1 of 6")));
  EXPECT_EQ(CodeOf({"tunes", "show", "t1"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("Tune t1 runs: int8, 1 of 6. Nothing has"));
  farm_.tunes[0]->mutable_report()->set_measured(1);
  EXPECT_EQ(CodeOf({"tunes", "show", "t1"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("of 6. So far:"));
  farm_.tunes = {Ended()};
  EXPECT_EQ(CodeOf({"tunes", "show", "t1"}), ExitCode::kOk);
  EXPECT_THAT(out_,
              AllOf(HasSubstr("On pi4: ship int8"), Not(HasSubstr("So far"))));
  EXPECT_EQ(CodeOf({"tunes", "cancel", "t1"}), ExitCode::kOk);
  EXPECT_EQ(out_, "Tune t1 is SUCCEEDED; it had ended before.\n");
}

}  // namespace
}  // namespace optfarm::client_cli
