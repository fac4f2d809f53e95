#include "client_cli/command_line.h"

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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
  // "--no-headers" is what some type, "--no_headers" what help shows.
  const std::string dashed = absl::StrReplaceAll(flag.name, {{"_", "-"}});
  return absl::StrCat(
      flag.letter.empty() ? "" : absl::StrCat("-", flag.letter, ","), "--",
      flag.name, dashed == flag.name ? "" : absl::StrCat(",--", dashed));
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
    // That many at least, and any number.
    if (declarations[i].several) option->expected(-1);
  }
}

absl::Status StoreOne(const FlagDeclaration& flag, const CLI::results_t& found,
                      StandardStreams* streams) {
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
    absl::StatusOr<std::string> stored = value;
    if (value == "-" && (flag.reads || flag.writes) && streams != nullptr) {
      stored = flag.reads ? streams->ReadInput() : streams->MakeOutput();
    }
    if (!stored.ok()) return Annotate(stored.status(), name);
    if (absl::Status status = flag.store(*stored); !status.ok()) {
      return Annotate(status, name);
    }
  }
  return absl::OkStatus();
}

absl::Status StoreAll(const BoundFlags& bound, absl::string_view command,
                      StandardStreams* streams) {
  for (size_t i = 0; i < bound.found.size(); ++i) {
    absl::Status status =
        StoreOne(bound.flags.declarations()[i], bound.found[i], streams);
    if (!status.ok()) return UsageErrorWithHint(status.message(), command);
  }
  return absl::OkStatus();
}

struct OutputFlags {
  std::string format = "table";
  bool no_headers = false;
  bool version = false;
};

void DeclareGlobalFlags(GlobalFlags* global, OutputFlags* output,
                        FlagSet* flags) {
  flags->Text("server", "HOST:PORT",
              "Address of the server; of several HOST:PORT,HOST:PORT. Default: "
              "OPTFARM_SERVER, else the context's, else 127.0.0.1:7070.",
              &global->server);
  flags->Text("context", "NAME",
              "The named server to use (optctl config get-contexts). Default: "
              "OPTFARM_CONTEXT, else the one that config use-context chose.",
              &global->context);
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
                "Output format: for people (wide: with all columns), or for "
                "programs with stable field names. Default: table.",
                {"table", "wide", "json", "yaml", "csv"}, &output->format);
  flags->Letter("o");
  flags->Switch("no_headers", "Leave headings out of tables and CSV.",
                &output->no_headers);
  flags->Switch("version", "Print the version and exit.", &output->version);
}

// All that lives as long as one parse.
class Parser {
 public:
  Parser(absl::Span<const CommandInfo> commands, StandardStreams* streams)
      : commands_(commands), streams_(streams), app_("", "optctl") {
    DeclareGlobalFlags(&parsed_.global, &output_, &global_.flags);
    app_.fallthrough();
    app_.allow_extras();
    app_.require_subcommand(0, 1);
    Bind(&app_, &global_);
  }

  absl::StatusOr<ParsedCommandLine> Parse(std::vector<std::string> words) && {
    for (const CommandInfo& info : commands_) AddNamed(info, words);
    // "optctl help graph run" is "optctl graph run --help".
    if (!words.empty() && words[0] == "help") {
      words.erase(words.begin());
      words.push_back("--help");
    }
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
    // A command that is not there has no help.
    if (help && chosen == nullptr) {
      OPTFARM_RETURN_IF_ERROR(CheckExtras(name, chosen));
    }
    if (help) return Help(chosen);
    OPTFARM_RETURN_IF_ERROR(CheckExtras(name, chosen));
    OPTFARM_RETURN_IF_ERROR(StoreAll(global_, name, nullptr));
    if (output_.version && chosen == nullptr) {
      chosen = Find("version");
      if (!apps_.contains(chosen->name)) AddCommand(*chosen, {chosen->name});
    } else if (chosen == nullptr) {
      return UsageErrorWithHint(
          absl::StrCat("which command? ", name.empty() ? "optctl" : name,
                       " needs one"),
          name);
    }
    OPTFARM_RETURN_IF_ERROR(StoreAll(bound_[chosen->name], name, streams_));
    SetFormat();
    parsed_.command = std::move(instances_[chosen->name]);
    return std::move(parsed_);
  }

 private:
  void SetFormat() {
    const std::string& name = output_.format;
    GlobalFlags& global = parsed_.global;
    global.yaml = name == "yaml";
    global.format = name == "json" || global.yaml ? OutputFormat::kJson
                    : name == "csv"               ? OutputFormat::kCsv
                                                  : OutputFormat::kTable;
    global.format.wide = name == "wide";
    global.format.headers = !output_.no_headers;
  }

  // Adds a command that `typed` may name. Declaring the flags of all commands
  // takes longer than most of them run.
  void AddNamed(const CommandInfo& info,
                const std::vector<std::string>& typed) {
    const std::vector<std::string> words = absl::StrSplit(info.name, ' ');
    const auto is_typed = [&typed](const std::string& word) {
      return absl::c_linear_search(typed, word);
    };
    if (absl::c_all_of(words, is_typed)) {
      AddCommand(info, words);
    } else if (words.size() > 1 && is_typed(words[0])) {
      ParentOf(words);
    }
  }

  // What the last of a command's words is looked for in.
  CLI::App* ParentOf(const std::vector<std::string>& words) {
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
    return parent;
  }

  void AddCommand(const CommandInfo& info,
                  const std::vector<std::string>& words) {
    CLI::App* sub = ParentOf(words)->add_subcommand(words.back());
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
      const auto app = apps_.find(info.name);
      if (app == apps_.end() || !app->second->parsed()) continue;
      if (app->second->get_subcommands().empty()) return &info;
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
  StandardStreams* const streams_;
  CLI::App app_;
  ParsedCommandLine parsed_;
  OutputFlags output_;
  bool groups_help_ = false;
  BoundFlags global_;
  std::map<std::string, CLI::App*> groups_;
  std::map<std::string, CLI::App*> apps_;
  std::map<std::string, BoundFlags> bound_;
  std::map<std::string, std::unique_ptr<Command>> instances_;
};

}  // namespace

FlagSet GlobalFlagSet() {
  static GlobalFlags* const global = new GlobalFlags;
  static OutputFlags* const output = new OutputFlags;
  FlagSet flags;
  DeclareGlobalFlags(global, output, &flags);
  return flags;
}

absl::StatusOr<ParsedCommandLine> ParseCommandLine(
    const std::vector<std::string>& words,
    absl::Span<const CommandInfo> commands, StandardStreams* streams) {
  return Parser(commands, streams).Parse(words);
}

}  // namespace optfarm::client_cli
