#include "client_cli/command/all_devices.h"

#include <utility>

#include "base/status_macros.h"

namespace optfarm::client_cli {

absl::StatusOr<std::vector<v1::Device>> ListAllDevices(FarmClient& client) {
  std::vector<v1::Device> devices;
  v1::ListDevicesRequest request;
  do {
    OPTFARM_ASSIGN_OR_RETURN(v1::ListDevicesResponse response,
                             client.ListDevices(request));
    for (v1::Device& device : *response.mutable_devices()) {
      devices.push_back(std::move(device));
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return devices;
}

}  // namespace optfarm::client_cli
