// Parsing of optctl's command line: what is accepted, and what each mistake is
// answered with.

#include "client_cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What the last Build command was given.
struct Seen {
  std::string model, recipe, inputs;
  std::vector<std::string> devices;
  std::vector<int32_t> threads = {1};
  int64_t runs = 50;
  std::optional<double> mean;
  absl::Duration timeout;
  bool wait = false;
};
Seen* seen = nullptr;

class BuildCommand final : public Command {
 public:
  BuildCommand() { seen = &seen_; }
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("MODEL", "The model.", &seen_.model);
    flags->Text("recipe", "NAME", "What to do.", &seen_.recipe);
    flags->Required();
    flags->Text("inputs", "A,B", "Inputs.", &seen_.inputs);
    flags->Texts("device", "NAME", "Where to measure.", &seen_.devices);
    flags->Integers("threads", "How many threads.", &seen_.threads);
    flags->Integer("runs", "How many runs.", &seen_.runs, 1, 1000);
    flags->Number("mean", "Subtracted.", &seen_.mean);
    flags->Duration("timeout", "How long.", &seen_.timeout);
    flags->Switch("wait", "Wait.", &seen_.wait);
  }
  absl::StatusOr<ExitCode> Run(const CommandContext&) override {
    return ExitCode::kOk;
  }

 private:
  Seen seen_;
};

class OtherCommand final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {}
  absl::StatusOr<ExitCode> Run(const CommandContext&) override {
    return ExitCode::kOk;
  }
};

class CommandLineTest : public ::testing::Test {
 protected:
  absl::Status Parse(const std::vector<std::string>& words) {
    absl::StatusOr<ParsedCommandLine> parsed =
        ParseCommandLine(words, commands_, "127.0.0.1:7070");
    if (parsed.ok()) parsed_ = *std::move(parsed);
    return parsed.status();
  }
  void ExpectUsageError(const std::vector<std::string>& words,
                        const std::string& message) {
    const absl::Status status = Parse(words);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
    EXPECT_EQ(status.message(), message);
  }

  const std::vector<CommandInfo> commands_ = {
      {"build", "Build a model.", "Some details.",
       [] { return std::unique_ptr<Command>(new BuildCommand); }},
      {"graph run", "Run a graph.", "",
       [] { return std::unique_ptr<Command>(new OtherCommand); }},
      {"version", "Print the version.", "",
       [] { return std::unique_ptr<Command>(new OtherCommand); }},
  };
  ParsedCommandLine parsed_;
};

TEST_F(CommandLineTest, TakesValuesAfterAnEqualsSignOrABlank) {
  OPTFARM_ASSERT_OK(Parse({"build", "m.pb", "--recipe=int8", "--threads", "1,4",
                           "--mean", "-1.5", "--wait"}));
  ASSERT_NE(parsed_.command, nullptr);
  EXPECT_EQ(seen->model, "m.pb");
  EXPECT_EQ(seen->recipe, "int8");
  EXPECT_THAT(seen->threads, ElementsAre(1, 4));
  EXPECT_EQ(seen->mean, -1.5);
  EXPECT_TRUE(seen->wait);
}

TEST_F(CommandLineTest, FlagDoesNotTakeTheModelAsItsValue) {
  OPTFARM_ASSERT_OK(Parse({"build", "--wait", "--device", "pi4", "--device=b",
                           "--recipe", "int8", "m.pb"}));
  EXPECT_EQ(seen->model, "m.pb");
  EXPECT_THAT(seen->devices, ElementsAre("pi4", "b"));
}

TEST_F(CommandLineTest, EmptyValueIsEmptyAndTakesNothingElse) {
  OPTFARM_ASSERT_OK(Parse({"build", "--inputs=", "m.pb", "--recipe=int8"}));
  EXPECT_EQ(seen->inputs, "");
  EXPECT_EQ(seen->model, "m.pb");
}

TEST_F(CommandLineTest, SwitchesCanBeTurnedOff) {
  OPTFARM_ASSERT_OK(Parse({"build", "m.pb", "--recipe=r", "--wait=false"}));
  EXPECT_FALSE(seen->wait);
}

TEST_F(CommandLineTest, GlobalFlagsStandBeforeOrAfterTheCommand) {
  OPTFARM_ASSERT_OK(Parse({"--server=a:1", "version", "-o", "json"}));
  EXPECT_EQ(parsed_.global.server, "a:1");
  EXPECT_EQ(parsed_.global.format, OutputFormat::kJson);
  OPTFARM_ASSERT_OK(Parse({"version", "--server", "b:2", "--format=csv"}));
  EXPECT_EQ(parsed_.global.server, "b:2");
  EXPECT_EQ(parsed_.global.format, OutputFormat::kCsv);
  OPTFARM_ASSERT_OK(Parse({"version"}));
  EXPECT_EQ(parsed_.global.server, "127.0.0.1:7070");
  EXPECT_EQ(parsed_.global.format, OutputFormat::kTable);
}

