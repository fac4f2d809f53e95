// The machine at one moment, read from the system's files.

#ifndef OPTFARM_ENGINE_BENCHMARK_ENVIRONMENT_H_
#define OPTFARM_ENGINE_BENCHMARK_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// Reads everything afresh. `root` is "" for this machine, or a folder that
// holds copies of /proc, /sys and /etc. What cannot be read is left empty.
v1::Environment ReadEnvironment(absl::string_view build_version,
                                const std::string& root = "");

// Model name of /proc/cpuinfo: x86's "model name", else the board's "Model" or
// "Hardware", else "".
std::string CpuModelOf(absl::string_view cpuinfo);

// The instruction set extensions of /proc/cpuinfo that matter to kernels, in
// the order of our list.
std::vector<std::string> CpuFeaturesOf(absl::string_view cpuinfo);

// UNITS: bytes. A field of /proc/meminfo or /proc/self/status ("VmHWM").
std::optional<int64_t> KilobytesField(absl::string_view text,
                                      absl::string_view field);

// Logical processors that this process may use; at least 1.
int UsableCores();

// Highest resident set of this process since its start or the last reset.
// UNITS: bytes; 0 when it cannot be read.
int64_t PeakResidentBytes();

// What is resident of this process now. UNITS: bytes; 0 when it cannot be read.
int64_t ResidentBytes();

// Lets PeakResidentBytes start from what is resident now. False when the
// kernel does not let us.
bool ResetPeakResident();

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_ENVIRONMENT_H_
