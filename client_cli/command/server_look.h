// What one server says of itself, whichever of several it is.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_SERVER_LOOK_H_
#define OPTFARM_CLIENT_CLI_COMMAND_SERVER_LOOK_H_

#include "absl/status/statusor.h"
#include "client_cli/command/farm_client.h"
#include "optfarm/v1/servers.pb.h"

namespace optfarm::client_cli {

// Asks the server of `address`, which is one alone, once.
// ERRORS: as FarmClient's; Unimplemented of a server that is older than this.
absl::StatusOr<v1::ServerState> LookAtServer(const FarmAddress& address);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_SERVER_LOOK_H_
