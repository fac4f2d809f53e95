// Ways to name a job without its whole id.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_JOB_IDS_H_
#define OPTFARM_CLIENT_CLI_COMMAND_JOB_IDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "client_cli/command/farm_client.h"

namespace optfarm::client_cli {

// The id of the job that `text` means: "latest", the newest that the caller may
// see; a whole id; or the beginning of one id alone. What no job begins with is
// returned as it is, so that the server can say so.
// ERRORS: UsageError with the ids that begin so; NotFound for "latest" where
// there are no jobs; the server's.
absl::StatusOr<std::string> FindJobId(FarmClient& client,
                                      const std::string& text);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_JOB_IDS_H_
