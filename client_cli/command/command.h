// What a command of optctl is: a line in the command table, flags, and a Run.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_COMMAND_H_
#define OPTFARM_CLIENT_CLI_COMMAND_COMMAND_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/flags/flags.h"
#include "client_cli/tables/table.h"

namespace optfarm::client_cli {

class FarmClient;
struct GlobalFlags;

// What every command is given. OWNERSHIP: outlives the command.
struct CommandContext {
  // Results go to `out`, everything else (progress, remarks) to `err`.
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  // A person is watching `err`: progress lines may be drawn and redrawn.
  bool err_is_terminal = false;
  // Colours may be used on `out` (a terminal, and NO_COLOR is not set).
  bool color = false;
  OutputFormat format = OutputFormat::kTable;
  // UNITS: characters of a line of `out`; 0 where it is no terminal.
  int width = 0;
  Clock* clock = nullptr;
  // The command line as typed, without the program's name.
  std::vector<std::string> words;
  // The flags that every command has.
  const GlobalFlags* global = nullptr;
  // Makes a client of the server named on the command line.
  // ERRORS: an unreadable token file, a malformed address.
  std::function<absl::StatusOr<std::unique_ptr<FarmClient>>()> connect;
};

class Command {
 public:
  virtual ~Command() = default;
  // Declares the flags; called once, before Run.
  virtual void DeclareFlags(FlagSet* flags) = 0;
  // Does the work. An error has not been printed yet; kJobFailed as a value
  // means that what went wrong is already on `out`.
  virtual absl::StatusOr<ExitCode> Run(const CommandContext& context) = 0;
};

// One line of the command table.
struct CommandInfo {
  // "submit", or two words: "graph transform".
  const char* name;
  // One line for the list of commands.
  const char* summary;
  // What the help page says below the usage line; "" for nothing. Lines that
  // begin with a blank are examples and kept as they are.
  const char* details;
  std::unique_ptr<Command> (*create)();
  // What the list of commands has it under: "Jobs".
  const char* group = "";
};

// The flags that every command has.
struct GlobalFlags {
  // Empty: what the environment or the context says.
  std::string server;
  std::string context;
  std::string token_file;
  std::string tls_ca, tls_cert, tls_key;
  OutputFormat format = OutputFormat::kTable;
  // JSON is to be printed as YAML.
  bool yaml = false;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_COMMAND_H_
