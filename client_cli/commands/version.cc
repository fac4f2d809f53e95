// optctl version: what this program is. Works without a server.

#include <sys/utsname.h>

#include "client_cli/commands/commands.h"
#include "client_cli/tables/micro_kernel_table.h"

namespace optfarm::client_cli {
namespace {

class Version final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Switch("kernels",
                  "Print the micro-kernels of the runtime, and which of them "
                  "this processor uses (within OPTFARM_CPU).",
                  &kernels_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (kernels_) {
      *context.out << MakeMicroKernelTable().ToFormat(context.format);
      return ExitCode::kOk;
    }
    utsname machine = {};
    uname(&machine);
    Table table({{"name", "NAME"},
                 {"version", "VERSION"},
                 {"compiler", "COMPILER"},
                 {"machine", "MACHINE"}});
    table.AddRow({Cell::Text("optctl"), Cell::Text(OPTFARM_VERSION),
                  Cell::Text(__VERSION__), Cell::Text(machine.machine)});
    if (context.format == OutputFormat::kTable) {
      *context.out << "optctl " << OPTFARM_VERSION << " (" << __VERSION__
                   << ", " << machine.machine << ")\n";
    } else {
      *context.out << table.ToFormat(context.format);
    }
    return ExitCode::kOk;
  }

 private:
  bool kernels_ = false;
};

}  // namespace

CommandInfo VersionCommand() {
  return {"version", "Print the version of this program.", "",
          [] { return std::unique_ptr<Command>(new Version); }};
}

}  // namespace optfarm::client_cli
