// Parsing of optctl's command line: what is accepted, and what each mistake is
// answered with.

#include "client_cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
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
        ParseCommandLine(words, commands_);
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
  EXPECT_EQ(parsed_.global.server, "");
  EXPECT_EQ(parsed_.global.format, OutputFormat::kTable);
  EXPECT_TRUE(parsed_.global.format.headers);
}

TEST_F(CommandLineTest, FormatsAreTakenInAnyCaseAndFlagsWithDashes) {
  OPTFARM_ASSERT_OK(Parse({"version", "-o", "YAML", "--no-headers"}));
  EXPECT_EQ(parsed_.global.format, OutputFormat::kJson);
  EXPECT_TRUE(parsed_.global.yaml);
  EXPECT_FALSE(parsed_.global.format.headers);
  OPTFARM_ASSERT_OK(Parse({"version", "-o", "wide", "--context=lab"}));
  EXPECT_EQ(parsed_.global.format, OutputFormat::kTable);
  EXPECT_TRUE(parsed_.global.format.wide);
  EXPECT_EQ(parsed_.global.context, "lab");
}

TEST_F(CommandLineTest, HelpIsACommandToo) {
  OPTFARM_ASSERT_OK(Parse({"help"}));
  const std::string overview = parsed_.help;
  OPTFARM_ASSERT_OK(Parse({"--help"}));
  EXPECT_EQ(parsed_.help, overview);
  OPTFARM_ASSERT_OK(Parse({"help", "build"}));
  EXPECT_THAT(parsed_.help, HasSubstr("Usage: optctl build MODEL"));
  OPTFARM_ASSERT_OK(Parse({"help", "graph", "run"}));
  EXPECT_THAT(parsed_.help, HasSubstr("Usage: optctl graph run"));
  EXPECT_THAT(Parse({"help", "biuld"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there is no command 'biuld'")));
}

TEST_F(CommandLineTest, OverviewHasGroups) {
  std::vector<CommandInfo> commands = commands_;
  commands[0].group = "Things";
  commands[1].group = commands[2].group = "Others";
  const auto parsed = ParseCommandLine({"help"}, commands);
  OPTFARM_ASSERT_OK(parsed.status());
  EXPECT_THAT(parsed->help, AllOf(HasSubstr("\nThings:\n  build "),
                                  HasSubstr("\n\nOthers:\n  graph run ")));
}

TEST_F(CommandLineTest, StandardStreamsTakeThePlaceOfFiles) {
  class Copy final : public Command {
   public:
    void DeclareFlags(FlagSet* flags) override {
      flags->Path("from", "FILE", "Read.", &from);
      flags->Reads();
      flags->Path("to", "FILE", "Written.", &to);
      flags->Writes();
      flags->Text("text", "TEXT", "No file.", &text);
    }
    absl::StatusOr<ExitCode> Run(const CommandContext&) override {
      const auto bytes = ReadFile(from);
      if (!bytes.ok()) return bytes.status();
      const absl::Status status = WriteFileAtomically(to, *bytes + text);
      if (!status.ok()) return status;
      return ExitCode::kOk;
    }
    std::string from, to, text;
  };
  const std::vector<CommandInfo> commands = {
      {"copy", "Copy.", "", [] { return std::unique_ptr<Command>(new Copy); }}};
  int in[2], out[2];
  ASSERT_EQ(pipe(in), 0);
  ASSERT_EQ(pipe(out), 0);
  ASSERT_EQ(write(in[1], "bytes", 5), 5);
  close(in[1]);
  {
    StandardStreams streams(in[0], out[1]);
    const auto parsed = ParseCommandLine(
        {"copy", "--from=-", "--to", "-", "--text=-"}, commands, &streams);
    OPTFARM_ASSERT_OK(parsed.status());
    OPTFARM_ASSERT_OK(parsed->command->Run({}).status());
    ASSERT_TRUE(streams.has_output());
    OPTFARM_ASSERT_OK(streams.CopyOutput());
    // Each of them once.
    EXPECT_FALSE(streams.ReadInput().ok());
    EXPECT_FALSE(streams.MakeOutput().ok());
  }
  char read_back[16] = {};
  EXPECT_EQ(read(out[0], read_back, sizeof(read_back)), 6);
  EXPECT_EQ(std::string(read_back), "bytes-");
  for (const int fd : {in[0], out[0], out[1]}) close(fd);
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
  OPTFARM_ASSERT_OK(Parse({"build", "m", "--recipe=r", "--timeout=7d"}));
  EXPECT_EQ(seen->timeout, absl::Hours(168));
  OPTFARM_ASSERT_OK(Parse({"build", "m", "--recipe=r", "--timeout=0.5w"}));
  EXPECT_EQ(seen->timeout, absl::Hours(84));
  EXPECT_FALSE(Parse({"build", "m", "--recipe=r", "--timeout=d"}).ok());
  EXPECT_FALSE(Parse({"build", "m", "--recipe=r", "--timeout=-1d"}).ok());
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
                   "--timeout: 'soon' is not a duration like 30s, 5m, 2h or "
                   "7d (see optctl build --help)");
  ExpectUsageError({"version", "-o", "xml"},
                   "--format: 'xml' is not one of table, wide, json, yaml, csv "
                   "(see optctl version --help)");
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
                    HasSubstr("-o, --format=table|wide|json|yaml|csv"),
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
