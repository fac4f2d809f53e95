// The optimize half of `optctl run`, in a process of its own: a model that
// crashes it or takes all memory costs that process and not ours, and the
// measuring that follows begins with clean memory.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_LOCAL_OPTIMIZE_H_
#define OPTFARM_CLIENT_CLI_LOCAL_LOCAL_OPTIMIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_cli/command/command.h"
#include "client_cli/jobs/job_request.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

// The child's part: does the work, shows progress, and leaves its outcome and,
// below "files", what it made in `folder`. With `verbose`, prints what each
// step took. ERRORS: only when the outcome cannot be written.
absl::Status OptimizeInto(const JobRequest& request, const std::string& folder,
                          bool verbose, const CommandContext& context);

// The parent's part: starts this program with `words` and waits.
// ERRORS: the work's own; Internal when the child crashed or was killed.
absl::StatusOr<v1::Report> OptimizeInChild(
    const std::vector<std::string>& words, const std::string& folder);

// Where in `folder` the files are.
std::string FilesFolder(const std::string& folder);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_LOCAL_OPTIMIZE_H_
