// JSON as YAML, for people who read what programs are given.

#ifndef OPTFARM_CLIENT_CLI_TABLES_YAML_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_YAML_TEXT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace optfarm::client_cli {

// The same values as YAML 1.2, in block style; several JSON texts, one after
// the other, become documents with "---" between them. Texts that YAML could
// read as something else are quoted. nullopt for what is not JSON, or nested
// more than 200 deep.
std::optional<std::string> JsonToYaml(absl::string_view json);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_YAML_TEXT_H_
