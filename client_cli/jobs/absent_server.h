// Calls of a command that rides through a restart of the server.

#ifndef OPTFARM_CLIENT_CLI_JOBS_ABSENT_SERVER_H_
#define OPTFARM_CLIENT_CLI_JOBS_ABSENT_SERVER_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client_cli/command/command.h"

namespace optfarm::client_cli {

// Makes `call` again while the server cannot be reached, for at most
// `retry_for` from the first failure on, and says so once. The call must be one
// that may be made twice. ERRORS: those of the last call.
absl::Status CallThroughAbsence(const CommandContext& context,
                                absl::Duration retry_for,
                                absl::FunctionRef<absl::Status()> call);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_ABSENT_SERVER_H_
