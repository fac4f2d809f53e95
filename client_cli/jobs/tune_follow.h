// Following a tune to its end, and what it found.

#ifndef OPTFARM_CLIENT_CLI_JOBS_TUNE_FOLLOW_H_
#define OPTFARM_CLIENT_CLI_JOBS_TUNE_FOLLOW_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client_cli/command/command.h"
#include "client_cli/command/farm_client.h"
#include "optfarm/v1/tunes.pb.h"

namespace optfarm::client_cli {

struct FollowTuneOptions {
  // Longest time without an answer of the server before we give up.
  absl::Duration patience = absl::Minutes(10);
  // What the tune does, each time that it is looked at; may be null.
  std::function<void(const v1::Tune&)> on_look;
  // OWNERSHIP: must outlive the call.
  Clock* clock = RealClock();
};

// Returns the tune when it has ended, in any way.
// ERRORS: marked kUnavailable when the server was away for options.patience;
// the server's otherwise (NotFound).
absl::StatusOr<v1::Tune> FollowTune(FarmClient& client,
                                    const std::string& tune_id,
                                    const FollowTuneOptions& options);

// Writes into `folder`, which is there: the report as tune.json, a picture for
// each device, and each recommended variant with the recipe that makes it
// again. Returns the paths.
// ERRORS: those of the file system; NotFound when the server has let go of a
// variant's job or file.
absl::StatusOr<std::vector<std::string>> WriteTuneFiles(
    FarmClient& client, const v1::TuneReport& report,
    const std::string& folder);

// Prints what an ended tune found, with `folder` not empty after writing its
// files there. Returns kGateMissed when nothing keeps the bound on some device.
// ERRORS: marked kJobFailed for a tune that failed or was cancelled; those of
// WriteTuneFiles.
absl::StatusOr<ExitCode> PrintTune(FarmClient& client, const v1::Tune& tune,
                                   const std::string& folder, bool verbose,
                                   const CommandContext& context);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_TUNE_FOLLOW_H_
