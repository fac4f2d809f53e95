// JSON as optctl prints it.

#ifndef OPTFARM_CLIENT_CLI_TABLES_JSON_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_JSON_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "client_cli/tables/table.h"

namespace optfarm::client_cli {

// `json` over several lines, the last one ended; bytes that are not UTF-8
// become U+FFFD.
std::string JsonText(const nlohmann::ordered_json& json);

// For commands whose answer is no table. ERRORS: UsageError for CSV.
absl::Status CheckNotCsv(OutputFormat format);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_JSON_TEXT_H_
