#include "client_cli/command/original_tool.h"

#include <cstddef>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "client_cli/command/help_pages.h"
#include "client_cli/tables/table.h"

namespace optfarm::client_cli {
namespace {

using Kind = FlagDeclaration::Kind;

// The words of one command line, read from the front.
class FlagReader {
 public:
  FlagReader(const std::vector<std::string>& words, OriginalLanguage language,
             const FlagSet& flags)
      : words_(words),
        python_(language == OriginalLanguage::kPython),
        flags_(flags.declarations()) {}

  // Returns whether help was asked for.
  absl::StatusOr<bool> ReadAll() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "--help" || word == "-h") return true;
      if (absl::StartsWith(word, "--")) {
        OPTFARM_RETURN_IF_ERROR(ReadFlag(word));
      } else {
        OPTFARM_RETURN_IF_ERROR(ReadArgument(word));
      }
    }
    OPTFARM_RETURN_IF_ERROR(CheckRequired());
    return false;
  }

 private:
  absl::Status ReadFlag(const std::string& word) {
    const size_t equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    const std::string name = word.substr(2, has_value ? equals - 2 : equals);
    bool negated = false;
    const FlagDeclaration* flag = FindFlag(name, &negated);
    if (flag == nullptr) {
      return UsageError(absl::StrCat("there is no flag --", name,
                                     NearestNamesHint(name, Names())));
    }
    if (negated) {
      if (!has_value) return Store(*flag, "false");
      return UsageError(absl::StrCat("--", name, " takes no value"));
    }
    if (has_value) return Store(*flag, word.substr(equals + 1));
    if (flag->kind == Kind::kSwitch) return Store(*flag, SwitchValue());
    if (next_ == words_.size() || absl::StartsWith(words_[next_], "--")) {
      return UsageError(absl::StrCat("--", flag->name, " needs a value"));
    }
    return Store(*flag, words_[next_++]);
  }

  // What follows a switch: a word that can only be its value, or nothing.
  std::string SwitchValue() {
    if (next_ == words_.size()) return "true";
    const std::string value = absl::AsciiStrToLower(words_[next_]);
    if (value != "true" && value != "false") return "true";
    return words_[next_++];
  }

  absl::Status ReadArgument(const std::string& word) {
    for (const FlagDeclaration& flag : flags_) {
      if (flag.kind == Kind::kArgument && !given_.contains(flag.name)) {
        return Store(flag, word);
      }
    }
    return UsageError(absl::StrCat("unknown argument '", word, "'"));
  }

  const FlagDeclaration* FindFlag(const std::string& name, bool* negated) {
    const FlagDeclaration* begins = nullptr;
    int beginnings = 0;
    for (const FlagDeclaration& flag : flags_) {
      if (flag.kind == Kind::kArgument) continue;
      if (flag.name == name) return &flag;
      if (python_ && !name.empty() && absl::StartsWith(flag.name, name)) {
        begins = &flag;
        ++beginnings;
      }
    }
    if (beginnings == 1) return begins;
    for (const FlagDeclaration& flag : flags_) {
      if (python_ && flag.kind == Kind::kSwitch &&
          name == absl::StrCat("no", flag.name)) {
        *negated = true;
        return &flag;
      }
    }
    return nullptr;
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names = {"help"};
    for (const FlagDeclaration& flag : flags_) {
      if (flag.kind != Kind::kArgument && !flag.hidden) {
        names.push_back(flag.name);
      }
    }
    return names;
  }

  absl::Status Store(const FlagDeclaration& flag, std::string value) {
    given_.insert(flag.name);
    if (flag.required && value.empty()) return Missing(flag);
    if (python_ && flag.kind == Kind::kSwitch) absl::AsciiStrToLower(&value);
    const absl::Status status = flag.store(value);
    if (status.ok()) return status;
    return UsageError(
        absl::StrCat(Shown(flag), ": ", std::string(status.message())));
  }

  absl::Status CheckRequired() const {
    for (const FlagDeclaration& flag : flags_) {
      if (flag.required && !given_.contains(flag.name)) return Missing(flag);
    }
    return absl::OkStatus();
  }

  static absl::Status Missing(const FlagDeclaration& flag) {
    return UsageError(absl::StrCat(Shown(flag), " must be given"));
  }

  static std::string Shown(const FlagDeclaration& flag) {
    return absl::StrCat(flag.kind == Kind::kArgument ? "" : "--", flag.name);
  }

  const std::vector<std::string>& words_;
  const bool python_;
  const std::vector<FlagDeclaration>& flags_;
  size_t next_ = 0;
  std::set<std::string> given_;
};

// Errors may quote names out of a model that somebody else made.
int Fail(const OriginalTool& tool, const absl::Status& status,
         const CommandContext& context) {
  *context.err << tool.name << ": " << PrintableText(status.message()) << "\n";
  if (absl::IsNotFound(status)) return tool.exit_codes.missing_file;
  return tool.exit_codes.error;
}

}  // namespace

const OriginalTool* FindOriginalTool(const std::vector<OriginalTool>& tools,
                                     absl::string_view program) {
  const std::string name = BaseName(program);
  for (const OriginalTool& tool : tools) {
    if (name == tool.name) return &tool;
    if (tool.language == OriginalLanguage::kPython &&
        name == absl::StrCat(tool.name, ".py")) {
      return &tool;
    }
  }
  return nullptr;
}

absl::StatusOr<bool> ParseOriginalFlags(const std::vector<std::string>& words,
                                        OriginalLanguage language,
                                        const FlagSet& flags) {
  return FlagReader(words, language, flags).ReadAll();
}

int RunOriginalTool(const OriginalTool& tool, const CommandContext& context) {
  const std::unique_ptr<Command> command = tool.create();
  FlagSet flags;
  command->DeclareFlags(&flags);
  const absl::StatusOr<bool> help =
      ParseOriginalFlags(context.words, tool.language, flags);
  if (!help.ok()) {
    *context.err << tool.name << ": " << PrintableText(help.status().message())
                 << " (see " << tool.name << " --help)\n";
    return tool.exit_codes.usage;
  }
  if (*help) {
    *context.out << OriginalToolPage(tool.name, tool.command, flags);
    return 0;
  }
  const absl::StatusOr<ExitCode> code = command->Run(context);
  context.out->flush();
  if (!code.ok()) return Fail(tool, code.status(), context);
  if (!*context.out) {
    return Fail(tool, absl::UnavailableError("the output could not be written"),
                context);
  }
  return *code == ExitCode::kOk ? 0 : tool.exit_codes.negative;
}

}  // namespace optfarm::client_cli
