// The commands that speak to a farm, against one in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/client_cli/farm_commands_fixture.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(FarmCommandsTest, SubmitSendsTheModelAndPrintsTheJob) {
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kOk)
      << message_;
  ASSERT_EQ(farm_.submits.size(), 1u);
  const v1::JobSpec& spec = farm_.submits[0].spec();
  EXPECT_EQ(spec.model().name(), "model.pbtxt");
  EXPECT_TRUE(farm_.blobs.contains(spec.model().digest().sha256()));
  EXPECT_EQ(spec.model().digest().size_bytes(),
            static_cast<int64_t>(sizeof(kModel) - 1));
  EXPECT_EQ(spec.recipe().name(), "fp32");
  EXPECT_THAT(out_, HasSubstr("Job j1 is QUEUED."));
  EXPECT_THAT(farm_.submits[0].client_request_id(), StartsWith("optctl-"));
}

TEST_F(FarmCommandsTest, SubmitDoesNotSendWhatTheServerHas) {
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kOk);
  farm_.uploaded_paths.clear();
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kOk);
  EXPECT_THAT(farm_.uploaded_paths, IsEmpty());
  EXPECT_NE(farm_.submits[0].client_request_id(),
            farm_.submits[1].client_request_id());
}

TEST_F(FarmCommandsTest, SubmitMeasuresOnTheFirstAvailableDevice) {
  farm_.devices.clear();
  AddDevice("a", v1::Device::OFFLINE);
  AddDevice("b", v1::Device::BUSY);
  AddDevice("c", v1::Device::AVAILABLE);
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kOk);
  EXPECT_THAT(farm_.submits[0].spec().benchmark().devices(), ElementsAre("c"));
  EXPECT_THAT(err_, HasSubstr("Benchmarking on c"));
}

TEST_F(FarmCommandsTest, SubmitMeasuresOnADeviceThatIsKeptForItsTag) {
  farm_.devices.clear();
  AddDevice("a", v1::Device::RESERVED);
  farm_.devices[0].set_reserved_for_tag("nightly");
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kOk);
  EXPECT_FALSE(farm_.submits[0].spec().has_benchmark());
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--tag=nightly"}),
            ExitCode::kOk);
  EXPECT_THAT(farm_.submits[1].spec().benchmark().devices(), ElementsAre("a"));
}

TEST_F(FarmCommandsTest, SubmitCanMeasureNowhereOrOnSeveralDevices) {
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--device=none"}),
            ExitCode::kOk);
  EXPECT_FALSE(farm_.submits[0].spec().has_benchmark());
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--device=a",
                    "--device=b", "--threads=1,4"}),
            ExitCode::kOk);
  EXPECT_THAT(farm_.submits[1].spec().benchmark().devices(),
              ElementsAre("a", "b"));
  EXPECT_THAT(farm_.submits[1].spec().benchmark().threads(), ElementsAre(1, 4));
}

TEST_F(FarmCommandsTest, SubmitTellsWhichDevicesAJobWillWaitFor) {
  farm_.devices.clear();
  AddDevice("a", v1::Device::AVAILABLE);
  AddDevice("b", v1::Device::DISABLED);
  farm_.devices[1].set_state_reason("the fan is broken");
  AddDevice("c", v1::Device::RESERVED);
  farm_.devices[2].set_reserved_for_tag("nightly");
  AddDevice("d", v1::Device::OFFLINE);
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--device=a",
                    "--device=b", "--device=c"}),
            ExitCode::kOk);
  EXPECT_THAT(err_, HasSubstr("b is DISABLED, the fan is broken: the job "
                              "waits for it."));
  EXPECT_THAT(err_, HasSubstr("c is RESERVED: the job waits"));
  EXPECT_THAT(err_, Not(HasSubstr("a is ")));
  EXPECT_THAT(err_, Not(HasSubstr("d is ")));
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--device=c",
                    "--tag=nightly"}),
            ExitCode::kOk);
  EXPECT_THAT(err_, Not(HasSubstr("waits")));
}

TEST_F(FarmCommandsTest, SubmitSaysWhenNothingWillBeMeasured) {
  farm_.devices.clear();
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kOk);
  EXPECT_THAT(err_, HasSubstr("No device is available"));
}

TEST_F(FarmCommandsTest, SubmitListsCalibrationFilesByPath) {
  OPTFARM_ASSERT_OK(MakeFolders(JoinPath(folder_, "data/cats")));
  Write("data/b.png", "b");
  Write("data/cats/a.JPG", "a");
  Write("data/notes.txt", "n");
  Write("data/.hidden.png", "h");
  Write("labels.txt", "1\n2\n");
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=int8",
                    "--calibration=" + JoinPath(folder_, "data"),
                    "--labels=" + JoinPath(folder_, "labels.txt"),
                    "--input_mean=127.5", "--input_std=127.5"}),
            ExitCode::kOk)
      << message_;
  const v1::JobSpec& spec = farm_.submits[0].spec();
  ASSERT_EQ(spec.calibration().sources_size(), 2);
  const v1::DataSource& samples = spec.calibration().sources(0);
  EXPECT_EQ(samples.role(), v1::DataSource::SAMPLES);
  ASSERT_EQ(samples.files_size(), 2);
  EXPECT_EQ(samples.files(0).path(), "b.png");
  EXPECT_EQ(samples.files(1).path(), "cats/a.JPG");
  EXPECT_EQ(samples.files(0).digest().sha256(), Sha256Hex("b"));
  EXPECT_EQ(samples.mean(), 127.5);
  const v1::DataSource& labels = spec.calibration().sources(1);
  EXPECT_EQ(labels.role(), v1::DataSource::LABELS);
  EXPECT_EQ(labels.files(0).path(), "labels.txt");
  EXPECT_FALSE(labels.has_mean());
  EXPECT_THAT(err_, HasSubstr(": 1 file that is neither picture, "
                              "sound nor record file."));
}

