// What the daemons say of flags that cannot be meant, before they start.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "tests/integration/farm.h"
#include "tests/support/test_data.h"

namespace optfarm::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RefusedFlagsTest : public ::testing::Test {
 protected:
  // What `program` says before it ends with `code`, all within patience.
  std::string Refusal(const std::string& program,
                      const std::vector<std::string>& flags, int code) {
    SubprocessOptions options;
    options.argv = {testing::ProgramPath(program)};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    options.output_file = JoinPath(folder_, flags.back());
    auto process = Subprocess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) return "";
    const std::optional<SubprocessExit> exit = process->Wait(kPatience);
    EXPECT_TRUE(exit.has_value()) << program << " runs with " << flags.back();
    EXPECT_EQ(exit ? exit->exit_code : -1, code);
    return ReadFile(options.output_file).value_or("");
  }

  const std::string folder_ = testing::FreshFolder();
};

TEST_F(RefusedFlagsTest, ServerNamesFlagAndValueAndWhatIsAllowed) {
  const std::string data = "--data_dir=" + folder_;
  for (const auto& [flag, says] :
       std::vector<std::pair<std::string, std::string>>{
           {"--max_live_jobs=0", "'0' is not a number above 0"},
           {"--max_store_bytes=many", "'many' is not a number above 0"},
           {"--keep_jobs_days=-1", "'-1' is not a number from 0 up"},
           {"--project_calls_per_second=nan",
            "'nan' is not a number from 0 up"}}) {
    const std::string text = Refusal("optfarm-server", {data, flag}, 2);
    EXPECT_THAT(text, HasSubstr(flag.substr(0, flag.find('=')) + ": " + says));
    EXPECT_THAT(text, SizeIs(::testing::Lt(200)));
  }
}

TEST_F(RefusedFlagsTest, ServerNamesWhatIsWrongWithItsCollector) {
  const std::string data = "--data_dir=" + folder_;
  EXPECT_THAT(
      Refusal("optfarm-server", {data, "--otlp_endpoint=localhost:4318"}, 1),
      AllOf(HasSubstr("--otlp_endpoint"),
            HasSubstr("'localhost:4318' is neither http nor https")));
  OPTFARM_ASSERT_OK(MakeFolders(folder_));
  const std::string headers = JoinPath(folder_, "headers");
  OPTFARM_ASSERT_OK(WriteFileAtomically(headers, "very-secret"));
  const std::string text =
      Refusal("optfarm-server",
              {data, "--otlp_headers_file=" + headers,
               "--otlp_endpoint=http://localhost:4318", "--grpc=127.0.0.1:0"},
              1);
  EXPECT_THAT(text, AllOf(HasSubstr("--otlp_headers_file"),
                          HasSubstr("line 1 has no colon")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("very-secret")));
}

TEST_F(RefusedFlagsTest, AgentLooksAtItsCpusBeforeItJoins) {
  EXPECT_THAT(Refusal("optfarm-agent", {"--cpus=1023"}, 1),
              AllOf(HasSubstr("--cpus: measuring on CPUs 1023"),
                    HasSubstr("is not there")));
  EXPECT_THAT(Refusal("optfarm-agent", {"--cpus=fast"}, 1),
              HasSubstr("--cpus: 'fast' is no CPU's number"));
}

}  // namespace
}  // namespace optfarm::integration
