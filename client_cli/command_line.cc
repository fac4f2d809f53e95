#include "client_cli/command_line.h"

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "client_cli/command/help_pages.h"

namespace optfarm::client_cli {
namespace {

using Kind = FlagDeclaration::Kind;

// CLI11 takes the next word as the value of `--flag=`; this stands for "".
constexpr char kEmptyValue[] = "\x01";

absl::Status UsageErrorWithHint(absl::string_view message,
                                absl::string_view command) {
  return UsageError(absl::StrCat(
      message, " (see optctl ",
      command.empty() ? "" : absl::StrCat(command, " "), "--help)"));
}

// The declared flags of one command (or the global ones) and the words that
// CLI11 found for each.
struct BoundFlags {
  FlagSet flags;
  std::vector<CLI::results_t> found;
  bool help = false;
};

std::string OptionName(const FlagDeclaration& flag) {
  if (flag.kind == Kind::kArgument) return flag.name;
  return absl::StrCat(
      flag.letter.empty() ? "" : absl::StrCat("-", flag.letter, ","), "--",
      flag.name);
}

// What people call it: "--recipe" or "MODEL".
std::string ShownName(const FlagDeclaration& flag) {
  return absl::StrCat(flag.kind == Kind::kArgument ? "" : "--", flag.name);
}

void Bind(CLI::App* app, BoundFlags* bound) {
  app->set_help_flag();
  app->add_flag("-h,--help", bound->help);
  const auto& declarations = bound->flags.declarations();
  bound->found.resize(declarations.size());
  for (size_t i = 0; i < declarations.size(); ++i) {
    CLI::results_t* found = &bound->found[i];
    const auto keep = [found](const CLI::results_t& results) {
      *found = results;
      return true;
    };
    CLI::Option* option =
        app->add_option(OptionName(declarations[i]), CLI::callback_t(keep));
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (declarations[i].kind == Kind::kSwitch) option->expected(0);
  }
}

absl::Status StoreOne(const FlagDeclaration& flag,
                      const CLI::results_t& found) {
  const std::string name = ShownName(flag);
  if (found.empty()) {
    if (!flag.required) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(name, " is missing"));
  }
  if (flag.kind == Kind::kSingle && found.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is given twice"));
  }
  for (const std::string& word : found) {
    if (flag.kind != Kind::kArgument && absl::StartsWith(word, "--")) {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    }
    const std::string value = word == kEmptyValue ? "" : word;
    if (value.empty() && flag.required) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is empty"));
    }
    if (absl::Status status = flag.store(value); !status.ok()) {
      return Annotate(status, name);
    }
  }
  return absl::OkStatus();
}

absl::Status StoreAll(const BoundFlags& bound, absl::string_view command) {
  for (size_t i = 0; i < bound.found.size(); ++i) {
    absl::Status status =
        StoreOne(bound.flags.declarations()[i], bound.found[i]);
    if (!status.ok()) return UsageErrorWithHint(status.message(), command);
  }
  return absl::OkStatus();
}

void DeclareGlobalFlags(GlobalFlags* global, std::string* format, bool* version,
                        FlagSet* flags) {
  flags->Text("server", "HOST:PORT",
              "Address of the server. Default: OPTFARM_SERVER, else "
              "127.0.0.1:7070.",
              &global->server);
  flags->Path("token_file", "FILE",
              "File with the bearer token for the server.",
              &global->token_file);
  flags->Path("tls_ca", "FILE",
              "CA that signed the server's certificate (PEM); enables TLS.",
              &global->tls_ca);
  flags->Path("tls_cert", "FILE",
              "Client certificate (PEM), if the server requires one.",
              &global->tls_cert);
  flags->Path("tls_key", "FILE", "Key of the client certificate (PEM).",
              &global->tls_key);
  flags->Choice("format",
                "Output format: for people, or for programs with stable field "
                "names. Default: table.",
                {"table", "json", "csv"}, format);
  flags->Letter("o");
  flags->Switch("version", "Print the version and exit.", version);
}

// All that lives as long as one parse.
class Parser {
 public:
  Parser(absl::Span<const CommandInfo> commands, const std::string& server)
      : commands_(commands), app_("", "optctl") {
    parsed_.global.server = server;
    DeclareGlobalFlags(&parsed_.global, &format_, &version_, &global_.flags);
    app_.fallthrough();
    app_.allow_extras();
    app_.require_subcommand(0, 1);
    Bind(&app_, &global_);
    for (const CommandInfo& info : commands_) AddCommand(info);
  }

  absl::StatusOr<ParsedCommandLine> Parse(std::vector<std::string> words) && {
    for (std::string& word : words) {
      if (absl::StartsWith(word, "--") && word.find('=') == word.size() - 1) {
        word += kEmptyValue;
      }
    }
    if (absl::Status status = RunCli11(words); !status.ok()) return status;
    const CommandInfo* chosen = Chosen();
    const std::string name = ChosenName();
    const bool help = global_.help || groups_help_ ||
                      (chosen != nullptr && bound_[name].help);
    if (help) return Help(chosen);
    OPTFARM_RETURN_IF_ERROR(CheckExtras(name, chosen));
    OPTFARM_RETURN_IF_ERROR(StoreAll(global_, name));
    if (version_ && chosen == nullptr) {
      chosen = Find("version");
    } else if (chosen == nullptr) {
      return UsageErrorWithHint(
          absl::StrCat("which command? ", name.empty() ? "optctl" : name,
                       " needs one"),
          name);
    }
    OPTFARM_RETURN_IF_ERROR(StoreAll(bound_[chosen->name], name));
    parsed_.global.format = format_ == "json"  ? OutputFormat::kJson
                            : format_ == "csv" ? OutputFormat::kCsv
                                               : OutputFormat::kTable;
    parsed_.command = std::move(instances_[chosen->name]);
    return std::move(parsed_);
  }

