// Every device of a farm, page after page.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_ALL_DEVICES_H_
#define OPTFARM_CLIENT_CLI_COMMAND_ALL_DEVICES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client_cli/command/farm_client.h"
#include "optfarm/v1/devices.pb.h"

namespace optfarm::client_cli {

// ERRORS: what the server answered.
absl::StatusOr<std::vector<v1::Device>> ListAllDevices(FarmClient& client);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_ALL_DEVICES_H_
