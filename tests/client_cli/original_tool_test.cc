// TensorFlow's tools by their own names: how they are found, how their flags
// are read, what they end with, and that the build made all the links.

#include "client_cli/command/original_tool.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "client_cli/original_tool_table.h"
#include "tests/client_cli/tool_test.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Flags {
  std::string graph, names, first, second;
  int64_t runs = 7;
  bool binary = true;
};

class OriginalFlagsTest : public ::testing::Test {
 protected:
  absl::StatusOr<bool> Parse(
      const std::vector<std::string>& words,
      OriginalLanguage language = OriginalLanguage::kCpp) {
    values_ = {};
    FlagSet flags;
    flags.Text("input_graph", "FILE", "", &values_.graph);
    flags.Text("input_names", "A,B", "", &values_.names);
    flags.Integer("runs", "", &values_.runs, -100);
    flags.Switch("binary", "", &values_.binary);
    flags.Argument("FIRST", "", &values_.first, false);
    flags.Argument("SECOND", "", &values_.second, false);
    return ParseOriginalFlags(words, language, flags);
  }

  Flags values_;
};

TEST_F(OriginalFlagsTest, TakesValuesAfterEqualsAndAsTheNextWord) {
  EXPECT_TRUE(Parse({"--input_graph=a=b", "--input_names", "x,y", "one",
                     "--runs", "-1", "two"})
                  .ok());
  EXPECT_EQ(values_.graph, "a=b");
  EXPECT_EQ(values_.names, "x,y");
  EXPECT_EQ(values_.runs, -1);
  EXPECT_EQ(values_.first, "one");
  EXPECT_EQ(values_.second, "two");
}

TEST_F(OriginalFlagsTest, KeepsDefaultsAndTheLastOfTwoValues) {
  EXPECT_TRUE(
      Parse({"--input_graph=a", "--input_graph=b", "--input_names="}).ok());
  EXPECT_EQ(values_.graph, "b");
  EXPECT_EQ(values_.names, "");
  EXPECT_EQ(values_.runs, 7);
  EXPECT_TRUE(values_.binary);
}

TEST_F(OriginalFlagsTest, ReadsBooleansAsTheLanguageWritesThem) {
  EXPECT_TRUE(Parse({"--binary=false"}).ok());
  EXPECT_FALSE(values_.binary);
  EXPECT_TRUE(Parse({"--binary", "false", "--binary"}).ok());
  EXPECT_TRUE(values_.binary);
  EXPECT_TRUE(Parse({"--binary", "a_word"}).ok());
  EXPECT_TRUE(values_.binary);
  EXPECT_EQ(values_.first, "a_word");
  EXPECT_THAT(Parse({"--binary=False"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--")));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--binary=False"},
        {"--binary", "False"},
        {"--nobinary"}}) {
    EXPECT_TRUE(Parse(words, OriginalLanguage::kPython).ok());
    EXPECT_FALSE(values_.binary) << words[0];
  }
}