TEST_F(FarmCommandsTest, SubmitSendsArraysWithTheirInput) {
  const std::string array = Write("x.npy", "not read here");
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=int8",
                    "--calibration=image=" + array}),
            ExitCode::kOk)
      << message_;
  const auto& sources = farm_.submits[0].spec().calibration().sources();
  ASSERT_EQ(sources.size(), 1);
  EXPECT_EQ(sources[0].role(), v1::DataSource::INPUT);
  EXPECT_EQ(sources[0].input(), "image");
  EXPECT_EQ(sources[0].files(0).path(), "x.npy");
  EXPECT_EQ(sources[0].files(0).digest().sha256(), Sha256Hex("not read here"));
  EXPECT_EQ(sources[0].member(), "");
  EXPECT_FALSE(sources[0].has_mean());
  EXPECT_FALSE(sources[0].has_std());
}

TEST_F(FarmCommandsTest, SubmitSendsWhatIsTakenOfAFile) {
  const std::string records = Write("x.tfrecord", "not read here");
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=int8",
                    "--calibration=image=" + records + ":image/encoded",
                    "--labels=" + records + ":label", "--labels_offset=1",
                    "--input_mean=0"}),
            ExitCode::kOk)
      << message_;
  const v1::Dataset& data = farm_.submits[0].spec().calibration();
  ASSERT_EQ(data.sources_size(), 2);
  EXPECT_EQ(data.sources(0).member(), "image/encoded");
  // A zero that was given is one.
  EXPECT_TRUE(data.sources(0).has_mean());
  EXPECT_FALSE(data.sources(0).has_std());
  EXPECT_EQ(data.sources(1).role(), v1::DataSource::LABELS);
  EXPECT_EQ(data.sources(1).member(), "label");
  EXPECT_EQ(data.sources(1).files(0).path(), "x.tfrecord");
  EXPECT_EQ(data.labels_offset(), 1);
}

TEST_F(FarmCommandsTest, SubmitSendsOwnRecipeAsAWhole) {
  const std::string recipe = Write(
      "mine.yaml", "name: mine\ntransforms:\n  - sort_by_execution_order\n");
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=" + recipe}), ExitCode::kOk)
      << message_;
  EXPECT_EQ(farm_.submits[0].spec().recipe().name(), "mine");
}

TEST_F(FarmCommandsTest, SubmitChecksLocallyBeforeItConnects) {
  EXPECT_EQ(CodeOf({"submit", "gone.pb", "--recipe=fp32"}), ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("gone.pb"));
  EXPECT_EQ(
      CodeOf({"submit", Write("x.pb", "this is no graph"), "--recipe=fp32"}),
      ExitCode::kUsage);
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=int9"}), ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("'int8'"));
  const std::string needy =
      Write("needy.yaml",
            "name: needy\ntransforms:\n  - sort_by_execution_order\n"
            "calibration:\n  required: true\n");
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=" + needy}), ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("needs calibration data"));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--inputs=imgae"}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, AllOf(StartsWith("--inputs: "), HasSubstr("'image'")));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--outputs=probs"}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, StartsWith("--outputs: "));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--labels=gone.txt"}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, StartsWith("--labels: "));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--calibration=gone"}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("there is no folder or file 'gone'; give a "
                                  "folder of pictures or sounds, or "
                                  "NAME=FILE.npy"));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--input_std=0"}),
            ExitCode::kUsage);
  EXPECT_EQ(connections_, 0);
}

