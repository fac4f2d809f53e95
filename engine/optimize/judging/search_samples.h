// A few samples that stand for all while a job searches for its chain.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_SEARCH_SAMPLES_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_SEARCH_SAMPLES_H_

#include <optional>

#include "engine/optimize/judging/measurement.h"
#include "engine/optimize/judging/optimizer_input.h"

namespace optfarm::optimize {

// A part of `guide` that is enough to tell good chains from bad ones: eight
// samples, evenly spread. nullopt where chains have to be judged on all: the
// recipe tries no others, there are fewer than 32 samples, a sample's answer
// is less than a thousand numbers, or what counts is the share of samples with
// the same class or the same things found, of which eight say little.
// It depends on the samples and the answers alone.
std::optional<Reference> ChooseSearchSamples(const OptimizerInput& in,
                                             const Reference& guide);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_SEARCH_SAMPLES_H_
