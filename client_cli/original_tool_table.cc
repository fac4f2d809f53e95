#include "client_cli/original_tool_table.h"

#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {

std::vector<OriginalTool> AllOriginalTools() {
  return {
      TransformGraphTool(),
      SummarizeGraphTool(),
      BenchmarkModelTool(),
  };
}

}  // namespace optfarm::client_cli