TEST_F(FarmCommandsTest, SubmitAsksBeforeItSends) {
  const std::string two_ends = Write("two.pbtxt", absl::StrCat(kModel, R"(
        node { name: "scores" op: "Softmax" input: "image"
          attr { key: "T" value { type: DT_FLOAT } } })"));
  EXPECT_EQ(CodeOf({"submit", two_ends, "--recipe=fp32"}), ExitCode::kUsage);
  EXPECT_THAT(message_, AllOf(HasSubstr("which of these"),
                              HasSubstr("--outputs=probabilities,scores")));
  EXPECT_EQ(CodeOf({"submit", two_ends, "--recipe=fp32", "--outputs=scores"}),
            ExitCode::kOk)
      << message_;
}

TEST_F(FarmCommandsTest, SubmitRefusesBrokenGraphsBeforeItSends) {
  const std::string cycle = Write("cycle.pbtxt", R"(
    node { name: "a" op: "Relu" input: "b"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "b" op: "Relu" input: "a"
      attr { key: "T" value { type: DT_FLOAT } } })");
  EXPECT_EQ(CodeOf({"submit", cycle, "--recipe=fp32"}), ExitCode::kUsage);
  EXPECT_THAT(message_, AllOf(StartsWith("MODEL '"), HasSubstr("cycle")));
  const std::string twice = Write("twice.pbtxt", absl::StrCat(kModel, kModel));
  EXPECT_EQ(CodeOf({"submit", twice, "--recipe=fp32"}), ExitCode::kUsage);
  EXPECT_THAT(message_, StartsWith("MODEL '"));
  EXPECT_EQ(connections_, 0);
}

TEST_F(FarmCommandsTest, SubmitStopsAtOnceWhenTheServerIsAway) {
  farm_.check_server = FromServer(absl::UnavailableError("refused"));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}),
            ExitCode::kUnavailable);
  EXPECT_THAT(farm_.submits, IsEmpty());
}

TEST_F(FarmCommandsTest, SubmitAndWaitRidesThroughARestart) {
  farm_.job.mutable_report()->set_recipe_name("fp32");
  farm_.checks_before = 4;
  farm_.check_server = FromServer(absl::UnavailableError("refused"));
  const absl::Time start = clock_.Now();
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--wait"}),
            ExitCode::kOk)
      << message_;
  EXPECT_THAT(err_, HasSubstr("refused; trying again for 1 min"));
  EXPECT_EQ(farm_.submits.size(), 1u);
  EXPECT_GT(clock_.Now(), start);
}

TEST_F(FarmCommandsTest, SubmitTriesAgainForAsLongAsItIsTold) {
  farm_.check_server = FromServer(absl::UnavailableError("refused"));
  for (const auto& [flag, least, most] :
       {std::tuple("--wait", absl::Seconds(50), absl::Seconds(61)),
        std::tuple("--retry_for=1h", absl::Minutes(59), absl::Minutes(61))}) {
    const absl::Time start = clock_.Now();
    EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", flag}),
              ExitCode::kUnavailable);
    EXPECT_GE(clock_.Now() - start, least);
    EXPECT_LE(clock_.Now() - start, most);
  }
  EXPECT_THAT(farm_.submits, IsEmpty());
  // What no time mends is told at once.
  farm_.check_server = FromServer(absl::UnauthenticatedError("no token"));
  const absl::Time start = clock_.Now();
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--wait"}),
            ExitCode::kAuth);
  EXPECT_EQ(clock_.Now(), start);
}

TEST_F(FarmCommandsTest, SubmitSendsAgainWhatTheServerLost) {
  farm_.submit_failures = {absl::FailedPreconditionError("blobs are missing")};
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kOk);
  ASSERT_EQ(farm_.submits.size(), 2u);
  EXPECT_EQ(farm_.submits[0].client_request_id(),
            farm_.submits[1].client_request_id());
}

TEST_F(FarmCommandsTest, WaitEndsWithTheOutcome) {
  farm_.job.mutable_report()->set_recipe_name("fp32");
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--wait"}),
            ExitCode::kOk)
      << message_;
  EXPECT_THAT(err_, HasSubstr("Job j1 is QUEUED."));
  EXPECT_THAT(out_,
              AllOf(HasSubstr("VERDICT"), HasSubstr("Job j1: SUCCEEDED")));
}

TEST_F(FarmCommandsTest, FailedGateIsAFailure) {
  farm_.job.set_state(v1::FAILED);
  farm_.job.mutable_failure()->set_code("GATE_FAILED");
  farm_.job.mutable_failure()->set_message("max_accuracy_drop did not hold");
  farm_.job.mutable_report()->set_recipe_name("int8");
  v1::GateResult& gate = *farm_.job.add_gates();
  gate.set_name("max_accuracy_drop");
  gate.set_value(12.3);
  gate.set_bound(2);
  gate.set_message("int8 loses 12.3 points");
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--wait"}),
            ExitCode::kGateMissed);
  EXPECT_THAT(
      out_, AllOf(HasSubstr("no: loses 12.3 points of top-1 (bound 2.0)"),
                  HasSubstr("max_accuracy_drop  FAILED    12.3      2\n  int8 "
                            "loses 12.3 points\n"),
                  HasSubstr("Job j1: FAILED: max_accuracy_drop did not hold"),
                  Not(HasSubstr("SUCCEEDED"))));
}

TEST_F(FarmCommandsTest, VerdictsAreTheServers) {
  farm_.job.mutable_report()->set_recipe_name("int8");
  AddVerdict("int8", v1::ShippingVerdict::UNCLEAR,
             "unclear: as the server says");
  ASSERT_EQ(CodeOf({"get", "j1"}), ExitCode::kOk) << message_;
  EXPECT_THAT(out_, HasSubstr("unclear: as the server says\n"));
  EXPECT_THAT(out_, Not(HasSubstr("speed not measured")));
  // An older server sends none.
  farm_.job.clear_verdicts();
  ASSERT_EQ(CodeOf({"get", "j1"}), ExitCode::kOk) << message_;
  EXPECT_THAT(out_, HasSubstr("unclear: speed not measured"));
}

