// Manual pages (man 1) from the commands' own help.

#ifndef OPTFARM_CLIENT_CLI_MANUAL_PAGES_H_
#define OPTFARM_CLIENT_CLI_MANUAL_PAGES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client_cli/command/command.h"

namespace optfarm::client_cli {

struct ManualPage {
  // "optctl-graph-run.1".
  std::string file;
  // In troff's man macros.
  std::string text;
};

// optctl.1, and a page for each command.
std::vector<ManualPage> ManualPages(absl::Span<const CommandInfo> commands,
                                    const FlagSet& global,
                                    absl::string_view version);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_MANUAL_PAGES_H_
