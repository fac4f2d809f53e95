#include "client_cli/completion.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace optfarm::client_cli {
namespace {

using Kind = FlagDeclaration::Kind;

constexpr char kBash[] = R"(# Completion of optctl in bash; add to ~/.bashrc:
#   source <(optctl completion bash)
_optctl() {
  local line=${COMP_LINE:0:COMP_POINT} current='' word
  local -a words reply
  read -ra words <<< "$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${words[${#words[@]}-1]}
    unset "words[${#words[@]}-1]"
  fi
  mapfile -t reply < <("${words[0]:-optctl}" __complete "$current" \
    "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  # Bash completes what follows the last '='.
  local typed=${current#*=} before=''
  [[ $current == *=* ]] && before=${current%%=*}=
  if [[ ${reply[0]} == :files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$typed")
  fi
  for word in "${reply[@]:1}"; do COMPREPLY+=("${word#"$before"}"); done
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _optctl optctl
)";

constexpr char kZsh[] = R"(#compdef optctl
# Completion of optctl in zsh; put it into a folder of $fpath as _optctl:
#   optctl completion zsh > ~/.zsh/completions/_optctl
_optctl() {
  local current=$words[CURRENT] word
  local -a reply
  reply=("${(@f)$($words[1] __complete "$current" \
    "${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
  for word in "${(@)reply[2,-1]}"; do
    if [[ $word == *= ]]; then compadd -S '' -- "$word"; else compadd -- "$word"; fi
  done
  if [[ $reply[1] == :files ]]; then
    [[ $current == *=* ]] && compset -P '*='
    _files
  fi
}
if [[ $funcstack[1] == _optctl ]]; then _optctl "$@"; else compdef _optctl optctl; fi
)";

constexpr char kFish[] = R"(# Completion of optctl in fish:
#   optctl completion fish > ~/.config/fish/completions/optctl.fish
function __optctl_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l reply ($words[1] __complete "$current" $words[2..-1] 2>/dev/null)
  if test "$reply[1]" = ":files"
    set -l before (string match -r '^.*=' -- "$current")
    for path in (__fish_complete_path (string replace -r '^.*=' '' -- "$current"))
      echo "$before$path"
    end
  end
  string join \n -- $reply[2..-1]
end
complete -c optctl -f -a '(__optctl_complete)'
)";

const CommandInfo* FindCommand(absl::Span<const CommandInfo> commands,
                               const std::string& name) {
  for (const CommandInfo& info : commands) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

const FlagDeclaration* FindFlag(absl::Span<const FlagDeclaration> flags,
                                absl::string_view word) {
  for (const FlagDeclaration& flag : flags) {
    if (flag.kind == Kind::kArgument) continue;
    if (word == absl::StrCat("--", flag.name) ||
        (!flag.letter.empty() && word == absl::StrCat("-", flag.letter))) {
      return &flag;
    }
  }
  return nullptr;
}

std::vector<FlagDeclaration> FlagsOf(const CommandInfo* command,
                                     const FlagSet& global) {
  std::vector<FlagDeclaration> flags = global.declarations();
  if (command == nullptr) return flags;
  FlagSet own;
  const std::unique_ptr<Command> instance = command->create();
  instance->DeclareFlags(&own);
  flags.insert(flags.end(), own.declarations().begin(),
               own.declarations().end());
  return flags;
}

// The longest command that `words` begin with, flags left out.
const CommandInfo* LongestCommand(absl::Span<const CommandInfo> commands,
                                  const std::vector<std::string>& words) {
  const CommandInfo* found = nullptr;
  for (size_t count = 1; count <= std::min<size_t>(2, words.size()); ++count) {
    const std::string name =
        absl::StrJoin(words.begin(), words.begin() + count, " ");
    if (const CommandInfo* command = FindCommand(commands, name)) {
      found = command;
    }
  }
  return found;
}

// Whether a word is the value of the flag before it.
bool TakesNext(const FlagDeclaration* flag, const std::string& word) {
  return flag != nullptr && flag->kind != Kind::kSwitch &&
         !absl::StrContains(word, '=');
}

std::vector<std::string> WithoutFlags(absl::Span<const FlagDeclaration> flags,
                                      const std::vector<std::string>& before) {
  std::vector<std::string> plain;
  for (size_t i = 0; i < before.size(); ++i) {
    if (!absl::StartsWith(before[i], "-")) {
      plain.push_back(before[i]);
    } else if (TakesNext(FindFlag(flags, before[i]), before[i])) {
      ++i;
    }
  }
  return plain;
}

std::string KindOf(const FlagDeclaration& flag) {
  if (flag.name == "JOB" || flag.name == "job") return "job";
  if (flag.name == "device" || flag.name == "DEVICE") return "device";
  if (flag.name == "recipe") return "recipe";
  if (flag.name == "context") return "context";
  return "";
}

void AddValues(const FlagDeclaration& flag, const std::string& prefix,
               const LiveNames& live, Completion* completion) {
  std::vector<std::string> values = flag.choices;
  const std::string kind = KindOf(flag);
  if (!kind.empty()) values = live(kind);
  if (flag.kind == Kind::kSwitch) values = {"true", "false"};
  for (const std::string& value : values) {
    completion->words.push_back(absl::StrCat(prefix, value));
  }
  completion->files |= flag.is_path || kind == "recipe";
}

void AddFlags(absl::Span<const FlagDeclaration> flags, Completion* completion) {
  completion->words.push_back("--help");
  for (const FlagDeclaration& flag : flags) {
    if (flag.kind == Kind::kArgument || flag.hidden) continue;
    completion->words.push_back(
        absl::StrCat("--", flag.name, flag.kind == Kind::kSwitch ? "" : "="));
  }
}

// The next word of each command that begins with `plain`.
void AddCommands(absl::Span<const CommandInfo> commands,
                 const std::vector<std::string>& plain,
                 Completion* completion) {
  std::set<std::string> next;
  for (const CommandInfo& info : commands) {
    const std::vector<std::string> words = absl::StrSplit(info.name, ' ');
    if (words.size() > plain.size() &&
        std::equal(plain.begin(), plain.end(), words.begin())) {
      next.insert(words[plain.size()]);
    }
  }
  if (plain.empty()) next.insert({"help", "completion"});
  completion->words.insert(completion->words.end(), next.begin(), next.end());
}

void AddArgument(absl::Span<const FlagDeclaration> flags, size_t number,
                 const LiveNames& live, Completion* completion) {
  for (const FlagDeclaration& flag : flags) {
    if (flag.kind != Kind::kArgument) continue;
    if (flag.several || number-- == 0)
      return AddValues(flag, "", live, completion);
  }
}

}  // namespace

Completion Complete(absl::Span<const CommandInfo> commands,
                    const FlagSet& global,
                    const std::vector<std::string>& before,
                    const std::string& current, const LiveNames& live) {
  Completion completion;
  std::vector<std::string> plain = WithoutFlags(global.declarations(), before);
  const bool help = !plain.empty() && plain[0] == "help";
  if (help) plain.erase(plain.begin());
  const CommandInfo* command = LongestCommand(commands, plain);
  const std::vector<FlagDeclaration> flags = FlagsOf(command, global);
  const FlagDeclaration* last =
      before.empty() ? nullptr : FindFlag(flags, before.back());
  const size_t equals = current.find('=');
  if (before.size() == 1 && before[0] == "completion") {
    completion.words = {"bash", "fish", "zsh"};
  } else if (before.empty() ? false : TakesNext(last, before.back())) {
    AddValues(*last, "", live, &completion);
  } else if (absl::StartsWith(current, "-") && equals != std::string::npos) {
    const FlagDeclaration* flag = FindFlag(flags, current.substr(0, equals));
    if (flag != nullptr) {
      AddValues(*flag, current.substr(0, equals + 1), live, &completion);
    }
  } else if (absl::StartsWith(current, "-")) {
    AddFlags(flags, &completion);
  } else {
    AddCommands(commands, plain, &completion);
    if (command != nullptr && !help) {
      plain = WithoutFlags(flags, before);
      const size_t words =
          std::count(command->name, command->name + strlen(command->name),
                     ' ') +
          1;
      AddArgument(flags, plain.size() - std::min(plain.size(), words), live,
                  &completion);
    }
  }
  std::erase_if(completion.words, [&](const std::string& word) {
    // Choices are taken in any case.
    return !absl::StartsWithIgnoreCase(word, current) ||
           word.find_first_of(" \t\n") != std::string::npos;
  });
  return completion;
}

std::string CompletionText(const Completion& completion) {
  return absl::StrCat(completion.files ? ":files\n" : ":words\n",
                      absl::StrJoin(completion.words, "\n"),
                      completion.words.empty() ? "" : "\n");
}

absl::StatusOr<std::string> CompletionScript(absl::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return absl::InvalidArgumentError(
      absl::StrCat("completion: give bash, zsh or fish, not '", shell, "'"));
}

}  // namespace optfarm::client_cli