TEST_F(OriginalFlagsTest, PythonTakesTheBeginningOfOneName) {
  EXPECT_TRUE(
      Parse({"--input_g=a", "--b=False"}, OriginalLanguage::kPython).ok());
  EXPECT_EQ(values_.graph, "a");
  EXPECT_FALSE(values_.binary);
  EXPECT_THAT(Parse({"--input=a"}, OriginalLanguage::kPython),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--")));
  EXPECT_THAT(
      Parse({"--input_g=a"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input_graph")));
}

TEST_F(OriginalFlagsTest, SaysWhatIsWrong) {
  EXPECT_THAT(Parse({"--runs"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("needs a value")));
  EXPECT_THAT(Parse({"--runs=5x"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'5x'")));
  EXPECT_THAT(Parse({"a", "b", "c"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'c'")));
  const absl::StatusOr<bool> help = Parse({"--help", "--nonsense"});
  ASSERT_TRUE(help.ok());
  EXPECT_TRUE(*help);
}

// Answers with what the test set.
absl::StatusOr<ExitCode> answer = ExitCode::kOk;
class AnswerCommand final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Text("in", "X", "A word.", &in_);
    flags->Required();
  }
  absl::StatusOr<ExitCode> Run(const CommandContext&) override {
    return answer;
  }

 private:
  std::string in_;
};

int RunAnswer(const std::vector<std::string>& words, std::string* errors) {
  const OriginalTool tool = {
      .name = "answer_tool",
      .command = "graph answer",
      .exit_codes = {2, 3, 4, 5},
      .create = [] { return std::unique_ptr<Command>(new AnswerCommand); }};
  std::ostringstream out, err;
  CommandContext context;
  context.out = &out;
  context.err = &err;
  context.words = words;
  const int code = RunOriginalTool(tool, context);
  *errors = err.str();
  return code;
}

TEST(OriginalToolTest, EndsWithTheOriginalsExitCodes) {
  std::string errors;
  answer = ExitCode::kOk;
  EXPECT_EQ(RunAnswer({"--in=x"}, &errors), 0);
  EXPECT_EQ(RunAnswer({}, &errors), 2);
  EXPECT_EQ(errors,
            "answer_tool: --in must be given (see answer_tool --help)\n");
  answer = absl::NotFoundError("'x' is not there");
  EXPECT_EQ(RunAnswer({"--in=x"}, &errors), 3);
  EXPECT_EQ(errors, "answer_tool: 'x' is not there\n");
  answer = absl::InvalidArgumentError("no graph");
  EXPECT_EQ(RunAnswer({"--in=x"}, &errors), 4);
  answer = ExitCode::kJobFailed;
  EXPECT_EQ(RunAnswer({"--in=x"}, &errors), 5);
  EXPECT_EQ(RunAnswer({"--help"}, &errors), 0);
}

TEST(OriginalToolTest, IsFoundByTheNameOfItsLink) {
  std::vector<OriginalTool> tools(2);
  tools[0].name = "summarize_graph";
  tools[1].name = "freeze_graph";
  tools[1].language = OriginalLanguage::kPython;
  EXPECT_EQ(FindOriginalTool(tools, "summarize_graph"), &tools[0]);
  EXPECT_EQ(FindOriginalTool(tools, "/usr/bin/freeze_graph"), &tools[1]);
  EXPECT_EQ(FindOriginalTool(tools, "./freeze_graph.py"), &tools[1]);
  EXPECT_EQ(FindOriginalTool(tools, "summarize_graph.py"), nullptr);
  EXPECT_EQ(FindOriginalTool(tools, "optctl"), nullptr);
  EXPECT_EQ(FindOriginalTool(tools, ""), nullptr);
}

TEST(OriginalToolTest, NamesAreDifferentAndNothingIsMissing) {
  std::set<std::string> names;
  for (const OriginalTool& tool : AllOriginalTools()) {
    EXPECT_TRUE(names.insert(tool.name).second) << tool.name;
    EXPECT_THAT(tool.command, StartsWith("graph "));
    ASSERT_NE(tool.create, nullptr) << tool.name;
  }
}

class OriginalLinksTest : public ToolTest {};

TEST_F(OriginalLinksTest, EveryToolHasALinkThatKnowsWhatItIs) {
  for (const OriginalTool& tool : AllOriginalTools()) {
    EXPECT_EQ(Run(tool.name, {"--help"}), 0) << tool.name;
    EXPECT_THAT(output_, AllOf(StartsWith(absl::StrCat("Usage: ", tool.name)),
                               HasSubstr(BaseName(absl::StrReplaceAll(
                                   tool.command, {{" ", "/"}})))));
    EXPECT_EQ(Run(tool.name, {"--no_such_flag=1"}), tool.exit_codes.usage);
  }
}

}  // namespace
}  // namespace optfarm::client_cli