TEST_F(FarmCommandsTest, OutcomeAsJsonIsOneObject) {
  farm_.job.mutable_report()->set_recipe_name("fp32");
  farm_.job.mutable_report()->add_warnings("all \"zeros\"");
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--wait", "-o", "json"}),
            ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(StartsWith("{\n\"job_id\": \"j1\",\n\"state\": "
                                     "\"SUCCEEDED\",\n\"failure\": null,\n"
                                     "\"rows\": [\n  {\"variant\": \"float\""),
                          HasSubstr("\"warnings\": [\"all \\\"zeros\\\"\"]"),
                          HasSubstr("\"recipe_name\": \"fp32\"")));
}

TEST_F(FarmCommandsTest, DownloadWritesEachFileUnderItsName) {
  AddArtifact("optimized.pb", "graph");
  AddArtifact("task.log", "log one");
  AddArtifact("task.log", "log two");
  const std::string out_dir = JoinPath(folder_, "new/out");
  ASSERT_EQ(CodeOf({"download", "j1", "--out_dir=" + out_dir}), ExitCode::kOk)
      << message_;
  EXPECT_THAT(*ListFolder(out_dir),
              ElementsAre("optimized.pb", "task.log", "task_2.log"));
  EXPECT_EQ(*ReadFile(JoinPath(out_dir, "task_2.log")), "log two");
  EXPECT_EQ(CodeOf({"download", "j1", "--out_dir=" + out_dir, "--file=x.pb"}),
            ExitCode::kNotFound);
  EXPECT_THAT(message_, HasSubstr("it made optimized.pb, task.log"));
}

TEST_F(FarmCommandsTest, SubmitAsksForEngines) {
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--device=none",
                    "--engine=tflite"}),
            ExitCode::kUsage);
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--device=pi4",
                    "--engine=tflite:/lib/x.so"}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("give the engine's name alone"));
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--device=pi4",
                    "--engine=tflite", "--engine=onnxruntime"}),
            ExitCode::kOk)
      << message_;
  EXPECT_THAT(farm_.submits.back().spec().benchmark().engines(),
              ElementsAre("tflite", "onnxruntime"));
}

TEST_F(FarmCommandsTest, SubmitAsksForFormatsAndFetchesTheFile) {
  AddArtifact("optimized.pb", "graph");
  AddArtifact("optimized.tflite", "a TensorFlow Lite model");
  v1::ExportedModel& made = *farm_.job.mutable_report()->add_exports();
  made.set_format(v1::TFLITE);
  made.set_artifact("optimized.tflite");
  made.set_summary("tflite, 23 B; read back");
  const std::string file = JoinPath(folder_, "it.tflite");
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--wait",
                    "--out_graph=" + file}),
            ExitCode::kOk)
      << message_;
  EXPECT_EQ(*ReadFile(file), "a TensorFlow Lite model");
  EXPECT_THAT(out_, HasSubstr("it.tflite: tflite, 23 B; read back"));
  EXPECT_THAT(farm_.submits.back().spec().out_formats(),
              ElementsAre(v1::TFLITE));
  ASSERT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--out_format=pb,tflite",
                    "--out_format=TFLITE"}),
            ExitCode::kOk);
  EXPECT_THAT(farm_.submits.back().spec().out_formats(),
              ElementsAre(v1::PB, v1::TFLITE));
  // Keras would not read a graph under this name.
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--wait",
                    "--out_graph=" + folder_ + "/m.h5"}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("end it in .pb, .onnx or .tflite"));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--out_graph=" + file}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("--out_graph needs --wait"));
  // The job's own file, under both kinds of names.
  const std::string out = JoinPath(folder_, "out");
  ASSERT_EQ(
      CodeOf({"download", "j1", "--out_dir=" + out, "--out_format=tflite"}),
      ExitCode::kOk)
      << message_;
  EXPECT_THAT(*ListFolder(out), ElementsAre("optimized.tflite"));
  ASSERT_EQ(CodeOf({"download", "j1", "--out_graph=" + out + "/b.tflite"}),
            ExitCode::kOk);
  EXPECT_EQ(*ReadFile(out + "/b.tflite"), "a TensorFlow Lite model");
  EXPECT_EQ(CodeOf({"download", "j1"}), ExitCode::kUsage);
}

TEST_F(FarmCommandsTest, AFormatThatTheJobCouldNotMakeIsNotTriedAgain) {
  AddArtifact("optimized.pb", "graph");
  v1::ExportedModel& made = *farm_.job.mutable_report()->add_exports();
  made.set_format(v1::ONNX);
  made.add_problems("Foo: not known (node 'a')");
  made.add_problems("Bar: too new (2 nodes, as 'b')");
  EXPECT_EQ(CodeOf({"download", "j1", "--out_graph=" + folder_ + "/x.onnx"}),
            ExitCode::kGateMissed);
  EXPECT_THAT(message_,
              AllOf(HasSubstr("cannot be written as onnx:"),
                    HasSubstr("\n  Foo: not known (node 'a')\n  Bar")));
  EXPECT_FALSE(Exists(folder_ + "/x.onnx"));
  EXPECT_EQ(
      CodeOf({"submit", model_, "--recipe=fp32", "--wait",
              "--out_format=pb,onnx", "--out_graph=" + folder_ + "/x.onnx"}),
      ExitCode::kGateMissed);
  EXPECT_THAT(out_, AllOf(HasSubstr("SUCCEEDED"), HasSubstr("Bar: too new")));
}