TEST_F(CommandLineTest, VersionFlagIsTheVersionCommand) {
  OPTFARM_ASSERT_OK(Parse({"--version"}));
  EXPECT_NE(parsed_.command, nullptr);
}

TEST_F(CommandLineTest, TwoWordCommandsAreFound) {
  OPTFARM_ASSERT_OK(Parse({"graph", "run"}));
  EXPECT_NE(parsed_.command, nullptr);
}

TEST_F(CommandLineTest, DurationsHaveUnitsOrAreSeconds) {
  OPTFARM_ASSERT_OK(Parse({"build", "m", "--recipe=r", "--timeout=90"}));
  EXPECT_EQ(seen->timeout, absl::Seconds(90));
  OPTFARM_ASSERT_OK(Parse({"build", "m", "--recipe=r", "--timeout=1.5h"}));
  EXPECT_EQ(seen->timeout, absl::Minutes(90));
}

TEST_F(CommandLineTest, MistakesAreOneLineWithAHint) {
  ExpectUsageError({"build", "--recipe=int8"},
                   "MODEL is missing (see optctl build --help)");
  ExpectUsageError({"build", "m.pb"},
                   "--recipe is missing (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe="},
                   "--recipe is empty (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe"},
                   "--recipe needs a value (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe", "--wait"},
                   "--recipe needs a value (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe=a", "--recipe=b"},
                   "--recipe is given twice (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "x.pb", "--recipe=a"},
                   "argument 'x.pb' is one too many (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe=a", "--wait=maybe"},
                   "--wait: 'maybe' is not true or false (see optctl build "
                   "--help)");
  ExpectUsageError({"build", "m.pb", "--recipe=a", "--runs=0"},
                   "--runs: '0' is not a whole number from 1 to 1000 (see "
                   "optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe=a", "--threads=1,x"},
                   "--threads: '1,x' is not a list of whole numbers from 1 up, "
                   "like 1,4 (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe=a", "--mean=nan"},
                   "--mean: 'nan' is not a number (see optctl build --help)");
  ExpectUsageError({"build", "m.pb", "--recipe=a", "--timeout=soon"},
                   "--timeout: 'soon' is not a duration like 30s, 5m or 2h "
                   "(see optctl build --help)");
  ExpectUsageError({"version", "-o", "xml"},
                   "--format: 'xml' is not one of table, json, csv (see optctl "
                   "version --help)");
}

TEST_F(CommandLineTest, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_THAT(Parse({"build", "m.pb", "--recipee=int8"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("there is no flag --recipee"),
                             HasSubstr("'--recipe'"))));
  EXPECT_THAT(Parse({"biuld", "m.pb"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("there is no command 'biuld'"),
                             HasSubstr("'build'"))));
  EXPECT_THAT(Parse({"graph", "rum"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("there is no command 'graph rum'"),
                             HasSubstr("'graph run'"))));
}

TEST_F(CommandLineTest, MissingCommandIsAUsageError) {
  ExpectUsageError({}, "which command? optctl needs one (see optctl --help)");
  ExpectUsageError({"graph"},
                   "which command? graph needs one (see optctl graph --help)");
}

TEST_F(CommandLineTest, HelpListsCommandsFlagsAndExitCodes) {
  OPTFARM_ASSERT_OK(Parse({"--help"}));
  EXPECT_EQ(parsed_.command, nullptr);
  EXPECT_THAT(parsed_.help,
              AllOf(HasSubstr("  build      Build a model.\n"),
                    HasSubstr("  graph run  Run a graph.\n"),
                    HasSubstr("-o, --format=table|json|csv"),
                    HasSubstr("5    the server cannot be reached")));
}

TEST_F(CommandLineTest, HelpOfACommandNeedsNoArguments) {
  OPTFARM_ASSERT_OK(Parse({"build", "--help"}));
  EXPECT_THAT(
      parsed_.help,
      AllOf(HasSubstr("Usage: optctl build MODEL --recipe=NAME [flags]"),
            HasSubstr("Some details."), HasSubstr("--device=NAME"),
            HasSubstr("May be given several times."),
            HasSubstr("Exit codes:")));
  OPTFARM_ASSERT_OK(Parse({"graph", "-h"}));
  EXPECT_THAT(parsed_.help,
              AllOf(HasSubstr("graph run"), Not(HasSubstr("build"))));
}

TEST_F(CommandLineTest, HelpFitsIntoEightyCharacters) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"build", "--help"}}) {
    OPTFARM_ASSERT_OK(Parse(words));
    size_t start = 0;
    while (start < parsed_.help.size()) {
      const size_t end = parsed_.help.find('\n', start);
      EXPECT_LE(end - start, 80u) << parsed_.help.substr(start, end - start);
      start = end + 1;
    }
  }
}

}  // namespace
}  // namespace optfarm::client_cli
