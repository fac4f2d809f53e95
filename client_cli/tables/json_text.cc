#include "client_cli/tables/json_text.h"

#include <nlohmann/json.hpp>

#include "client_cli/flags/exit_code.h"

namespace optfarm::client_cli {

std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

absl::Status CheckNotCsv(OutputFormat format) {
  if (format != OutputFormat::kCsv) return absl::OkStatus();
  return UsageError("--format: this command has no CSV; table or json");
}

}  // namespace optfarm::client_cli