TEST_F(FarmCommandsTest, DownloadRefusesNamesThatLeadOutOfTheFolder) {
  v1::Artifact& artifact = *farm_.job.add_artifacts();
  artifact.set_name("../evil");
  EXPECT_EQ(CodeOf({"download", "j1", "--out_dir=" + folder_}),
            ExitCode::kJobFailed);
  EXPECT_THAT(message_, HasSubstr("not a plain file name"));
}

TEST_F(FarmCommandsTest, UnknownJobIsNotFound) {
  EXPECT_EQ(CodeOf({"get", "j2"}), ExitCode::kNotFound);
  EXPECT_EQ(CodeOf({"cancel", "j2"}), ExitCode::kNotFound);
  EXPECT_EQ(CodeOf({"download", "j2", "--out_dir=x"}), ExitCode::kNotFound);
}

TEST_F(FarmCommandsTest, JobsAreNamedByTheirBeginningOrAsLatest) {
  farm_.job.set_job_id("20260101-abcdef");
  for (const char* id : {"latest", "LATEST", "2026", "20260101-abcdef"}) {
    EXPECT_EQ(CodeOf({"get", id}), ExitCode::kOk) << message_;
    EXPECT_EQ(CodeOf({"results", "--job", id}), ExitCode::kOk) << message_;
    EXPECT_EQ(farm_.query.job_id(), "20260101-abcdef");
  }
  EXPECT_EQ(CodeOf({"get", "2027"}), ExitCode::kNotFound);
}

TEST_F(FarmCommandsTest, FailuresOfTheModelHaveACodeOfTheirOwn) {
  farm_.job.set_state(v1::FAILED);
  farm_.job.mutable_failure()->set_kind(v1::Failure::USER);
  farm_.job.mutable_failure()->set_code("INVALID_ARGUMENT");
  farm_.streams.resize(2);
  EXPECT_EQ(CodeOf({"watch", "j1"}), ExitCode::kBadModel);
  farm_.job.mutable_failure()->set_kind(v1::Failure::INTERNAL);
  EXPECT_EQ(CodeOf({"watch", "j1"}), ExitCode::kJobFailed);
  farm_.submit_failures = {absl::ResourceExhaustedError("too many jobs")};
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32"}), ExitCode::kQuota);
}

TEST_F(FarmCommandsTest, SaysThatNoWorkerIsConnected) {
  v1::WhoAmIResponse farm;
  farm.mutable_time()->set_seconds(1);
  farm_.who_am_i = farm;
  EXPECT_EQ(CodeOf({"watch", "j1"}), ExitCode::kOk);
  EXPECT_THAT(err_, HasSubstr("No worker is connected"));
  farm.set_workers(1);
  farm_.who_am_i = farm;
  EXPECT_EQ(CodeOf({"watch", "j1"}), ExitCode::kOk);
  EXPECT_EQ(err_, "");
}

TEST_F(FarmCommandsTest, ListTakesStatesInAnyCaseAndNoHeadings) {
  EXPECT_EQ(CodeOf({"list", "--state=running", "--no-headers"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(StartsWith("j1"), Not(HasSubstr("STATE"))));
  EXPECT_EQ(CodeOf({"list", "-o", "csv", "--no_headers"}), ExitCode::kOk);
  EXPECT_THAT(out_, StartsWith("j1,SUCCEEDED"));
}

TEST_F(FarmCommandsTest, AGraphWithoutWeightsAsksForItsCheckpoint) {
  const std::string path = Write("unfrozen.pbtxt", R"(
    node { name: "x" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 4 } } } } }
    node { name: "w" op: "VariableV2"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 4 } } } } }
    node { name: "y" op: "Add" input: "x" input: "w"
      attr { key: "T" value { type: DT_FLOAT } } })");
  EXPECT_EQ(CodeOf({"submit", path, "--recipe=fp32"}), ExitCode::kUsage);
  EXPECT_THAT(message_, AllOf(HasSubstr("has no weights: 1 variable has no "
                                        "value, such as 'w'"),
                              HasSubstr("--checkpoint=PREFIX")));
  EXPECT_EQ(connections_, 0);
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=fp32", "--outputs=xyz"}),
            ExitCode::kUsage);
  EXPECT_THAT(message_, HasSubstr("the graph ends in probabilities"));
}

