#include "client_cli/command_table.h"

#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {

namespace {

void Add(const char* group, std::vector<CommandInfo> commands,
         std::vector<CommandInfo>* all) {
  for (CommandInfo& command : commands) {
    command.group = group;
    all->push_back(command);
  }
}

}  // namespace

std::vector<CommandInfo> AllCommands() {
  std::vector<CommandInfo> all;
  Add("Jobs",
      {SubmitCommand(), RunCommand(), TuneCommand(), TunesCommand(),
       TunesShowCommand(), TunesCancelCommand(), GetCommand(), ListCommand(),
       WatchCommand(), LogsCommand(), CancelCommand(), DownloadCommand(),
       ReportCommand()},
      &all);
  Add("Results",
      {ResultsCommand(), ResultsHistoryCommand(), ResultsRegressionsCommand(),
       CompareCommand(), SqlCommand()},
      &all);
  Add("The farm",
      {DevicesCommand(), DevicesShowCommand(), DevicesDisableCommand(),
       DevicesEnableCommand(), DevicesReserveCommand(), DevicesRetireCommand(),
       DevicesDeleteCommand(), WorkersCommand(), ProjectsCommand(),
       StoreCommand(), BlobsListCommand(), BlobsRmCommand(),
       TokenCreateCommand(), TokenListCommand(), TokenRevokeCommand(),
       AuditCommand(), BackupCommand(), MigrateCommand(), DoctorCommand()},
      &all);
  Add("Which farm",
      {ConfigSetContextCommand(), ConfigUseContextCommand(),
       ConfigGetContextsCommand(), ConfigDeleteContextCommand()},
      &all);
  Add("What there is to choose from", {RecipesCommand(), TransformsCommand()},
      &all);
  Add("Model files, without a server",
      {GraphTransformCommand(), GraphSummarizeCommand(), GraphConvertCommand(),
       GraphCompareCommand(), GraphStripUnusedCommand(),
       GraphOptimizeForInferenceCommand(), GraphCompatCommand(),
       GraphRequiredOpsCommand(), GraphDotCommand(), GraphFreezeCommand(),
       GraphCheckpointCommand(), GraphMemmapCommand(), GraphEncryptCommand(),
       GraphDecryptCommand(), GraphTensorboardCommand(), GraphRunCommand(),
       GraphLabelImageCommand(), GraphBenchmarkCommand()},
      &all);
  Add("optctl itself", {VersionCommand()}, &all);
  return all;
}

}  // namespace optfarm::client_cli
