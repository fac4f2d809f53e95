#include "client_cli/local/step_times.h"

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace optfarm::client_cli {
namespace {

absl::Duration CpuTime() {
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return absl::ZeroDuration();
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

// UNITS: bytes; nullopt where the system does not tell.
std::optional<int64_t> PeakSinceReset() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view text = line;
    int64_t kilobytes = 0;
    if (absl::ConsumePrefix(&text, "VmHWM:") &&
        absl::SimpleAtoi(absl::StripSuffix(text, " kB"), &kilobytes)) {
      return kilobytes * 1024;
    }
  }
  return std::nullopt;
}

void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace

void StepTimes::Begin(absl::string_view step) {
  if (step == step_) return;
  End();
  step_ = std::string(step);
  start_ = absl::Now();
  cpu_at_start_ = CpuTime();
  ResetPeak();
}

void StepTimes::End() {
  if (step_.empty()) return;
  std::string line =
      absl::StrFormat("%-24s %8.2f s %8.2f s of processors", step_,
                      absl::ToDoubleSeconds(absl::Now() - start_),
                      absl::ToDoubleSeconds(CpuTime() - cpu_at_start_));
  if (const std::optional<int64_t> peak = PeakSinceReset()) {
    absl::StrAppendFormat(&line, ", peak %.0f MB",
                          static_cast<double>(*peak) / 1e6);
  }
  step_.clear();
  print_(line);
}

}  // namespace optfarm::client_cli
