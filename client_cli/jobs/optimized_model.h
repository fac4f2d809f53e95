// The result of a job as a file of the format that the user wants.

#ifndef OPTFARM_CLIENT_CLI_JOBS_OPTIMIZED_MODEL_H_
#define OPTFARM_CLIENT_CLI_JOBS_OPTIMIZED_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_cli/command/command.h"
#include "client_cli/command/farm_client.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

// The file of this format that the job made; null for none.
// OWNERSHIP: in `job`.
const v1::Artifact* FindOptimized(const v1::Job& job, v1::ModelFormat format);

// OK unless the job found that the format cannot hold its result; then all
// reasons, marked kGateMissed.
absl::Status CheckFormatFits(const v1::Report& report, v1::ModelFormat format);

// Writes the result of a job whose files are in `folder` to `to`: the file of
// `format` that the job made, or one that is made from its graph here. PB is
// written as text to a file whose name ends in .pbtxt. Returns one line about
// it, "" for a copied graph.
// ERRORS: CheckFormatFits'; those of exporting::ExportOptimized and of files.
absl::StatusOr<std::string> WriteOptimized(const std::string& folder,
                                           const v1::Report& report,
                                           v1::ModelFormat format,
                                           const std::string& to);

// Downloads the result of a job that has ended to `to`: the file that the job
// made, or, made from its graph here, one of `format`. Returns one line about
// it, "" for a graph.
// ERRORS: marked kNotFound where the job has no result; CheckFormatFits'; the
// server's; those of WriteOptimized.
absl::StatusOr<std::string> FetchOptimized(FarmClient* client,
                                           const v1::Job& job,
                                           v1::ModelFormat format,
                                           const std::string& to,
                                           const CommandContext& context);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_OPTIMIZED_MODEL_H_
