// A job's data at the server's door, in sources and in the fields of before
// there were any, and what workers of both times are told.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/scheduling/deprecated_data.h"
#include "server/scheduling/job_spec_check.h"
#include "storage/sqlite/database.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::google::protobuf::TextFormat;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

template <typename Message>
std::string Text(const Message& message) {
  std::string text;
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.PrintToString(message, &text);
  return text;
}

std::string Digest(char digit) {
  return absl::StrCat("digest { sha256: '", std::string(64, digit),
                      "' size_bytes: 1 }");
}

// What a client of before there were sources sends: optctl with a folder, two
// arrays and labels of a record file.
std::string OldData() {
  return absl::StrCat(
      "files { path: 'arrays/3/y.npz' ", Digest('c'),
      " input: 'y' member: 'left' } files { path: 'cats/1.jpg' ", Digest('a'),
      " } files { path: 'b.jpg' ", Digest('b'), " } files { path: 'x.npy' ",
      Digest('d'), " input: 'x' } labels_offset: 1 ");
}

// The same in sources, in their order.
std::string NewData(const std::string& scale) {
  return absl::StrCat(
      "labels_offset: 1 sources { role: SAMPLES files { path: 'b.jpg' ",
      Digest('b'), " } files { path: 'cats/1.jpg' ", Digest('a'), " } ", scale,
      " } sources { role: INPUT files { path: 'x.npy' ", Digest('d'),
      " } input: 'x' ", scale,
      " } sources { role: INPUT files { path: 'y.npz' ", Digest('c'),
      " } input: 'y' member: 'left' ", scale,
      " } sources { role: LABELS files { path: 'val.tfrecord' ", Digest('e'),
      " } member: 'image/class/label' }");
}

v1::JobSpec SpecWith(const std::string& data, const std::string& rest = "") {
  return Parse<v1::JobSpec>(absl::StrCat(
      "model { name: 'm.pb' digest { sha256: '", std::string(64, 'f'),
      "' size_bytes: 9 } } recipe { name: 'int8' transform_string: "
      "'fold_constants' } calibration { ",
      data, " } ", rest));
}

std::string OldLabels() {
  return absl::StrCat("labels { name: 'val.tfrecord:image/class/label' ",
                      Digest('e'), " }");
}

TEST(JobDataTest, OldRequestsBecomeSources) {
  const struct {
    std::string old, now;
  } kScales[] = {
      // Zeros stood for what nobody gave.
      {"", ""},
      {"input_mean: 127.5 input_std: 64", "mean: 127.5 std: 64"},
      {"input_mean: 127.5", "mean: 127.5 std: 1"},
      {"input_std: 255", "mean: 0 std: 255"},
  };
  for (const auto& scale : kScales) {
    const auto old = CheckJobSpec(SpecWith(OldData() + scale.old, OldLabels()));
    OPTFARM_ASSERT_OK(old.status());
    const auto now = CheckJobSpec(SpecWith(NewData(scale.now)));
    OPTFARM_ASSERT_OK(now.status());
    EXPECT_EQ(Text(*old), Text(*now)) << scale.old;
    EXPECT_FALSE(HasDeprecatedData(*old));
    // Neither does the same work twice.
    EXPECT_EQ(ActionDigest(*old), ActionDigest(*now));
    EXPECT_EQ(BlobsOf(*old).size(), 6u);
  }
}

TEST(JobDataTest, NamesThatWereForPeopleBecomeFileNames) {
  for (const auto& [name, path] :
       {std::pair<std::string, std::string>{"/a/b/val.txt", "val.txt"},
        {"", "labels"},
        {"..", "labels"},
        {"a.npz:y", "a.npz"}}) {
    v1::JobSpec spec = SpecWith(
        OldData(),
        absl::StrCat("labels { name: '", name, "' ", Digest('e'), "}"));
    UseSources(&spec);
    const v1::DataSource& labels =
        spec.calibration().sources(spec.calibration().sources_size() - 1);
    EXPECT_EQ(labels.role(), v1::DataSource::LABELS);
    EXPECT_EQ(labels.files(0).path(), path);
  }
}

