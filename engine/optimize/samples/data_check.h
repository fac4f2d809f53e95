// Looks at samples for what usually is a mistake: a scale that was forgotten or
// is not the one that the model was trained with, the same picture again and
// again, too few of them.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATA_CHECK_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATA_CHECK_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/optimize/samples/sample_reader.h"

namespace optfarm::optimize {

// One sentence for each suspicion about the first samples of the dataset, which
// has `size` of them. Never an error: samples that cannot be read are another's
// affair.
std::vector<std::string> CheckData(absl::Span<const ModelTensor> inputs,
                                   int64_t size, SampleReader* reader);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATA_CHECK_H_
