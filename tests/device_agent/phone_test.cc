// A task on a phone, against a stand-in for adb that keeps each phone in a
// folder, with everything going wrong that does.

#include "device_agent/phone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/digest.h"
#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::device_agent {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PhoneTest : public ::testing::Test {
 protected:
  PhoneTest()
      : root_(FreshFolder()),
        adb_(AdbClient::Make(testing::SourcePath("tests/support/fake_adb.py"))
                 .value()),
        task_folder_(JoinPath(root_, "task")) {
    ::setenv("FAKE_ADB_PHONES", JoinPath(root_, "phones").c_str(), 1);
    EXPECT_THAT(MakeFolders(PhonePath("")), IsOk());
    EXPECT_THAT(task_folder_.Make(), IsOk());
    lease_.mutable_benchmark()->set_device("p1");
    for (int i = 0; i < 2; ++i) {
      lease_.mutable_benchmark()->add_variants()->set_name(
          absl::StrCat("v", i));
      const std::string folder =
          JoinPath(task_folder_.in(), absl::StrCat("variant", i));
      EXPECT_THAT(MakeFolders(folder), IsOk());
      Write(JoinPath(folder, "graph.pb"), absl::StrCat("graph ", i));
    }
    EXPECT_THAT(task_folder_.WriteLease(lease_), IsOk());
    // The benchmark program: gives back what it was given to read.
    v1::Completion outcome;
    outcome.mutable_benchmark()->add_measurements()->set_device("p1");
    Write(JoinPath(root_, "outcome"), outcome.SerializeAsString());
    task_.program = JoinPath(root_, "program");
    Write(task_.program,
          absl::StrCat("#!/bin/sh\necho measuring\n"
                       "cat ${1#--run_task=}/in/variant1/graph.pb\n"
                       "mkdir -p ${1#--run_task=}/state\n"
                       "cp ",
                       JoinPath(root_, "outcome"),
                       " ${1#--run_task=}/state/result.pb\n"));
    task_.flags = {"--name=p1"};
    task_.limit = absl::Seconds(30);
  }

  static void Write(const std::string& path, const std::string& bytes) {
    EXPECT_THAT(WriteFileAtomically(path, bytes), IsOk());
  }
  std::string PhonePath(const std::string& name) const {
    return JoinPath(JoinPath(root_, "phones/p1"), name);
  }
  void Fault(const std::string& line) {
    Write(PhonePath("faults"), line + "\n");
  }
  absl::StatusOr<v1::Completion> Run() {
    return Phone(adb_, "p1").Run(lease_, task_folder_, task_);
  }
  int Pushes() const {
    const std::string log = ReadFile(PhonePath("log")).value_or("");
    int count = 0;
    for (const absl::string_view line : absl::StrSplit(log, '\n')) {
      count += line.substr(0, 5) == "push " ? 1 : 0;
    }
    return count;
  }
  void ExpectClean() const {
    EXPECT_FALSE(Exists(PhonePath("data/optfarm/task")));
  }

  const std::string root_;
  const AdbClient adb_;
  const rpc::TaskFolder task_folder_;
  v1::LeasedTask lease_;
  PhoneTask task_;
};

TEST_F(PhoneTest, RunsTheProgramThereAndBringsItsOutcome) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Completion outcome, Run());
  EXPECT_EQ(outcome.benchmark().measurements(0).device(), "p1");
  EXPECT_THAT(ReadFile(task_folder_.log()).value_or(""),
              AllOf(HasSubstr("measuring"), HasSubstr("graph 1")));
  ExpectClean();
}

TEST_F(PhoneTest, SendsEachFileOnce) {
  ASSERT_THAT(Run(), IsOk());
  // Program, two graphs, and the lease.
  EXPECT_EQ(Pushes(), 4);
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(Pushes(), 5);
  Write(JoinPath(task_folder_.in(), "variant0/graph.pb"), "another");
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(Pushes(), 7);
}

TEST_F(PhoneTest, HalfSentFileIsSentAgain) {
  ASSERT_THAT(Run(), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto blobs,
                               ListFolder(PhonePath("data/optfarm/blobs")));
  for (const std::string& name : blobs) {
    Write(PhonePath("data/optfarm/blobs/" + name), "cut");
  }
  ASSERT_THAT(Run(), IsOk());
}

TEST_F(PhoneTest, FileOfTheRightSizeWithOtherBytesIsSentAgain) {
  ASSERT_THAT(Run(), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto blobs,
                               ListFolder(PhonePath("data/optfarm/blobs")));
  ASSERT_EQ(blobs.size(), 3u);
  const std::string ran = JoinPath(root_, "changed-program-ran");
  for (const std::string& name : blobs) {
    const std::string path = PhonePath("data/optfarm/blobs/" + name);
    OPTFARM_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path, 1 << 20));
    const std::string evil = absl::StrCat("#!/bin/sh\n: > ", ran, "\n#");
    const size_t size = bytes.size();
    bytes = evil + bytes;
    bytes.resize(size);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  EXPECT_THAT(Run(), IsOk());
  EXPECT_FALSE(Exists(ran));
  EXPECT_EQ(Pushes(), 8);
  for (const std::string& name : blobs) {
    EXPECT_EQ(
        Sha256OfFile(PhonePath("data/optfarm/blobs/" + name)).value_or(""),
        name);
  }
}

TEST_F(PhoneTest, FileThatChangesOnItsWayDoesNotRun) {
  Fault("damage_push 1");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("changed on its way")));
  ExpectClean();
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(PhoneTest, PhoneWithoutDigestsIsSentAllForEachTask) {
  Fault("no_sha256sum");
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(Pushes(), 4);
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(Pushes(), 8);
}

TEST_F(PhoneTest, HangingBenchmarkIsEnded) {
  Fault("hang_run 1");
  task_.limit = absl::Milliseconds(300);
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("no end after 300ms")));
  ExpectClean();
  task_.limit = absl::Seconds(30);
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(PhoneTest, RebootInMidRunCostsTheAttemptAndNoMore) {
  Fault("reboot_run 1");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("error: closed")));
  // Still booting.
  EXPECT_THAT(Run(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not found")));
  ASSERT_THAT(RemoveAll(PhonePath("unplugged")), IsOk());
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(PhoneTest, CrashIsTold) {
  Fault("crash_run");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("Segmentation fault")));
  ExpectClean();
}

TEST_F(PhoneTest, FullPhoneMakesRoomOnce) {
  ASSERT_THAT(Run(), IsOk());
  Write(JoinPath(task_folder_.in(), "variant0/graph.pb"), "another");
  Fault("full 1");
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(PhoneTest, PhoneThatStaysFullIsNamed) {
  Fault("full_always");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable,
                              AllOf(HasSubstr("no room"), HasSubstr("p1"))));
  ExpectClean();
}

TEST_F(PhoneTest, DamagedOutcomeIsNotTaken) {
  Fault("lose_result 1");
  EXPECT_THAT(
      Run(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no outcome")));
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(PhoneTest, PhoneThatIsNotLetInIsTold) {
  Write(PhonePath("state"), "unauthorized");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("unauthorized")));
}

TEST_F(PhoneTest, NothingFromOutsideReachesThePhonesShell) {
  task_.flags = {"--name=p1; rm -rf /"};
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInternal,
                              HasSubstr("cannot be passed")));
}

TEST(AdbClientTest, SaysWhereAdbShouldBe) {
  EXPECT_THAT(AdbClient::Make("no-such-adb"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--adb")));
  EXPECT_THAT(AdbClient::Make("/no/such/adb"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--adb")));
}

}  // namespace
}  // namespace optfarm::device_agent
