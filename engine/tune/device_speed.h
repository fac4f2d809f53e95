// What a device takes for a variant: measured, and predicted for those that it
// has not seen.

#ifndef OPTFARM_ENGINE_TUNE_DEVICE_SPEED_H_
#define OPTFARM_ENGINE_TUNE_DEVICE_SPEED_H_

#include <compare>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::tune {

// What variants are measured on.
struct Place {
  std::string device;
  int threads = 1;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// One variant at one place. UNITS: ratio, the original's latency over this
// one's, and the ends of its 95 % interval; microseconds of the original.
struct MeasuredSpeed {
  double speedup = 0;
  double low = 0;
  double high = 0;
  double float_us = 0;
  // UNITS: seconds that the device was busy with it.
  double device_seconds = 0;
};

// nullopt: the job has no measurement of its result there.
std::optional<MeasuredSpeed> SpeedOn(const v1::Job& job, const Place& place);

// The measurement of that variant there; null: the job has none.
const v1::Measurement* MeasurementOn(const v1::Job& job, const Place& place,
                                     absl::string_view variant);

// How one place takes to layers that go back to float.
// THREADS: one at a time.
class FloatCostModel {
 public:
  // UNITS: microseconds. Everything quantized; and what leaving all layers in
  // float adds, on the device and by the sum of what each costs by itself.
  // `trust`, UNITS: microseconds: sums up to this are taken as they are until
  // larger ones were measured; 0 for sums that were not taken there.
  FloatCostModel(double base_us, double all_float_adds_us, double sum_us,
                 double trust_us = 0);

  // Of layers that cost so much by themselves. UNITS: microseconds.
  double Predict(double sum_us) const;
  // A measured one; later predictions keep closer to it.
  void Learn(double sum_us, double measured_us);

 private:
  double base_us_;
  // The device's over the sum; negative where float is faster than 8 bits.
  double slope_;
  double products_;
  double squares_;
};

// UNITS: of each pair, any positive one. Median of |predicted / measured - 1|.
// nullopt with fewer than three.
std::optional<double> MedianError(
    absl::Span<const std::pair<double, double>> predicted_and_measured);

// Spearman's rank correlation, ties at their mean rank; nullopt with fewer than
// three, or when one side is all the same.
std::optional<double> RankCorrelation(
    absl::Span<const std::pair<double, double>> pairs);

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_DEVICE_SPEED_H_
