// Named servers: what is kept, and which of flags, environment and context
// counts.

#include "client_cli/command/contexts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ContextsTest : public ::testing::Test {
 protected:
  ContextsTest() {
    variables_["XDG_CONFIG_HOME"] = FreshFolder();
    path_ = *ContextsPath(Environment());
  }

  client_cli::Environment Environment() {
    return [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::string() : found->second;
    };
  }

  void SaveLab() {
    Contexts contexts;
    contexts.by_name["lab"].server = "lab:1";
    contexts.by_name["lab"].token_file = "/lab.token";
    contexts.by_name["lab"].tls_ca = "/lab.pem";
    contexts.by_name["other"].server = "other:2";
    contexts.current = "lab";
    OPTFARM_ASSERT_OK(SaveContexts(contexts, path_));
  }

  FarmAddress Found() {
    const auto found = FindFarm(flags_, Environment());
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(FarmAddress());
  }

  std::map<std::string, std::string> variables_;
  std::string path_;
  GlobalFlags flags_;
};

TEST_F(ContextsTest, TheTraceIsThatOfTheEnvironment) {
  EXPECT_EQ(Found().trace_parent, "");
  const std::string parent =
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  variables_["TRACEPARENT"] = parent;
  EXPECT_EQ(Found().trace_parent, parent);
  // What gRPC would not take as metadata, and what is no trace.
  variables_["TRACEPARENT"] = parent + "\n";
  EXPECT_EQ(Found().trace_parent, "");
  variables_["TRACEPARENT"] = "on";
  EXPECT_EQ(Found().trace_parent, "");
}

TEST_F(ContextsTest, AreKeptForTheUserAlone) {
  SaveLab();
  struct stat file = {}, folder = {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(path_.substr(0, path_.rfind('/')).c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Contexts read, LoadContexts(path_));
  EXPECT_EQ(read.current, "lab");
  EXPECT_EQ(read.by_name.at("lab").tls_ca, "/lab.pem");
  EXPECT_EQ(read.by_name.at("other").token_file, "");
}

TEST_F(ContextsTest, HomeIsTheFolderWithoutXdg) {
  variables_.clear();
  EXPECT_FALSE(ContextsPath(Environment()).ok());
  variables_["HOME"] = "/users/me";
  EXPECT_EQ(*ContextsPath(Environment()),
            "/users/me/.config/optfarm/contexts.json");
}

TEST_F(ContextsTest, FilesOfOthersAreRefused) {
  ASSERT_TRUE(MakeFolders(path_.substr(0, path_.rfind('/'))).ok());
  for (const std::string text :
       {"", "[]", "{}", "{\"contexts\": 1}", "{\"contexts\": {\"a\": 1}}"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    EXPECT_THAT(LoadContexts(path_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is no file of contexts")))
        << text;
  }
}

TEST_F(ContextsTest, WithoutAnyTheServerIsTheDefault) {
  EXPECT_EQ(Found().server, kDefaultServer);
  variables_["OPTFARM_SERVER"] = "env:3";
  EXPECT_EQ(Found().server, "env:3");
  flags_.server = "flag:4";
  EXPECT_EQ(Found().server, "flag:4");
}

TEST_F(ContextsTest, TheOneInUseGivesServerTokenAndTls) {
  SaveLab();
  EXPECT_EQ(Found().server, "lab:1");
  EXPECT_EQ(Found().token_file, "/lab.token");
  EXPECT_EQ(Found().tls_ca, "/lab.pem");
  flags_.token_file = "/mine";
  EXPECT_EQ(Found().token_file, "/mine");
  flags_.context = "other";
  EXPECT_EQ(Found().server, "other:2");
  flags_.context.clear();
  variables_["OPTFARM_CONTEXT"] = "other";
  EXPECT_EQ(Found().server, "other:2");
}

TEST_F(ContextsTest, AnotherServerIsSentNothingOfTheContext) {
  SaveLab();
  variables_["OPTFARM_SERVER"] = "env:3";
  EXPECT_EQ(Found().server, "env:3");
  EXPECT_EQ(Found().token_file, "");
  EXPECT_EQ(Found().tls_ca, "");
  // --context says more than the environment.
  flags_.context = "lab";
  EXPECT_EQ(Found().server, "lab:1");
  EXPECT_EQ(Found().token_file, "/lab.token");
  flags_.server = "flag:4";
  EXPECT_EQ(Found().server, "flag:4");
  EXPECT_EQ(Found().token_file, "");
}

TEST_F(ContextsTest, TokensOfTheEnvironmentStandForFiles) {
  SaveLab();
  variables_["OPTFARM_TOKEN"] = "secret";
  EXPECT_EQ(Found().token, "secret");
  EXPECT_EQ(Found().token_file, "");
  flags_.token_file = "/mine";
  EXPECT_EQ(Found().token, "");
  EXPECT_EQ(Found().token_file, "/mine");
}

TEST_F(ContextsTest, UnknownNamesAreAnsweredWithTheNearest) {
  SaveLab();
  flags_.context = "lav";
  const auto found = FindFarm(flags_, Environment());
  EXPECT_EQ(ExitCodeOf(found.status()), ExitCode::kUsage);
  EXPECT_THAT(found.status().message(),
              AllOf(HasSubstr("no context 'lav'"), HasSubstr("'lab'")));
}

}  // namespace
}  // namespace optfarm::client_cli
