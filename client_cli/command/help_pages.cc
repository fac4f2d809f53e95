#include "client_cli/command/help_pages.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optfarm::client_cli {
namespace {

constexpr size_t kLineWidth = 80;

constexpr char kExitCodes[] =
    "Exit codes:\n"
    "  0    success; with --wait: the job succeeded\n"
    "  1    the job failed, or was cancelled\n"
    "  2    wrong usage: a flag, a value, a local file, a recipe or a "
    "transform\n"
    "  3    the server requires a token (--token_file) or rejected it\n"
    "  4    the server has no such job, device or blob\n"
    "  5    the server cannot be reached\n"
    "  6    the result missed a gate\n"
    "  7    the job failed because the model or its data cannot work\n"
    "  8    a limit of the server or of the project is reached\n"
    "  124  --timeout expired; a job continues\n";

constexpr char kEnvironment[] =
    "Environment:\n"
    "  OPTFARM_SERVER   default of --server\n"
    "  OPTFARM_CONTEXT  default of --context\n"
    "  OPTFARM_TOKEN    the bearer token, in place of --token_file\n"
    "  NO_COLOR         if set, disables colours\n";

std::string CommandLines(absl::Span<const CommandInfo> commands,
                         absl::string_view group) {
  size_t width = 0;
  for (const CommandInfo& command : commands) {
    width = std::max(width, absl::string_view(command.name).size());
  }
  std::string text;
  absl::string_view under;
  for (const CommandInfo& command : commands) {
    const absl::string_view name = command.name;
    if (!group.empty() && !absl::StartsWith(name, absl::StrCat(group, " "))) {
      continue;
    }
    if (group.empty() && (text.empty() || under != command.group)) {
      under = command.group;
      absl::StrAppend(&text, text.empty() ? "" : "\n",
                      under.empty() ? "Commands" : under, ":\n");
    }
    const std::string head = absl::StrCat("  ", name);
    absl::StrAppend(&text, head,
                    WrapText(command.summary, static_cast<int>(width) + 4)
                        .substr(head.size()));
  }
  return text;
}

bool HasOptionalFlags(const FlagSet& flags) {
  for (const FlagDeclaration& flag : flags.declarations()) {
    if (flag.kind != FlagDeclaration::Kind::kArgument && !flag.required) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string UsageLine(absl::string_view program, const FlagSet& flags) {
  std::vector<std::string> words;
  for (const FlagDeclaration& flag : flags.declarations()) {
    if (flag.kind == FlagDeclaration::Kind::kArgument) {
      const std::string name =
          absl::StrCat(flag.name, flag.several ? "..." : "");
      words.push_back(flag.required ? name : absl::StrCat("[", name, "]"));
    } else if (flag.required) {
      words.push_back(absl::StrCat("--", flag.name, "=", flag.placeholder));
    }
  }
  if (HasOptionalFlags(flags)) words.push_back("[flags]");
  const std::string head = absl::StrCat("Usage: ", program);
  const size_t indent = head.size();
  std::string page = head;
  size_t column = indent;
  for (const std::string& word : words) {
    if (column + 1 + word.size() > kLineWidth) {
      absl::StrAppend(&page, "\n", std::string(indent, ' '));
      column = indent;
    }
    absl::StrAppend(&page, " ", word);
    column += 1 + word.size();
  }
  return absl::StrCat(page, "\n");
}

std::string ExitCodesText() {
  return std::string(absl::string_view(kExitCodes)
                         .substr(absl::string_view(kExitCodes).find('\n') + 1));
}

std::string EnvironmentText() {
  return std::string(
      absl::string_view(kEnvironment)
          .substr(absl::string_view(kEnvironment).find('\n') + 1));
}

std::string OverviewPage(absl::Span<const CommandInfo> commands,
                         const FlagSet& global, absl::string_view group) {
  if (!group.empty()) {
    return absl::StrCat("Usage: optctl ", group, " COMMAND [flags]\n\n",
                        "Commands:\n", CommandLines(commands, group), "\n",
                        "optctl ", group, " COMMAND --help explains one.\n");
  }
  return absl::StrCat(
      "optctl optimizes TensorFlow graphs, checks that they still give the "
      "same\n"
      "answers, and benchmarks them on a farm of devices or on this "
      "machine.\n"
      "\n"
      "Usage: optctl COMMAND [arguments] [flags]\n"
      "\n",
      CommandLines(commands, ""), "\n", "Flags of every command:\n",
      DescribeFlags(global.declarations()), "\n", kExitCodes, "\n",
      kEnvironment, "\n", "optctl help COMMAND explains a command.\n");
}

std::string CommandPage(const CommandInfo& command, const FlagSet& flags,
                        const FlagSet& global) {
  std::string page =
      absl::StrCat(UsageLine(absl::StrCat("optctl ", command.name), flags),
                   "\n", WrapText(command.summary, 0));
  if (command.details[0] != '\0') {
    absl::StrAppend(&page, "\n", WrapText(command.details, 0));
  }
  if (!flags.declarations().empty()) {
    absl::StrAppend(&page, "\n", DescribeFlags(flags.declarations()));
  }
  std::vector<FlagDeclaration> shared = global.declarations();
  std::erase_if(shared, [](const FlagDeclaration& flag) {
    return flag.name == "version";
  });
  absl::StrAppend(&page, "\nFlags of every command:\n", DescribeFlags(shared),
                  "\n", kExitCodes);
  return page;
}

std::string OriginalToolPage(absl::string_view tool, absl::string_view command,
                             const FlagSet& flags) {
  return absl::StrCat(UsageLine(tool, flags), "\n",
                      WrapText(absl::StrCat("Works as TensorFlow's ", tool,
                                            "; optctl ", command,
                                            " is the same command with more "
                                            "features."),
                               0),
                      "\n", DescribeFlags(flags.declarations()));
}

}  // namespace optfarm::client_cli
