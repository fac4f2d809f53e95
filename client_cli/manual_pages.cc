#include "client_cli/manual_pages.h"

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client_cli/command/help_pages.h"

namespace optfarm::client_cli {
namespace {

using Kind = FlagDeclaration::Kind;

// Text that troff prints as it is: a backslash and a hyphen mean something,
// and so does a dot or a quote at the beginning of a line.
std::string Escaped(absl::string_view text) {
  std::string escaped =
      absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) {
    escaped.insert(0, "\\&");
  }
  return escaped;
}

// Paragraphs, and blocks of lines that begin with a blank, kept as they are.
std::string Body(absl::string_view text) {
  std::string body;
  bool verbatim = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool indented = absl::StartsWith(line, " ");
    if (indented != verbatim) {
      absl::StrAppend(&body, indented ? ".PP\n.nf\n" : ".fi\n.PP\n");
      verbatim = indented;
    }
    if (!line.empty()) absl::StrAppend(&body, Escaped(line), "\n");
  }
  return absl::StrCat(body, verbatim ? ".fi\n" : "");
}

std::string FlagText(const FlagDeclaration& flag) {
  std::string head = absl::StrCat(flag.name, flag.several ? "..." : "");
  if (flag.kind != Kind::kArgument) {
    head = absl::StrCat(
        flag.letter.empty() ? "" : absl::StrCat("-", flag.letter, ", "), "--",
        flag.name,
        flag.kind == Kind::kSwitch ? "" : absl::StrCat("=", flag.placeholder));
  }
  return absl::StrCat(
      ".TP\n\\fB", Escaped(head), "\\fR\n", Escaped(flag.help),
      flag.kind == Kind::kRepeatable ? " May be given several times." : "",
      "\n");
}

std::string FlagsText(absl::string_view heading, const FlagSet& flags) {
  std::string text;
  for (const FlagDeclaration& flag : flags.declarations()) {
    if (!flag.hidden) absl::StrAppend(&text, FlagText(flag));
  }
  return text.empty() ? "" : absl::StrCat(".SH ", heading, "\n", text);
}

std::string Heading(absl::string_view name, absl::string_view summary,
                    absl::string_view version) {
  return absl::StrCat(".TH \"", absl::AsciiStrToUpper(name),
                      "\" 1 \"\" \"optfarm ", version,
                      "\" \"Optfarm\"\n.SH NAME\n", Escaped(name), " \\- ",
                      Escaped(summary), "\n");
}

std::string PageName(absl::string_view command) {
  return absl::StrCat("optctl-", absl::StrReplaceAll(command, {{" ", "-"}}));
}

ManualPage PageOf(const CommandInfo& command, const FlagSet& global,
                  absl::string_view version) {
  FlagSet flags;
  const std::unique_ptr<Command> instance = command.create();
  instance->DeclareFlags(&flags);
  const std::string name = PageName(command.name);
  std::string usage = UsageLine(absl::StrCat("optctl ", command.name), flags);
  usage = usage.substr(usage.find(' ') + 1);
  return {absl::StrCat(name, ".1"),
          absl::StrCat(Heading(name, command.summary, version),
                       ".SH SYNOPSIS\n", Escaped(usage), ".SH DESCRIPTION\n",
                       Escaped(command.summary), "\n",
                       command.details[0] == '\0' ? "" : ".PP\n",
                       Body(command.details), FlagsText("FLAGS", flags),
                       FlagsText("FLAGS OF EVERY COMMAND", global),
                       ".SH SEE ALSO\n.BR optctl (1)\n")};
}

ManualPage Overview(absl::Span<const CommandInfo> commands,
                    const FlagSet& global, absl::string_view version) {
  std::string list;
  absl::string_view group;
  for (const CommandInfo& command : commands) {
    if (group != command.group) {
      group = command.group;
      absl::StrAppend(&list, ".SS ", Escaped(group), "\n");
    }
    absl::StrAppend(&list, ".TP\n\\fB", Escaped(command.name), "\\fR\n",
                    Escaped(command.summary), "\n");
  }
  return {"optctl.1",
          absl::StrCat(
              Heading("optctl", "the command line of Optfarm", version),
              ".SH SYNOPSIS\noptctl COMMAND [arguments] [flags]\n"
              ".SH DESCRIPTION\n"
              "Optimizes models, checks that they still give the same answers, "
              "and benchmarks them on a farm of devices or on this machine. "
              "Each command has a page of its own, such as\n.BR "
              "optctl\\-submit (1).\n.SH COMMANDS\n",
              list, FlagsText("FLAGS OF EVERY COMMAND", global),
              ".SH EXIT STATUS\n", Body(ExitCodesText()), ".SH ENVIRONMENT\n",
              Body(EnvironmentText()))};
}

}  // namespace

std::vector<ManualPage> ManualPages(absl::Span<const CommandInfo> commands,
                                    const FlagSet& global,
                                    absl::string_view version) {
  std::vector<ManualPage> pages = {Overview(commands, global, version)};
  for (const CommandInfo& command : commands) {
    pages.push_back(PageOf(command, global, version));
  }
  return pages;
}

}  // namespace optfarm::client_cli
