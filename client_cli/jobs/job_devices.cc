#include "client_cli/jobs/job_devices.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client_cli/command/all_devices.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/tables/table.h"

namespace optfarm::client_cli {
namespace {

// --device=tag:lab-2: all that have it.
constexpr char kTagPrefix[] = "tag:";

bool HasEngines(const v1::DeviceInfo& device,
                absl::Span<const std::string> engines) {
  return absl::c_all_of(engines, [&](const std::string& wanted) {
    return absl::c_any_of(device.engines(), [&](const v1::EngineInfo& engine) {
      return engine.name() == wanted;
    });
  });
}

}  // namespace

bool IsKeptForOthers(const v1::Device& device,
                     absl::Span<const std::string> tags) {
  return device.state() == v1::Device::RESERVED &&
         !absl::c_linear_search(tags, device.reserved_for_tag());
}

absl::StatusOr<std::string> PickDevice(FarmClient& client,
                                       absl::Span<const std::string> tags,
                                       absl::Span<const std::string> engines) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices,
                           ListAllDevices(client));
  std::string busy;
  for (const v1::Device& device : devices) {
    if (!HasEngines(device.info(), engines)) continue;
    const bool is_free = device.state() == v1::Device::AVAILABLE ||
                         (device.state() == v1::Device::RESERVED &&
                          !IsKeptForOthers(device, tags));
    if (is_free) return device.info().name();
    if ((device.state() == v1::Device::BUSY ||
         device.state() == v1::Device::COOLING) &&
        busy.empty()) {
      busy = device.info().name();
    }
  }
  return busy;
}

absl::StatusOr<std::vector<std::string>> ExpandDeviceTags(
    FarmClient& client, absl::Span<const std::string> names) {
  std::vector<std::string> expanded;
  const auto add = [&expanded](const std::string& name) {
    if (!absl::c_linear_search(expanded, name)) expanded.push_back(name);
  };
  for (const std::string& name : names) {
    absl::string_view tag = name;
    if (!absl::ConsumePrefix(&tag, kTagPrefix)) {
      add(name);
      continue;
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices,
                             ListAllDevices(client));
    bool found = false;
    for (const v1::Device& device : devices) {
      if (device.state() == v1::Device::DISABLED ||
          !absl::c_linear_search(device.info().tags(), tag)) {
        continue;
      }
      found = true;
      add(device.info().name());
    }
    if (!found) {
      return FromServer(absl::NotFoundError(
          absl::StrCat("--device: no device in service has the tag '",
                       PrintableLine(tag), "' (optctl devices)")));
    }
  }
  return expanded;
}

}  // namespace optfarm::client_cli
