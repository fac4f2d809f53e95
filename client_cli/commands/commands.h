// One function for each command of optctl; command_table.cc lists them all.

#ifndef OPTFARM_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define OPTFARM_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include "client_cli/command/command.h"
#include "client_cli/command/original_tool.h"

namespace optfarm::client_cli {

CommandInfo SubmitCommand();
CommandInfo RunCommand();
CommandInfo TuneCommand();
CommandInfo TunesCommand();
CommandInfo TunesShowCommand();
CommandInfo TunesCancelCommand();
CommandInfo GetCommand();
CommandInfo ListCommand();
CommandInfo WatchCommand();
CommandInfo LogsCommand();
CommandInfo CancelCommand();
CommandInfo DownloadCommand();
CommandInfo ReportCommand();
CommandInfo ResultsCommand();
CommandInfo ResultsHistoryCommand();
CommandInfo ResultsRegressionsCommand();
CommandInfo CompareCommand();
CommandInfo DevicesCommand();
CommandInfo DevicesShowCommand();
CommandInfo DevicesDisableCommand();
CommandInfo DevicesEnableCommand();
CommandInfo DevicesReserveCommand();
CommandInfo DevicesRetireCommand();
CommandInfo DevicesDeleteCommand();
CommandInfo ConfigSetContextCommand();
CommandInfo ConfigUseContextCommand();
CommandInfo ConfigGetContextsCommand();
CommandInfo ConfigDeleteContextCommand();
CommandInfo RecipesCommand();
CommandInfo TransformsCommand();
CommandInfo TokenCreateCommand();
CommandInfo TokenListCommand();
CommandInfo TokenRevokeCommand();
CommandInfo SqlCommand();
CommandInfo AuditCommand();
CommandInfo ProjectsCommand();
CommandInfo StoreCommand();
CommandInfo BlobsListCommand();
CommandInfo BlobsRmCommand();
CommandInfo WorkersCommand();
CommandInfo DoctorCommand();
CommandInfo BackupCommand();
CommandInfo MigrateCommand();
CommandInfo VersionCommand();
CommandInfo GraphTransformCommand();
CommandInfo GraphFreezeCommand();
CommandInfo GraphCheckpointCommand();
CommandInfo GraphMemmapCommand();
CommandInfo GraphEncryptCommand();
CommandInfo GraphDecryptCommand();
CommandInfo GraphSummarizeCommand();
CommandInfo GraphRunCommand();
CommandInfo GraphBenchmarkCommand();
CommandInfo GraphCompareCommand();
CommandInfo GraphConvertCommand();
CommandInfo GraphCompatCommand();
CommandInfo GraphDotCommand();
CommandInfo GraphLabelImageCommand();
CommandInfo GraphOptimizeForInferenceCommand();
CommandInfo GraphRequiredOpsCommand();
CommandInfo GraphStripUnusedCommand();
CommandInfo GraphTensorboardCommand();

// TensorFlow's tools that some of them stand in for; original_tool_table.cc
// lists them all.
OriginalTool BenchmarkModelTool();
OriginalTool CompareGraphsTool();
OriginalTool ConvertGraphdefMemmappedFormatTool();
OriginalTool FreezeGraphTool();
OriginalTool GraphToDotTool();
OriginalTool ImportPbToTensorboardTool();
OriginalTool InspectCheckpointTool();
OriginalTool LabelImageTool();
OriginalTool OptimizeForInferenceTool();
OriginalTool PrintSelectiveRegistrationHeaderTool();
OriginalTool StripUnusedTool();
OriginalTool SummarizeGraphTool();
OriginalTool TransformGraphTool();

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMANDS_COMMANDS_H_