TEST_F(FarmCommandsTest, FilesOfOtherFrameworksAreNamed) {
  const auto zip = [](const std::string& inside) {
    return "PK\x03\x04" + std::string(40, '\0') + inside;
  };
  const struct {
    const char* name;
    std::string bytes;
    const char* said;
  } files[] = {
      {"net.pt", zip("net/data.pkl"), "is a PyTorch file"},
      {"old.pth",
       std::string("\x80\x02\x8a\x0al\xfc\x9c"
                   "F\xf9 j\xa8P\x19.",
                   15),
       "is a PyTorch file"},
      {"net.keras", zip("config.json model.weights.h5"), "is a Keras model"},
      {"net.h5", "\x89HDF\r\n\x1a\n....", "is an HDF5 file, as Keras"},
      {"net.safetensors",
       std::string("\x10\0\0\0\0\0\0\0{\"a\": 1        }", 24) + "\x01\x02",
       "is a safetensors file"},
      {"net.mlmodel",
       std::string("\x08\x04\x12\x02\x0a\x00\xa2\x1f\x01\x00", 10),
       "is a Core ML model"},
      {"cat.gif", "GIF89a......", "is a picture"},
      {"cat.jpg", "\xff\xd8\xff\xe0....", "is a picture"},
  };
  for (const auto& file : files) {
    const std::string path = Write(file.name, file.bytes);
    EXPECT_EQ(CodeOf({"submit", path, "--recipe=fp32"}), ExitCode::kUsage);
    EXPECT_THAT(message_, AllOf(HasSubstr(file.name), HasSubstr(file.said)));
  }
}