TEST(JobDataTest, OldAndNewFieldsDoNotMix) {
  for (const std::string& old :
       {std::string("input_std: 1"),
        absl::StrCat("files { path: 'b.jpg' ", Digest('b'), " }")}) {
    EXPECT_THAT(CheckJobSpec(SpecWith(NewData("") + old)),
                StatusIs(kInvalid, HasSubstr("give sources alone")));
  }
  EXPECT_THAT(CheckJobSpec(SpecWith(NewData(""), OldLabels())),
              StatusIs(kInvalid, HasSubstr("role LABELS")));
}

TEST(JobDataTest, OrderDoesNotMatter) {
  v1::JobSpec spec = SpecWith(NewData(""));
  auto& sources = *spec.mutable_calibration()->mutable_sources();
  std::reverse(sources.begin(), sources.end());
  std::reverse(sources[3].mutable_files()->begin(),
               sources[3].mutable_files()->end());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::JobSpec turned, CheckJobSpec(spec));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::JobSpec straight,
                               CheckJobSpec(SpecWith(NewData(""))));
  EXPECT_EQ(ActionDigest(turned), ActionDigest(straight));
}

TEST(JobDataTest, TheFeatureOfTheLabelsDecidesAndTheirFileNameDoesNot) {
  v1::JobSpec spec = *CheckJobSpec(SpecWith(NewData("")));
  const std::string before = ActionDigest(spec);
  v1::DataSource& labels = *spec.mutable_calibration()->mutable_sources(3);
  labels.mutable_files(0)->set_path("other.tfrecord");
  EXPECT_EQ(ActionDigest(spec), before);
  labels.set_member("image/class/other");
  EXPECT_NE(ActionDigest(spec), before);
}

TEST(JobDataTest, MistakesInSourcesAreNamed) {
  const std::string file =
      absl::StrCat("files { path: 'x.npy' ", Digest('a'), " }");
  const std::string samples = absl::StrCat(
      "sources { role: SAMPLES files { path: 'a.png' ", Digest('a'), " } } ");
  const struct {
    std::string data, says;
  } kCases[] = {
      {absl::StrCat("sources { ", file, " }"),
       "calibration.sources[0].role is missing; give SAMPLES, INPUT or LABELS"},
      {absl::StrCat("sources { role: 7 ", file, " }"),
       "role is 7; give SAMPLES"},
      {"sources { role: SAMPLES }", "files has 0 entries; with role SAMPLES"},
      {absl::StrCat(samples, "sources { role: INPUT ", file, file, " }"),
       "calibration.sources[1].files has 2 entries; with role INPUT give "
       "exactly one"},
      {absl::StrCat("sources { role: SAMPLES files { path: '../x' ",
                    Digest('a'), "} }"),
       "'../x' is not a relative path"},
      {"sources { role: INPUT files { path: 'x.npy' } }", "'x.npy'"},
      {absl::StrCat("sources { role: SAMPLES ", file, file, " }"),
       "lists 'x.npy' twice"},
      {absl::StrCat(samples, samples),
       "sources[1] is the second with role "
       "SAMPLES; put its files into the first"},
      {absl::StrCat("sources { role: SAMPLES input: 'x' ", file, " }"),
       "input is 'x' and the role is SAMPLES; leave it empty"},
      {absl::StrCat("sources { role: SAMPLES member: 'x' ", file, " }"),
       "member is 'x' and the role is SAMPLES"},
      {absl::StrCat("sources { role: INPUT input: 'x' ", file,
                    " } sources { role: INPUT input: 'x' ", file, " }"),
       "sources[1].input is 'x', which another source feeds"},
      {absl::StrCat("sources { role: INPUT ", file, " } sources { role: INPUT ",
                    file, " }"),
       "input is empty; with several INPUT sources give each its input"},
      {absl::StrCat("sources { role: INPUT std: 0 ", file, " }"),
       "sources[0].std is 0; give a finite number other than 0, or leave it "
       "out for 1"},
      {absl::StrCat("sources { role: INPUT mean: nan ", file, " }"),
       "mean is nan; give a finite number"},
      {absl::StrCat(samples, "sources { role: LABELS mean: 1 ", file, " }"),
       "mean is given and the role is LABELS; leave it out"},
      {absl::StrCat("sources { role: INPUT layout: 9 ", file, " }"),
       "layout is 9; give SAMPLE_AXIS_FIRST or CONSTANT"},
      {absl::StrCat("sources { role: SAMPLES layout: CONSTANT ", file, " }"),
       "layout is CONSTANT and the role is SAMPLES; leave it out"},
      {absl::StrCat("sources { role: LABELS ", file, " }"),
       "have labels and no samples"},
      // Of older clients.
      {absl::StrCat("files { path: '../x' ", Digest('a'), " }"), "'../x'"},
      {absl::StrCat("input_std: nan ", file), "std is nan"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(CheckJobSpec(SpecWith(test.data)),
                StatusIs(kInvalid, HasSubstr(test.says)))
        << test.data;
  }
  OPTFARM_ASSERT_OK(CheckJobSpec(SpecWith(samples)).status());
}

TEST(JobDataTest, OlderWorkersReadWhatOlderServersWrote) {
  const v1::JobSpec spec = *CheckJobSpec(
      SpecWith(OldData() + "input_mean: 127.5 input_std: 64", OldLabels()));
  ASSERT_TRUE(FitsDeprecatedFields(spec.calibration()));
  v1::OptimizeTask task;
  *task.mutable_calibration() = spec.calibration();
  UseDeprecatedFields(&task);
  EXPECT_TRUE(task.calibration().sources().empty());
  // Back again: nothing was lost.
  v1::JobSpec back = SpecWith("");
  *back.mutable_calibration() = task.calibration();
  back.MergeFrom(
      Parse<v1::JobSpec>(Text(task).substr(Text(task).find("labels {"))));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::JobSpec again, CheckJobSpec(back));
  EXPECT_EQ(Text(again), Text(spec));
}

