// How sure a measured accuracy is: intervals and a test for numbers of right
// answers. docs/quantization.md derives the formulas and numbers them.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_CONFIDENCE_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_CONFIDENCE_H_

#include <cstdint>

namespace optfarm::optimize {

struct Interval {
  double low = 0;
  double high = 0;
};

// The 95 % interval of a share of which `count` of `samples` were seen
// (Wilson 1927). UNITS: fraction. 0..1 when there are no samples.
Interval WilsonInterval(int64_t count, int64_t samples);

// Two classifiers on the same samples, counted where they differ.
struct PairedCounts {
  int64_t samples = 0;
  int64_t only_first_right = 0;
  int64_t only_second_right = 0;
};

// The 95 % interval of the second's share of right answers less the first's
// (Agresti and Min 2005). UNITS: fraction, -1..1.
Interval PairedInterval(const PairedCounts& counts);

// The probability that classifiers of equal worth differ at least as unevenly
// (McNemar's test, exact).
double McNemarProbability(const PairedCounts& counts);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_CONFIDENCE_H_
