// The rule that answers "is this variant worth shipping on this device?", from
// numbers alone.

#ifndef OPTFARM_ENGINE_VERDICT_VERDICT_RULE_H_
#define OPTFARM_ENGINE_VERDICT_VERDICT_RULE_H_

#include <optional>
#include <string>
#include <vector>

#include "optfarm/v1/verdict.pb.h"

namespace optfarm::verdict {

// A bound of the recipe that did not hold.
struct FailedGate {
  // Field name in Bounds, brackets removed: "max_accuracy_drop".
  std::string name;
  // In the unit of the bound; NaN: could not be measured.
  double value = 0;
  double bound = 0;
  // What the optimizing program said about it.
  std::string message;
};

// What is known about one variant on one device with one thread count.
struct VerdictFacts {
  // The original model: nothing to decide.
  bool baseline = false;

  // Those that concern this row.
  std::vector<FailedGate> failed_gates;

  // The recipe sets a bound on accuracy or agreement, and it held.
  bool accuracy_bound_held = false;

  // UNITS: ratio, this file over the float file. Absent: not known.
  std::optional<double> size_ratio;

  // UNITS: ratio, float median latency over this one. Absent: not measured.
  std::optional<double> speedup;

  // UNITS: ratio. Ends of the interval of `speedup`. Absent: not known.
  std::optional<double> speedup_low;
  std::optional<double> speedup_high;

  // Where there is no interval: the medians differ by more than three times the
  // sum of both MADs.
  bool speed_difference_is_clear = false;

  // Why the numbers of either side should not be trusted; empty: quiet.
  std::vector<std::string> noise_reasons;

  // Why the original's answers are not to be trusted; empty: nothing is known
  // against them.
  std::vector<std::string> distrust;

  // UNITS: percentage points of top-1, this minus float. Absent: no labels.
  std::optional<double> top1_change;

  // UNITS: fraction 0..1 of samples with the same best class. Absent: unknown.
  std::optional<double> agreement;
};

struct Verdict {
  v1::ShippingVerdict::Answer answer = v1::ShippingVerdict::UNCLEAR;
  // "yes: 0.26x size, 1.80x faster, -0.3 points".
  std::string text;
};

// The first rule that applies decides:
//   1. a bound did not hold                      no
//   2. no bound, and accuracy is clearly lost    no
//   3. the original is not to be trusted         unclear
//   4. clearly slower than float                 no
//   5. the measurement is noisy, and the answer would be another at one end of
//      the speed-up's interval                   unclear
//   6. neither smaller nor faster                no
//   7. speed or answers were not measured        unclear
//   8. otherwise                                 yes
Verdict DecideVerdict(const VerdictFacts& facts);

// "loses 12.3 points of top-1 (bound 2.0)".
std::string DescribeFailedGate(const FailedGate& gate);

}  // namespace optfarm::verdict

#endif  // OPTFARM_ENGINE_VERDICT_VERDICT_RULE_H_