 private:
  void AddCommand(const CommandInfo& info) {
    const std::vector<std::string> words = absl::StrSplit(info.name, ' ');
    CLI::App* parent = &app_;
    if (words.size() > 1 && apps_.contains(words[0])) {
      // A command that stands alone too, as "results".
      parent = apps_[words[0]];
      parent->require_subcommand(0, 1);
    } else if (words.size() > 1) {
      CLI::App*& group = groups_[words[0]];
      if (group == nullptr) {
        group = app_.add_subcommand(words[0]);
        group->require_subcommand(0, 1);
        group->set_help_flag();
        group->add_flag("-h,--help", groups_help_);
      }
      parent = group;
    }
    CLI::App* sub = parent->add_subcommand(words.back());
    sub->require_subcommand(0);
    BoundFlags& bound = bound_[info.name];
    instances_[info.name] = info.create();
    instances_[info.name]->DeclareFlags(&bound.flags);
    Bind(sub, &bound);
    apps_[info.name] = sub;
  }

  absl::Status RunCli11(const std::vector<std::string>& words) {
    try {
      // CLI11 wants the words last first.
      app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ArgumentMismatch&) {
      return UsageErrorWithHint(absl::StrCat(words.back(), " needs a value"),
                                ChosenName());
    } catch (const CLI::ParseError& error) {
      return UsageErrorWithHint(error.what(), ChosenName());
    }
    return absl::OkStatus();
  }

  const CommandInfo* Find(absl::string_view name) const {
    for (const CommandInfo& info : commands_) {
      if (name == info.name) return &info;
    }
    return nullptr;
  }

  const CommandInfo* Chosen() const {
    for (const CommandInfo& info : commands_) {
      const CLI::App* app = apps_.at(info.name);
      if (app->parsed() && app->get_subcommands().empty()) return &info;
    }
    return nullptr;
  }

  // The command or group that was named; "" for neither.
  std::string ChosenName() const {
    const CommandInfo* chosen = Chosen();
    return chosen != nullptr ? chosen->name : Group();
  }

  std::string Group() const {
    for (const auto& [name, app] : groups_) {
      if (app->parsed()) return name;
    }
    return "";
  }

  absl::StatusOr<ParsedCommandLine> Help(const CommandInfo* chosen) {
    parsed_.help =
        chosen == nullptr
            ? OverviewPage(commands_, global_.flags, Group())
            : CommandPage(*chosen, bound_[chosen->name].flags, global_.flags);
    return std::move(parsed_);
  }

  std::vector<std::string> FlagNames(const CommandInfo* chosen) {
    std::vector<std::string> names = {"--help"};
    const auto add = [&names](const FlagSet& flags) {
      for (const FlagDeclaration& flag : flags.declarations()) {
        if (flag.kind != Kind::kArgument && !flag.hidden) {
          names.push_back(ShownName(flag));
        }
      }
    };
    add(global_.flags);
    if (chosen != nullptr) add(bound_[chosen->name].flags);
    return names;
  }

  absl::Status CheckExtras(const std::string& name, const CommandInfo* chosen) {
    const std::vector<std::string> extras = app_.remaining(true);
    if (extras.empty()) return absl::OkStatus();
    for (const std::string& extra : extras) {
      if (!absl::StartsWith(extra, "-") || extra == "-") continue;
      const std::string flag = extra.substr(0, extra.find('='));
      return UsageErrorWithHint(
          absl::StrCat("there is no flag ", flag,
                       NearestNamesHint(flag, FlagNames(chosen))),
          name);
    }
    if (chosen != nullptr) {
      return UsageErrorWithHint(
          absl::StrCat("argument '", extras[0], "' is one too many"), name);
    }
    std::vector<std::string> names;
    for (const CommandInfo& info : commands_) names.push_back(info.name);
    const std::string wanted =
        name.empty() ? extras[0] : absl::StrCat(name, " ", extras[0]);
    return UsageErrorWithHint(absl::StrCat("there is no command '", wanted, "'",
                                           NearestNamesHint(wanted, names)),
                              name);
  }

  absl::Span<const CommandInfo> commands_;
  CLI::App app_;
  ParsedCommandLine parsed_;
  std::string format_ = "table";
  bool version_ = false;
  bool groups_help_ = false;
  BoundFlags global_;
  std::map<std::string, CLI::App*> groups_;
  std::map<std::string, CLI::App*> apps_;
  std::map<std::string, BoundFlags> bound_;
  std::map<std::string, std::unique_ptr<Command>> instances_;
};

}  // namespace

absl::StatusOr<ParsedCommandLine> ParseCommandLine(
    const std::vector<std::string>& words,
    absl::Span<const CommandInfo> commands, const std::string& default_server) {
  return Parser(commands, default_server).Parse(words);
}

}  // namespace optfarm::client_cli
