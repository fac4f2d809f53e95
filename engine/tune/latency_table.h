// What steps take on one machine with one number of threads: measured ones by
// their key, others by those that are most like them. A variant's latency is
// predicted as the sum over its steps, those that convert between precisions
// among them.

#ifndef OPTFARM_ENGINE_TUNE_LATENCY_TABLE_H_
#define OPTFARM_ENGINE_TUNE_LATENCY_TABLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "optfarm/v1/measurement.pb.h"
#include "optfarm/v1/steps.pb.h"

namespace optfarm::tune {

// Whatever measures alike: processor, instruction sets that kernels use, build
// of the runtime, threads, and the CPUs that they were pinned to.
std::string MachineOf(const v1::Measurement& measurement);

// Whether steps of this op do nothing but convert between float and 8 bits.
bool ConvertsPrecision(absl::string_view op);

// THREADS: one at a time.
class LatencyTable {
 public:
  struct Prediction {
    // UNITS: microseconds.
    double us = 0;
    // UNITS: steps that were measured, here or for another model; and others.
    int known = 0;
    int estimated = 0;
  };

  // One that was measured; the newest times of a key count most. Times that are
  // not above zero, or not finite, are passed over.
  void Add(const v1::StepTime& step);

  // Also corrected by what whole variants took.
  Prediction Predict(
      const google::protobuf::RepeatedPtrField<v1::StepWork>& steps) const;
  // The sum of steps that were measured, corrected in the same way.
  // UNITS: microseconds.
  double Whole(double steps_us) const { return scale_ * steps_us; }
  // UNITS: microseconds of a step that converts so many bytes, between float
  // and 8 bits one way.
  double Conversion(double float_bytes) const;

  // A whole variant took this, and its steps the other, both measured: steps
  // are slower or faster when nobody looks at them one by one.
  // UNITS: microseconds.
  void Correct(double steps_us, double measured_us);

  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::string op;
    // Logarithms of multiply-adds and bytes.
    std::vector<double> features;
    double work = 0;
    double bytes = 0;
    double us = 0;
    int times = 0;
  };

  static Entry EntryOf(const v1::StepWork& step);
  double Estimate(const v1::StepWork& step) const;
  double EstimateFrom(const Entry& wanted,
                      const std::vector<const Entry*>& alike) const;

  std::map<std::string, Entry> entries_;
  // By op; the pointers stay, for a map's nodes do.
  std::map<std::string, std::vector<const Entry*>> by_op_;
  // The median of these: a machine that was busy with other work slows some
  // whole variants down and tells nothing of the rest.
  double scale_ = 1;
  std::vector<double> scales_;
};

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_LATENCY_TABLE_H_
