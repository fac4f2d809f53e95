// Which samples of a data set are used for what.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_CHOICE_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_CHOICE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace optfarm::optimize {

// Samples 0..size-1 that are not among `chosen`, which is ascending.
std::vector<int64_t> OtherSamples(absl::Span<const int64_t> chosen,
                                  int64_t size);

// Every `n`-th of the samples, beginning with the one at `first`.
// REQUIRES: 0 <= first, 1 <= n.
std::vector<int64_t> EveryNth(absl::Span<const int64_t> samples, int64_t first,
                              int64_t n);

// At most `most` of the samples, ascending; which ones depends on `seed` alone.
std::vector<int64_t> ChooseSome(std::vector<int64_t> samples, int64_t most,
                                uint64_t seed);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_CHOICE_H_
