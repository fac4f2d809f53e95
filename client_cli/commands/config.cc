// optctl config ...: named servers.

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/contexts.h"
#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {
namespace {

struct OpenedContexts {
  std::string path;
  Contexts contexts;
};

absl::StatusOr<OpenedContexts> OpenContexts() {
  OpenedContexts opened;
  OPTFARM_ASSIGN_OR_RETURN(opened.path, ContextsPath(ProcessEnvironment));
  OPTFARM_ASSIGN_OR_RETURN(opened.contexts, LoadContexts(opened.path));
  return opened;
}

absl::Status CheckIsThere(const std::string& name, const Contexts& contexts) {
  if (contexts.by_name.contains(name)) return absl::OkStatus();
  return UsageError(absl::StrCat("there is no context '", PrintableLine(name),
                                 "' (optctl config get-contexts)"));
}

// A file of a context is found from any folder.
std::string Absolute(const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

class SetContext final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("NAME", "The context's name.", &name_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(OpenedContexts opened, OpenContexts());
    const bool is_new = !opened.contexts.by_name.contains(name_);
    FarmAddress& address = opened.contexts.by_name[name_];
    const GlobalFlags& given = *context.global;
    if (!given.server.empty()) address.server = given.server;
    if (address.server.empty()) {
      return UsageError("--server is missing: where is this context's server?");
    }
    const auto set = [](const std::string& from, std::string* to) {
      if (!from.empty()) *to = Absolute(from);
    };
    set(given.token_file, &address.token_file);
    set(given.tls_ca, &address.tls_ca);
    set(given.tls_cert, &address.tls_cert);
    set(given.tls_key, &address.tls_key);
    // A mistake is told now, not when the context is first used.
    OPTFARM_RETURN_IF_ERROR(MakeFarmClient(address).status());
    if (opened.contexts.current.empty()) opened.contexts.current = name_;
    OPTFARM_RETURN_IF_ERROR(SaveContexts(opened.contexts, opened.path));
    *context.out << "Context " << PrintableLine(name_) << " is "
                 << (is_new ? "set" : "changed")
                 << (opened.contexts.current == name_
                         ? " and used.\n"
                         : absl::StrCat("; optctl config use-context ", name_,
                                        " switches to it.\n"));
    return ExitCode::kOk;
  }

 private:
  std::string name_;
};

class UseContext final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("NAME", "The context's name.", &name_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(OpenedContexts opened, OpenContexts());
    OPTFARM_RETURN_IF_ERROR(CheckIsThere(name_, opened.contexts));
    opened.contexts.current = name_;
    OPTFARM_RETURN_IF_ERROR(SaveContexts(opened.contexts, opened.path));
    *context.out << "Using context " << PrintableLine(name_) << ": "
                 << opened.contexts.by_name[name_].server << "\n";
    return ExitCode::kOk;
  }

 private:
  std::string name_;
};

class DeleteContext final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("NAME", "The context's name.", &name_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(OpenedContexts opened, OpenContexts());
    OPTFARM_RETURN_IF_ERROR(CheckIsThere(name_, opened.contexts));
    opened.contexts.by_name.erase(name_);
    if (opened.contexts.current == name_) opened.contexts.current.clear();
    OPTFARM_RETURN_IF_ERROR(SaveContexts(opened.contexts, opened.path));
    *context.out << "Context " << PrintableLine(name_) << " is gone.\n";
    return ExitCode::kOk;
  }

 private:
  std::string name_;
};

class GetContexts final : public Command {
 public:
  void DeclareFlags(FlagSet*) override {}

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(const OpenedContexts opened, OpenContexts());
    if (opened.contexts.by_name.empty() &&
        context.format == OutputFormat::kTable) {
      *context.out << "No contexts. Make one with: optctl config set-context "
                      "NAME --server=HOST:PORT\n";
      return ExitCode::kOk;
    }
    Table table({{"current", "CURRENT"},
                 {"name", "NAME"},
                 {"server", "SERVER"},
                 {"token_file", "TOKEN FILE"},
                 {"tls_ca", "CA"}});
    for (const auto& [name, address] : opened.contexts.by_name) {
      const bool current = name == opened.contexts.current;
      table.AddRow({Cell(current, current ? "*" : ""), Cell::Text(name),
                    Cell::Text(address.server), Cell::Text(address.token_file),
                    Cell::Text(address.tls_ca)});
    }
    *context.out << table.ToFormat(context.format);
    return ExitCode::kOk;
  }
};

}  // namespace

CommandInfo ConfigSetContextCommand() {
  return {"config set-context", "Name a server, with the files to bring along.",
          "The flags below are kept under the name; those that are not given "
          "stay as they are. Token and keys are kept as paths, never as "
          "values. The first context is used at once.\n"
          "  optctl config set-context lab --server=farm.lab:7070 \\\n"
          "      --token_file=~/lab.token --tls_ca=lab-ca.pem",
          [] { return std::unique_ptr<Command>(new SetContext); }};
}

CommandInfo ConfigUseContextCommand() {
  return {"config use-context", "Use a named server from now on.",
          "--context=NAME and OPTFARM_CONTEXT choose another for one call. "
          "With --server, or OPTFARM_SERVER without --context, no context is "
          "used.",
          [] { return std::unique_ptr<Command>(new UseContext); }};
}

CommandInfo ConfigGetContextsCommand() {
  return {"config get-contexts", "List the named servers.", "",
          [] { return std::unique_ptr<Command>(new GetContexts); }};
}

CommandInfo ConfigDeleteContextCommand() {
  return {"config delete-context", "Forget a named server.", "",
          [] { return std::unique_ptr<Command>(new DeleteContext); }};
}

}  // namespace optfarm::client_cli