TEST_F(FarmCommandsTest, WatchPrintsEventsAndEndsWithTheJobsCode) {
  farm_.job.set_state(v1::CANCELLED);
  v1::JobEvent event;
  event.set_sequence(1);
  event.mutable_time()->set_seconds(1'769'860'800);
  event.set_task_id("j1/optimize");
  event.set_attempt(2);
  event.mutable_task_state()->set_state(v1::LEASED);
  event.mutable_task_state()->set_holder("worker-1");
  event.mutable_task_state()->set_message("attempt 2 on worker-1");
  farm_.streams = {{{event}, absl::OkStatus()}};
  EXPECT_EQ(CodeOf({"watch", "j1"}), ExitCode::kJobFailed);
  EXPECT_EQ(out_,
            "12:00:00 optimize LEASED: attempt 2 on worker-1\n"
            "\nJob j1: CANCELLED\n");
}

TEST_F(FarmCommandsTest, LogsMarkWhoSpeaks) {
  const auto log = [](int64_t sequence, const std::string& task,
                      const std::string& text) {
    v1::JobEvent event;
    event.set_sequence(sequence);
    event.set_task_id(task);
    event.set_attempt(1);
    event.mutable_log()->set_text(text);
    return event;
  };
  farm_.streams = {{{log(1, "t1", "one\n"), log(2, "t1", "two\x1b[2J\n"),
                     log(3, "t2", "three")},
                    absl::OkStatus()}};
  EXPECT_EQ(CodeOf({"logs", "j1"}), ExitCode::kOk);
  EXPECT_EQ(out_,
            "--- t1, attempt 1 ---\none\ntwo?[2J\n"
            "--- t2, attempt 1 ---\nthree");
}

TEST_F(FarmCommandsTest, DevicesShowHowLongAgoTheyWereSeen) {
  farm_.devices[0].mutable_last_seen()->set_seconds(1'769'860'800 - 75);
  EXPECT_EQ(CodeOf({"devices"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("pi4"), HasSubstr("AVAILABLE"),
                          HasSubstr("1 min 15 s ago")));
}

TEST_F(FarmCommandsTest, ListFitsIntoEightyColumnsAndSaysWhatJobsCameTo) {
  farm_.job.set_job_id("j0123456789ab");
  farm_.job.set_state(v1::SUCCEEDED);
  farm_.job.mutable_create_time()->set_seconds(1'769'860'800);
  farm_.job.mutable_end_time()->set_seconds(1'769'860'900);
  farm_.job.mutable_spec()->set_recipe_name("weights8-for-the-app");
  farm_.job.mutable_spec()->mutable_model()->set_name(
      "mobilenet_v1_0.25_128_frozen.pb");
  v1::JobVerdicts& found = *farm_.verdicts.add_jobs();
  found.set_job_id(farm_.job.job_id());
  v1::ShippingVerdict& verdict = *found.add_verdicts();
  verdict.set_answer(v1::ShippingVerdict::YES);
  verdict.set_speedup(1.804);
  verdict.set_text("yes: 1.80x faster");
  EXPECT_EQ(CodeOf({"list"}), ExitCode::kOk);
  EXPECT_EQ(out_,
            "JOB            STATE      RECIPE        MODEL           "
            "CREATED (UTC)  VERDICT\n"
            "j0123456789ab  SUCCEEDED  weights8-f..  mobilenet_v1..  "
            "01-31 12:00    yes 1.8x\n");
  EXPECT_EQ(CodeOf({"list", "-o", "wide"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("mobilenet_v1_0.25_128_frozen.pb"),
                          HasSubstr("yes: 1.80x faster")));
}

TEST_F(FarmCommandsTest, DevicesShowTellsTheStatesThatADeviceWasIn) {
  v1::DeviceStateChange& cooling = *farm_.device_history.add_changes();
  cooling.mutable_time()->set_seconds(1'769'860'800 - 60);
  cooling.set_state(v1::Device::COOLING);
  cooling.set_reason("71 degrees");
  v1::DeviceStateChange& busy = *farm_.device_history.add_changes();
  busy.mutable_time()->set_seconds(1'769'860'800 - 90);
  busy.set_state(v1::Device::BUSY);
  EXPECT_EQ(CodeOf({"devices", "show", "pi4"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("Device       pi4\n"),
                          HasSubstr("COOLING  1 min 00 s  71 degrees\n"),
                          HasSubstr("BUSY           30 s  -\n")));
  EXPECT_EQ(CodeOf({"devices", "show", "pi4", "-o", "json"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("\"reason\": \"71 degrees\""));
}

TEST_F(FarmCommandsTest, AdministratorsSeeProjectsStoreAndWorkers) {
  v1::Project& project = *farm_.projects.add_projects();
  project.set_name("vision");
  project.set_live_jobs(2);
  project.set_max_live_jobs(5);
  EXPECT_EQ(CodeOf({"projects"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("vision"), HasSubstr("2 of 5")));
  farm_.store.set_blobs(17);
  farm_.store.set_evicts(true);
  farm_.store.set_evictions(3);
  EXPECT_EQ(CodeOf({"store"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("Files      17"), HasSubstr("3 rounds")));
  EXPECT_EQ(CodeOf({"store", "-o", "csv"}), ExitCode::kUsage);
  EXPECT_EQ(CodeOf({"workers"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("No worker or agent"));
  v1::Participant& worker = *farm_.participants.add_participants();
  worker.set_kind(v1::Participant::WORKER);
  worker.set_name("w1");
  EXPECT_EQ(CodeOf({"workers"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("worker  w1"));
}

TEST_F(FarmCommandsTest, BlobsListTellsWhatCountsForTheProject) {
  farm_.blob_list.set_project("vision");
  EXPECT_EQ(CodeOf({"blobs", "list"}), ExitCode::kOk);
  EXPECT_EQ(out_, "The files of the project vision have 0 B.\n");
  v1::ProjectBlob& blob = *farm_.blob_list.add_blobs();
  blob.mutable_digest()->set_sha256(Sha256Hex("a"));
  blob.mutable_digest()->set_size_bytes(1'910'000);
  blob.set_jobs(2);
  blob.set_live_jobs(1);
  v1::BlobUse& use = *blob.add_uses();
  use.set_job_id("j0123456789ab");
  use.set_kind(v1::BlobUse::ARTIFACT);
  use.set_name("optimized.pb");
  farm_.blob_list.set_total_bytes(1'910'000);
  farm_.blob_list.set_max_bytes(4'000'000);
  EXPECT_EQ(CodeOf({"blobs", "list"}), ExitCode::kOk);
  EXPECT_EQ(out_,
            "DIGEST           SIZE  KIND      NAME          NEWEST JOB     JOBS"
            "  LIVE\n"
            "ca978112ca1b  1.91 MB  artifact  optimized.pb  j0123456789ab     2"
            "     1\n"
            "The files of the project vision have 1.91 MB of 4.00 MB.\n");
  EXPECT_EQ(CodeOf({"blobs", "list", "-o", "csv"}), ExitCode::kOk);
  EXPECT_EQ(out_,
            "sha256,size_bytes,kind,name,job_id,jobs,live_jobs,missing\n" +
                Sha256Hex("a") +
                ",1910000,artifact,optimized.pb,j0123456789ab,2,1,false\n");
  *farm_.blob_list.add_blobs() = blob;
  EXPECT_EQ(CodeOf({"blobs", "list", "--limit=1"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("--limit=0 lists all"));
}

TEST_F(FarmCommandsTest, BlobsRmTakesDigestsAndBeginnings) {
  for (const char* bytes : {"a", "b"}) {
    farm_.blob_list.add_blobs()->mutable_digest()->set_sha256(Sha256Hex(bytes));
  }
  v1::BlobRemoval& removed = *farm_.removals.add_removals();
  removed.mutable_digest()->set_sha256(Sha256Hex("a"));
  removed.mutable_digest()->set_size_bytes(1000);
  removed.set_outcome(v1::BlobRemoval::REMOVED);
  farm_.removals.set_given_back_bytes(1000);
  EXPECT_EQ(CodeOf({"blobs", "rm", "CA9781", Sha256Hex("b")}), ExitCode::kOk);
  ASSERT_EQ(farm_.removed_blobs.sha256_size(), 2);
  EXPECT_EQ(farm_.removed_blobs.sha256(0), Sha256Hex("a"));
  EXPECT_EQ(farm_.removed_blobs.sha256(1), Sha256Hex("b"));
  EXPECT_THAT(out_, AllOf(HasSubstr("ca978112ca1b  removed     1.00 kB  -\n"),
                          HasSubstr("1.00 kB no longer count")));
  v1::BlobRemoval& needed = *farm_.removals.add_removals();
  needed.set_outcome(v1::BlobRemoval::NEEDED);
  needed.set_needed_by("j1");
  EXPECT_EQ(CodeOf({"blobs", "rm", Sha256Hex("b")}), ExitCode::kJobFailed);
  EXPECT_THAT(out_, HasSubstr("j1"));
  needed.set_outcome(v1::BlobRemoval::NOT_THERE);
  EXPECT_EQ(CodeOf({"blobs", "rm", Sha256Hex("b")}), ExitCode::kNotFound);
  // Nothing is sent for what names no file.
  farm_.removed_blobs.Clear();
  EXPECT_EQ(CodeOf({"blobs", "rm"}), ExitCode::kUsage);
  EXPECT_EQ(CodeOf({"blobs", "rm", "ca97"}), ExitCode::kUsage);
  EXPECT_EQ(CodeOf({"blobs", "rm", "model.pb"}), ExitCode::kUsage);
  EXPECT_EQ(CodeOf({"blobs", "rm", "abcdef"}), ExitCode::kNotFound);
  EXPECT_EQ(farm_.removed_blobs.sha256_size(), 0);
}

TEST_F(FarmCommandsTest, ListHasStableFields) {
  EXPECT_EQ(CodeOf({"list", "-o", "csv"}), ExitCode::kOk);
  EXPECT_EQ(out_,
            "job_id,state,recipe,model,model_sha256,devices,create_time,"
            "seconds,name,verdict,verdict_text\nj1,SUCCEEDED,,,,,,,,,\n");
}

TEST_F(FarmCommandsTest, SubmitWritesTheOutcomeAsJUnit) {
  v1::JobSpec& spec = *farm_.job.mutable_spec();
  spec.mutable_model()->set_name("a<b>.pb");
  spec.mutable_recipe()->set_name("int8");
  farm_.job.set_state(v1::FAILED);
  v1::Task& optimize = *farm_.job.add_tasks();
  optimize.set_kind(v1::OPTIMIZE);
  optimize.set_state(v1::TASK_DONE);
  optimize.mutable_start_time()->set_seconds(10);
  optimize.mutable_end_time()->set_seconds(12);
  v1::Task& benchmark = *farm_.job.add_tasks();
  benchmark.set_kind(v1::BENCHMARK);
  benchmark.set_device("pi4");
  benchmark.set_state(v1::TASK_FAILED);
  benchmark.mutable_failure()->set_kind(v1::Failure::INTERNAL);
  benchmark.mutable_failure()->set_message("the \"pi\" & its\x01 agent left");
  v1::GateResult& gate = *farm_.job.add_gates();
  gate.set_name("max_accuracy_drop");
  gate.set_value(0.05);
  gate.set_bound(0.01);
  v1::Failure& failure = *farm_.job.mutable_failure();
  failure.set_code("GATE_FAILED");
  AddVerdict("float", v1::ShippingVerdict::BASELINE, "baseline");
  AddVerdict("int8", v1::ShippingVerdict::NO, "no: 2.00x slower than float");
  AddVerdict("other", v1::ShippingVerdict::YES, "yes: 0.26x size");
  farm_.streams.push_back({});
  const std::string file = JoinPath(folder_, "junit.xml");
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=int8", "--wait",
                    absl::StrCat("--junit=", file)}),
            ExitCode::kGateMissed)
      << message_;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string xml, ReadFile(file));
  EXPECT_THAT(xml,
              AllOf(HasSubstr("tests=\"5\" failures=\"1\" errors=\"1\" "
                              "skipped=\"1\""),
                    HasSubstr("verdict\" name=\"int8 on pi4, 4 threads\" "
                              "time=\"0.000\">\n<skipped message=\"no: "
                              "2.00x slower than float\"/>"),
                    HasSubstr("<system-out>yes: 0.26x size</system-out>"),
                    HasSubstr("name=\"a&lt;b&gt;.pb int8\""),
                    HasSubstr("name=\"optimize\" time=\"2.000\"/>"),
                    HasSubstr("the &quot;pi&quot; &amp; its? agent left"),
                    HasSubstr("<failure type=\"GATE_FAILED\" message=\"value "
                              "0.05, bound 0.01\"/>")));
  EXPECT_EQ(CodeOf({"submit", model_, "--recipe=int8", "--junit=x"}),
            ExitCode::kUsage);
}

TEST_F(FarmCommandsTest, TokensAreMadeListedAndRevoked) {
  ASSERT_EQ(CodeOf({"token", "create", "ci", "--scope=submit", "--scope=read",
                    "--lifetime=2h"}),
            ExitCode::kOk)
      << message_;
  // The secret alone, so that it can be sent to a file.
  EXPECT_EQ(out_, "oft_secret\n");
  EXPECT_EQ(farm_.tokens[0].expire_time().seconds(), 1700007200);
  ASSERT_EQ(CodeOf({"token", "list"}), ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("submit,read"), HasSubstr("EXPIRED")));
  ASSERT_EQ(CodeOf({"token", "revoke", "t1"}), ExitCode::kOk);
  ASSERT_EQ(CodeOf({"token", "list"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("REVOKED"));
  EXPECT_EQ(CodeOf({"token", "revoke", "t2"}), ExitCode::kNotFound);
  EXPECT_EQ(CodeOf({"token", "create", "ci", "--scope=all"}), ExitCode::kUsage);
  EXPECT_EQ(CodeOf({"token", "create", "ci"}), ExitCode::kUsage);
}

}  // namespace
}  // namespace optfarm::client_cli
