// A device that can be measured. The agent knows devices only through this:
// this machine today, a phone behind adb another day.

#ifndef OPTFARM_DEVICE_AGENT_DEVICE_DRIVER_H_
#define OPTFARM_DEVICE_AGENT_DEVICE_DRIVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::device_agent {

// UNITS: fraction 0..1.
using MeasureProgress =
    std::function<void(double fraction, absl::string_view message)>;

// THREADS: one thread at a time.
class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;

  // What the device is. The name is the one the driver was made with.
  virtual v1::DeviceInfo Describe() = 0;

  // OK when a benchmark may begin now; otherwise the message says why not
  // ("cooling down, 71 degrees").
  virtual absl::Status CheckReady() = 0;

  // Measures the variants of `task`, whose graphs lie at `graph_paths`, in
  // their order. Called in the child process of one task, so that a graph that
  // crashes or hangs costs that task only.
  // ERRORS: those of loading and running a graph, naming the variant.
  virtual absl::StatusOr<v1::BenchmarkResult> Measure(
      const v1::BenchmarkTask& task,
      const std::vector<std::string>& graph_paths,
      const MeasureProgress& progress) = 0;
};

struct LocalDriverOptions {
  // Name of the device.
  std::string name;
  // UNITS: threads. What is measured when the task does not say; empty: the
  // engine's default, 1 and 4 or all.
  std::vector<int> threads;
  // UNITS: degrees Celsius. No benchmark begins above; 0: no such limit.
  double max_celsius = 0;
};

// The machine that this process runs on.
std::unique_ptr<DeviceDriver> MakeLocalDriver(LocalDriverOptions options);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_DEVICE_DRIVER_H_
