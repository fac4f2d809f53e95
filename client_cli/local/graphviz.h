// Pictures through graphviz's program `dot`, where it is installed.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_GRAPHVIZ_H_
#define OPTFARM_CLIENT_CLI_LOCAL_GRAPHVIZ_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optfarm::client_cli {

// Draws `dot` into the SVG file `path`. The program is looked for in PATH and
// run without a shell; it is ended when `limit` is over.
// ERRORS: FailedPrecondition when graphviz is not installed, saying how to get
// it; DeadlineExceeded after `limit`; Internal with the program's own words
// when it fails. `path` is then as it was.
absl::Status DrawSvg(absl::string_view dot, const std::string& path,
                     absl::Duration limit);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_GRAPHVIZ_H_
