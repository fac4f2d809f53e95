// optctl backup: has the server copy its database while it goes on working.

#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {
namespace {

class Backup final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Text("name", "NAME", "Name of the backup. Default: the time.",
                &name_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    v1::BackupRequest request;
    request.set_name(name_);
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::BackupResponse response,
                             client->Backup(request));
    Table table({{"path", "ON THE SERVER"},
                 {"size_bytes", "SIZE", Table::Align::kRight},
                 {"sha256", "SHA-256"},
                 {"seconds", "TOOK", Table::Align::kRight}});
    table.AddRow(
        {Cell::Text(response.path()),
         Cell(response.size_bytes(), HumanBytes(response.size_bytes())),
         Cell::Text(response.sha256()),
         Cell(response.seconds(),
              HumanDuration(absl::Seconds(response.seconds())))});
    *context.out << table.ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  std::string name_;
};

}  // namespace

CommandInfo BackupCommand() {
  return {"backup", "Back up the server's databases while the server runs.",
          "Writes NAME.db to backups/ in the server's data folder, beside it "
          "the databases of tokens, webhooks, the audit log and tunes, and "
          "NAME.manifest with their digests and the list of all files. The "
          "server checks every copy. The files themselves are in blobs/. "
          "optfarm-server --restore brings a backup back.",
          [] { return std::unique_ptr<Command>(new Backup); }};
}

}  // namespace optfarm::client_cli
