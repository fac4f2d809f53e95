// Devices that can be measured. The agent knows them only through this: the
// machine it runs on (local_driver.cc) or phones behind adb (adb_driver.cc).

#ifndef OPTFARM_DEVICE_AGENT_DEVICE_DRIVER_H_
#define OPTFARM_DEVICE_AGENT_DEVICE_DRIVER_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device_agent/device_engines.h"
#include "device_agent/flags.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"

namespace optfarm::device_agent {

// UNITS: fraction 0..1.
using MeasureProgress =
    std::function<void(double fraction, absl::string_view message)>;

// THREADS: Devices and ChildFlags may be called from any; Measure from one.
class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;

  // Every device as it is now, also those that cannot be reached. `busy` names
  // those that hold a task; they are left in peace. Never waits for a device.
  virtual std::vector<v1::DeviceStatus> Devices(
      const std::set<std::string>& busy) = 0;

  // `wake` is called, from any thread, when what Devices returns has changed;
  // null: nobody wants to know any more.
  virtual void SetWaker(std::function<void()> /*wake*/) {}

  // What the child process of a task on `device` must be told, besides what
  // every child is.
  virtual std::vector<std::string> ChildFlags(const std::string& device) = 0;

  // Measures the variants of a benchmark lease, whose graphs lie in `folder`
  // (see benchmark_plan.h), in Optfarm's runtime and in the engines that the
  // lease asks for. Called in the child process of one task, so that a
  // graph that crashes or hangs costs that task only.
  // ERRORS: those of loading and running a graph, naming the variant;
  // Unavailable when the device is the trouble.
  virtual absl::StatusOr<v1::Completion> Measure(
      const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
      const DeviceEngines& engines, const MeasureProgress& progress) = 0;
};

// The machine that this process runs on, which has these engines.
std::unique_ptr<DeviceDriver> MakeLocalDriver(
    const Flags& flags, const std::vector<v1::EngineInfo>& engines = {});

// Phones that adb knows. With flags.serial: that one, to measure on.
// ERRORS: NotFound when there is no adb.
absl::StatusOr<std::unique_ptr<DeviceDriver>> MakeAdbDriver(const Flags& flags);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_DEVICE_DRIVER_H_
