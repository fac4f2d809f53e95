#include "engine/benchmark/noise.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"

namespace optfarm::benchmark {
namespace {

constexpr double kMaxSpread = 0.05;
constexpr double kMaxTail = 1.5;
constexpr double kMaxFrequencyDrop = 0.10;
// UNITS: thousandths of a degree Celsius.
constexpr int64_t kHot = 75'000;
constexpr int64_t kMaxRise = 10'000;

double MeanFrequency(const v1::Environment& environment) {
  if (environment.cpu_freq_khz().empty()) return 0;
  return std::accumulate(environment.cpu_freq_khz().begin(),
                         environment.cpu_freq_khz().end(), 0.0) /
         environment.cpu_freq_khz_size();
}

}  // namespace

std::vector<std::string> NoiseReasons(const Summary& times, int threads,
                                      const v1::Environment& before,
                                      const v1::Environment& after) {
  std::vector<std::string> reasons;
  if (times.median > 0 && times.mad > kMaxSpread * times.median) {
    reasons.push_back(
        absl::StrFormat("The spread is %.1f %% of the median; 5 %% is usual.",
                        100 * times.mad / times.median));
  }
  if (times.median > 0 && times.p90 > kMaxTail * times.median) {
    reasons.push_back(
        absl::StrFormat("A tenth of the runs took %.1f times the median.",
                        times.p90 / times.median));
  }
  const double frequency_before = MeanFrequency(before);
  const double frequency_after = MeanFrequency(after);
  if (frequency_after > 0 &&
      frequency_after < (1 - kMaxFrequencyDrop) * frequency_before) {
    reasons.push_back(
        absl::StrFormat("The frequency fell from %.0f to %.0f MHz.",
                        frequency_before / 1000, frequency_after / 1000));
  }
  if (before.has_temperature_mc() && after.has_temperature_mc() &&
      after.temperature_mc() > kHot &&
      after.temperature_mc() >= before.temperature_mc() + kMaxRise) {
    reasons.push_back(absl::StrFormat(
        "The temperature rose from %.0f to %.0f degrees.",
        before.temperature_mc() / 1000.0, after.temperature_mc() / 1000.0));
  }
  const double free_cores = before.cores() - threads;
  if (before.cores() > 0 && before.load_average() > free_cores + 0.5) {
    reasons.push_back(absl::StrFormat(
        "Other processes wanted %.1f of %d cores in the minute before.",
        before.load_average(), before.cores()));
  }
  if (before.throttled() || after.throttled()) {
    reasons.push_back("The platform says that it throttled.");
  }
  return reasons;
}

std::string MissedPrecision(const Summary& times, double precision) {
  return absl::StrFormat(
      "The time was over before the median was sure: its 95 %% interval "
      "reaches %.2g %% around it, %.2g %% was asked for.",
      100 * MedianPrecision(times), 100 * precision);
}

void AddNoiseReason(std::string reason, v1::Measurement* measurement) {
  measurement->add_noise_reasons(std::move(reason));
  measurement->set_noisy(true);
}

}  // namespace optfarm::benchmark