TEST(JobDataTest, OlderFieldsCannotDescribeEverything) {
  const auto fits = [](const std::string& data) {
    return FitsDeprecatedFields(Parse<v1::Dataset>(data));
  };
  EXPECT_TRUE(fits(NewData("mean: 1 std: 2")));
  EXPECT_FALSE(fits("sources { role: INPUT layout: CONSTANT }"));
  EXPECT_FALSE(
      fits("sources { role: INPUT mean: 1 } sources { role: INPUT mean: 2 }"));
  EXPECT_FALSE(fits("sources { role: INPUT mean: 0 } sources { role: INPUT }"));
  EXPECT_FALSE(
      fits("sources { role: SAMPLES files { path: 'arrays/1.png' } }"));
}

class JobDataServerTest : public ServerFixture {
 protected:
  // A job with the data; digests are those of blobs that are there.
  v1::SubmitJobRequest SubmitWith(const std::string& data) {
    v1::SubmitJobRequest request = GoodSubmit();
    Put("pixels");
    *request.mutable_spec()->mutable_calibration() =
        Parse<v1::Dataset>(WithDigests(data));
    return request;
  }
  // Text with the digest of a blob that is there for each '@'.
  std::string WithDigests(const std::string& text) {
    const std::string digest =
        absl::StrCat("digest { ", Text(rpc::DigestOfBytes("pixels")), " }");
    return absl::StrReplaceAll(text, {{"@", digest}});
  }
  // Puts data into the only job of a stopped server's database as a server of
  // before there were sources wrote them.
  void MakeOld(const std::string& data, const std::string& labels) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<storage::SqliteDatabase> db,
        storage::SqliteDatabase::Open(
            JoinPath(options_.data_dir, "optfarm.db")));
    v1::JobSpec spec;
    {
      storage::SqlStatement read = db->Prepare("SELECT spec_proto FROM jobs");
      ASSERT_TRUE(read.Step());
      ASSERT_TRUE(spec.ParseFromString(read.Text(0)));
    }
    spec.MergeFrom(Parse<v1::JobSpec>(WithDigests(labels)));
    storage::SqlStatement write =
        db->Prepare("UPDATE jobs SET spec_proto = ?1, calibration_proto = ?2");
    write.BindBlob(1, spec.SerializeAsString());
    write.BindBlob(2,
                   Parse<v1::Dataset>(WithDigests(data)).SerializeAsString());
    OPTFARM_ASSERT_OK(write.Run());
  }
  v1::SynchronizeRequest NewWorker() {
    v1::SynchronizeRequest request = WorkerCall();
    request.set_participant_id("worker-2");
    request.set_name("worker-2");
    request.set_reads_data_sources(true);
    return request;
  }
};

