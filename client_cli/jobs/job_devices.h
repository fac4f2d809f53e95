// Which devices a job measures on, from what the user names.

#ifndef OPTFARM_CLIENT_CLI_JOBS_JOB_DEVICES_H_
#define OPTFARM_CLIENT_CLI_JOBS_JOB_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client_cli/command/farm_client.h"
#include "optfarm/v1/devices.pb.h"

namespace optfarm::client_cli {

// The device is reserved for jobs that have none of `tags`.
bool IsKeptForOthers(const v1::Device& device,
                     absl::Span<const std::string> tags);

// The device to measure on when the user names none: the first that is there,
// has all `engines` and is not kept for jobs with other tags, else the first
// that is busy; empty: none is. ERRORS: the server's.
absl::StatusOr<std::string> PickDevice(
    FarmClient& client, absl::Span<const std::string> tags,
    absl::Span<const std::string> engines = {});

// Every name as it is, and for "tag:TAG" the devices in service that have the
// tag; each once. ERRORS: NotFound for a tag that none has; the server's.
absl::StatusOr<std::vector<std::string>> ExpandDeviceTags(
    FarmClient& client, absl::Span<const std::string> names);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_JOB_DEVICES_H_
