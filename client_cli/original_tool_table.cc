#include "client_cli/original_tool_table.h"

#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {

std::vector<OriginalTool> AllOriginalTools() {
  std::vector<OriginalTool> tools;
  tools.push_back(BenchmarkModelTool());
  tools.push_back(CompareGraphsTool());
  tools.push_back(ConvertGraphdefMemmappedFormatTool());
  tools.push_back(FreezeGraphTool());
  tools.push_back(GraphToDotTool());
  tools.push_back(ImportPbToTensorboardTool());
  tools.push_back(InspectCheckpointTool());
  tools.push_back(LabelImageTool());
  tools.push_back(OptimizeForInferenceTool());
  tools.push_back(PrintSelectiveRegistrationHeaderTool());
  tools.push_back(StripUnusedTool());
  tools.push_back(SummarizeGraphTool());
  tools.push_back(TransformGraphTool());
  return tools;
}

}  // namespace optfarm::client_cli
