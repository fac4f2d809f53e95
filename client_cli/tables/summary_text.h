// What inspect::SummarizeGraph found, in the words of TensorFlow's
// summarize_graph and as JSON.

#ifndef OPTFARM_CLIENT_CLI_TABLES_SUMMARY_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_SUMMARY_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/inspect/graph_summary.h"

namespace optfarm::client_cli {

// A command line that measures the graph in the file `path`: `benchmark`
// ("optctl graph benchmark") with flags.
std::string BenchmarkLine(const inspect::GraphSummary& summary,
                          const std::string& path, absl::string_view benchmark);

// The whole text, lines ended, with `benchmark_line` last. When there are
// invalid inputs it ends before the ops.
std::string SummaryText(const inspect::GraphSummary& summary,
                        absl::string_view benchmark_line);

// The same facts for programs: one JSON object, lines ended.
std::string SummaryJson(const inspect::GraphSummary& summary,
                        const std::string& benchmark_line);

// "Invalid input X for node Y".
std::string InvalidInputText(const inspect::InvalidInput& invalid);

// "999", "1.00k", "4.25M": TensorFlow's short form of a count.
std::string ShortCount(int64_t count);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_SUMMARY_TEXT_H_
