// What optctl's exit codes mean, and how a Status carries one. A server's "not
// found" and a missing local file have one absl code but not one exit code, so
// whoever knows where an error comes from says so.

#ifndef OPTFARM_CLIENT_CLI_FLAGS_EXIT_CODE_H_
#define OPTFARM_CLIENT_CLI_FLAGS_EXIT_CODE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace optfarm::client_cli {

enum class ExitCode {
  kOk = 0,
  // The job, or the same work done here, failed for a reason that has no code
  // of its own, or was cancelled.
  kJobFailed = 1,
  // The command line names something wrong: a flag, a value, a local file, a
  // recipe, a transform.
  kUsage = 2,
  // The server wants a token and got none, or refused it.
  kAuth = 3,
  // The server knows no such job, device, recipe or blob.
  kNotFound = 4,
  // The server cannot be reached or does not answer in time.
  kUnavailable = 5,
  // The job did its work, and the result missed a gate.
  kGateMissed = 6,
  // The job failed because what was sent cannot work: the model, its data.
  kBadModel = 7,
  // A limit of the server or of the project is reached.
  kQuota = 8,
  // --timeout passed before the job, which goes on, or the query ended. As
  // timeout(1).
  kTimeout = 124,
};

// `status` marked to end the program with `code`; OK stays OK. A mark that is
// there already stays.
absl::Status WithExitCode(const absl::Status& status, ExitCode code);

// A mistake on the command line.
absl::Status UsageError(absl::string_view message);

// `status`, an answer of the server, marked by what its code means there.
absl::Status FromServer(const absl::Status& status);

// The marked code; without a mark kUsage for what a user's file or value can
// cause (InvalidArgument, NotFound, FailedPrecondition, ...), else kJobFailed.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_FLAGS_EXIT_CODE_H_
