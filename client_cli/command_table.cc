#include "client_cli/command_table.h"

#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {

std::vector<CommandInfo> AllCommands() {
  return {
      SubmitCommand(),
      RunCommand(),
      GetCommand(),
      ListCommand(),
      WatchCommand(),
      LogsCommand(),
      CancelCommand(),
      DownloadCommand(),
      ResultsCommand(),
      ResultsHistoryCommand(),
      ResultsRegressionsCommand(),
      CompareCommand(),
      SqlCommand(),
      BackupCommand(),
      DevicesCommand(),
      DevicesDisableCommand(),
      DevicesEnableCommand(),
      DevicesReserveCommand(),
      DevicesRetireCommand(),
      RecipesCommand(),
      TransformsCommand(),
      TokenCreateCommand(),
      TokenListCommand(),
      TokenRevokeCommand(),
      AuditCommand(),
      DoctorCommand(),
      GraphTransformCommand(),
      GraphSummarizeCommand(),
      GraphConvertCommand(),
      GraphCompareCommand(),
      GraphStripUnusedCommand(),
      GraphOptimizeForInferenceCommand(),
      GraphCompatCommand(),
      GraphRequiredOpsCommand(),
      GraphDotCommand(),
      GraphFreezeCommand(),
      GraphCheckpointCommand(),
      GraphMemmapCommand(),
      GraphEncryptCommand(),
      GraphDecryptCommand(),
      GraphTensorboardCommand(),
      GraphRunCommand(),
      GraphLabelImageCommand(),
      GraphBenchmarkCommand(),
      VersionCommand(),
  };
}

}  // namespace optfarm::client_cli
