// optctl doctor names what is wrong, and optctl audit shows what was done.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "client_cli/command_line.h"
#include "client_cli/command_table.h"
#include "tests/client_cli/fake_farm_client.h"
#include "tests/support/test_data.h"

namespace optfarm::client_cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNow = 1'769'860'800;

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    v1::WhoAmIResponse& who = *farm_.who_am_i;
    who.set_version(OPTFARM_VERSION);
    who.mutable_time()->set_seconds(kNow);
    who.set_name("ci");
    who.set_project("vision");
    who.add_scopes(v1::Access::SUBMIT);
    who.mutable_expire_time()->set_seconds(kNow + 86400 * 30);
    who.set_workers(2);
    who.set_agents(1);
    AddDevice("pi4", v1::Device::AVAILABLE);
  }

  v1::Device& AddDevice(const std::string& name, v1::Device::State state) {
    v1::Device& device = farm_.devices.emplace_back();
    device.mutable_info()->set_name(name);
    device.set_state(state);
    return device;
  }

  ExitCode Run(const std::vector<std::string>& words) {
    const std::vector<CommandInfo> commands = AllCommands();
    auto parsed = ParseCommandLine(words, commands);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    std::ostringstream out, err;
    CommandContext context;
    context.out = &out;
    context.err = &err;
    context.format = parsed->global.format;
    context.clock = &clock_;
    context.connect = [this]() -> absl::StatusOr<std::unique_ptr<FarmClient>> {
      return std::make_unique<FakeFarmClient>(&farm_);
    };
    const auto code = parsed->command->Run(context);
    out_ = out.str();
    return code.ok() ? *code : ExitCodeOf(code.status());
  }

  FakeFarm farm_;
  FakeClock clock_{absl::FromUnixSeconds(kNow)};
  std::string out_;
};

TEST_F(DoctorTest, FindsNothingWrongWithAFarmAtWork) {
  EXPECT_EQ(Run({"doctor"}), ExitCode::kOk) << out_;
  EXPECT_THAT(out_, AllOf(HasSubstr("ci, may submit, project vision"),
                          HasSubstr("2 at work"), Not(HasSubstr("WRONG")),
                          Not(HasSubstr("look"))));
}

TEST_F(DoctorTest, NamesWhatIsWrongAndWhatToDo) {
  v1::WhoAmIResponse& who = *farm_.who_am_i;
  who.set_version("0.0.1");
  who.mutable_time()->set_seconds(kNow - 600);
  who.mutable_expire_time()->set_seconds(kNow + 3600);
  who.set_workers(0);
  AddDevice("pixel", v1::Device::OFFLINE);
  AddDevice("oven", v1::Device::QUARANTINED).set_state_reason("3 failures");
  EXPECT_EQ(Run({"doctor"}), ExitCode::kJobFailed);
  EXPECT_THAT(out_, ContainsRegex("version +look +the server is 0.0.1"));
  EXPECT_THAT(out_, ContainsRegex("clock +WRONG .*10m behind"));
  EXPECT_THAT(out_, ContainsRegex("token +look .*expires in 1h"));
  EXPECT_THAT(out_, ContainsRegex("workers +WRONG"));
  EXPECT_THAT(out_, ContainsRegex("device pixel +look +silent"));
  EXPECT_THAT(out_, ContainsRegex("device oven +look +quarantined: 3 fail"));
}

TEST_F(DoctorTest, TellsARefusedTokenFromAnAbsentServerAndFromTls) {
  farm_.who_am_i = absl::UnauthenticatedError("the bearer token has expired");
  EXPECT_EQ(Run({"doctor"}), ExitCode::kJobFailed);
  EXPECT_THAT(out_, ContainsRegex("token +WRONG +the bearer token has"));
  farm_.who_am_i = absl::UnavailableError("cannot reach the server");
  EXPECT_EQ(Run({"doctor"}), ExitCode::kJobFailed);
  EXPECT_THAT(out_, ContainsRegex("server +WRONG +cannot reach"));
  farm_.who_am_i = absl::UnavailableError("Ssl handshake failed");
  EXPECT_EQ(Run({"doctor"}), ExitCode::kJobFailed);
  EXPECT_THAT(out_, ContainsRegex("TLS +WRONG .*--tls_ca"));
}

TEST_F(DoctorTest, LooksAtTheDataFolder) {
  const std::string folder = testing::FreshFolder();
  EXPECT_TRUE(MakeFolders(folder).ok());
  ::chmod(folder.c_str(), 0755);
  const std::string flag = absl::StrCat("--data_dir=", folder);
  EXPECT_EQ(Run({"doctor", flag}), ExitCode::kJobFailed);
  EXPECT_THAT(out_, ContainsRegex("data folder +WRONG .*chmod 700"));
  ::chmod(folder.c_str(), 0700);
  const std::string tokens = JoinPath(folder, "tokens.db");
  EXPECT_TRUE(WriteFileAtomically(tokens, "x").ok());
  ::chmod(tokens.c_str(), 0644);
  EXPECT_EQ(Run({"doctor", flag}), ExitCode::kJobFailed);
  EXPECT_THAT(out_, ContainsRegex("tokens.db +WRONG .*chmod 600"));
  EXPECT_THAT(out_, ContainsRegex("data folder +ok"));
  EXPECT_EQ(Run({"doctor", absl::StrCat(flag, "/none")}), ExitCode::kJobFailed);
}

TEST_F(DoctorTest, AuditShowsEntriesAndAsksForThem) {
  v1::AuditEntry& entry = *farm_.audit.add_entries();
  entry.mutable_time()->set_seconds(kNow);
  entry.set_actor("ci");
  entry.set_method("JobService.SubmitJob");
  entry.set_subject("j1");
  entry.set_outcome("OK");
  EXPECT_EQ(Run({"audit", "--project=vision", "--since=1h", "--limit=7"}),
            ExitCode::kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("JobService.SubmitJob"), HasSubstr("j1"),
                          HasSubstr("01-31 12:00:00")));
  EXPECT_EQ(Run({"audit", "-o", "wide"}), ExitCode::kOk);
  EXPECT_THAT(out_, HasSubstr("2026-01-31T12:00:00+00:00"));
  EXPECT_EQ(Run({"audit", "--project=vision", "--since=1h", "--limit=7"}),
            ExitCode::kOk);
  EXPECT_EQ(farm_.audit_request.project(), "vision");
  EXPECT_EQ(farm_.audit_request.from_time().seconds(), kNow - 3600);
  EXPECT_EQ(farm_.audit_request.page_size(), 7);
}

}  // namespace
}  // namespace optfarm::client_cli
