// What a device takes for a variant: measured, and predicted for those that it
// has not seen.

#ifndef OPTFARM_ENGINE_TUNE_DEVICE_SPEED_H_
#define OPTFARM_ENGINE_TUNE_DEVICE_SPEED_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::tune {

// One variant on one device. UNITS: ratio, the original's latency over this
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
std::optional<MeasuredSpeed> SpeedOn(const v1::Job& job,
                                     const std::string& device);

// How one device takes to layers that go back to float.
// THREADS: one at a time.
class FloatCostModel {
 public:
  // UNITS: microseconds. Everything quantized; and what leaving all layers in
  // float adds, on the device and on the worker (LayerSpace::FloatCost).
  FloatCostModel(double base_us, double all_float_adds_us,
                 double worker_cost_us);

  // UNITS: microseconds.
  double Predict(double worker_cost_us) const;
  // A measured one; later predictions keep closer to it.
  void Learn(double worker_cost_us, double measured_us);

 private:
  double base_us_;
  // Device over worker; negative where float is faster than 8 bits.
  double slope_;
  double products_ = 0;
  double squares_ = 0;
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