TEST_F(JobDataServerTest, WorkersGetTheFormThatTheyRead) {
  const std::string data =
      "sources { role: SAMPLES files { path: 'a.png' @ } std: 2 }";
  for (const bool is_new : {false, true}) {
    OPTFARM_ASSERT_OK(Submit(SubmitWith(data)).status());
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto leased, Synchronize(is_new ? NewWorker() : WorkerCall()));
    ASSERT_EQ(leased.new_tasks_size(), 1);
    const v1::Dataset& told = leased.new_tasks(0).optimize().calibration();
    EXPECT_THAT(Text(told),
                is_new ? AllOf(HasSubstr("role: SAMPLES"), HasSubstr("std: 2"))
                       : AllOf(HasSubstr("files { path: \"a.png\""),
                               HasSubstr("input_std: 2")));
    EXPECT_EQ(told.sources_size(), is_new ? 1 : 0);
  }
}

TEST_F(JobDataServerTest, OlderWorkersGetNoTaskThatTheyWouldMisread) {
  OPTFARM_ASSERT_OK(
      Submit(SubmitWith("sources { role: INPUT files { path: 'x.npy' @ } "
                        "layout: CONSTANT }"))
          .status());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto old, Synchronize(WorkerCall()));
  EXPECT_EQ(old.new_tasks_size(), 0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto now, Synchronize(NewWorker()));
  ASSERT_EQ(now.new_tasks_size(), 1);
  EXPECT_EQ(now.new_tasks(0).optimize().calibration().sources(0).layout(),
            v1::DataSource::CONSTANT);
}

TEST_F(JobDataServerTest, FormatsGoToWorkersThatWriteThem) {
  v1::SubmitJobRequest request = SubmitWith("");
  for (const v1::ModelFormat format : {v1::TFLITE, v1::PB}) {
    request.mutable_spec()->add_out_formats(format);
  }
  OPTFARM_ASSERT_OK(Submit(request).status());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto old, Synchronize(NewWorker()));
  EXPECT_EQ(old.new_tasks_size(), 0);
  v1::SynchronizeRequest writer = NewWorker();
  writer.set_writes_out_formats(true);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto now, Synchronize(writer));
  ASSERT_EQ(now.new_tasks_size(), 1);
  EXPECT_THAT(now.new_tasks(0).optimize().out_formats(),
              ::testing::ElementsAre(v1::PB, v1::TFLITE));
  // What every job makes is not asked for.
  request.mutable_spec()->clear_out_formats();
  request.mutable_spec()->add_out_formats(v1::PB);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(request));
  EXPECT_EQ(job.spec().out_formats_size(), 0);
  request.mutable_spec()->add_out_formats(v1::PB);
  EXPECT_THAT(Submit(request).status(),
              StatusIs(kInvalid, HasSubstr("out_formats has PB twice")));
  request.mutable_spec()->set_out_formats(
      1, v1::ModelFormat::MODEL_FORMAT_UNSPECIFIED);
  EXPECT_THAT(Submit(request).status(),
              StatusIs(kInvalid, HasSubstr("give PB, ONNX or TFLITE")));
}

// As the database of a server of before there were sources holds it.
TEST_F(JobDataServerTest, StoredJobsGoOnAfterAnUpgrade) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::Job job,
      Submit(SubmitWith("files { path: 'a.png' @ } input_mean: 3")));
  server_.reset();
  MakeOld(
      "files { path: 'a.png' @ } files { path: 'arrays/2/x.npz' @ input: 'x' "
      "member: 'y' } input_mean: 3 labels_offset: 1",
      "labels { name: 'l.npz:z' @ }");
  Restart();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job stored, GetJob(job.job_id()));
  v1::Dataset wanted = Parse<v1::Dataset>(WithDigests(
      "sources { role: SAMPLES files { path: 'a.png' @ } mean: 3 std: 1 } "
      "sources { role: INPUT files { path: 'x.npz' @ } input: 'x' member: 'y' "
      "mean: 3 std: 1 } sources { role: LABELS files { path: 'l.npz' @ } "
      "member: 'z' } labels_offset: 1"));
  EXPECT_EQ(Text(stored.spec().calibration()), Text(wanted));
  EXPECT_FALSE(HasDeprecatedData(stored.spec()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto leased, Synchronize(NewWorker()));
  ASSERT_EQ(leased.new_tasks_size(), 1);
  EXPECT_EQ(Text(leased.new_tasks(0).optimize().calibration()),
            Text(stored.spec().calibration()));
}

}  // namespace
}  // namespace optfarm::server
