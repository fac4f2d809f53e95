// Finds the factors for scale_channels: how many of a layer's quantized values
// each of its channels uses on samples.

#ifndef OPTFARM_ENGINE_OPTIMIZE_ROUNDING_CHANNEL_EQUALIZATION_H_
#define OPTFARM_ENGINE_OPTIMIZE_ROUNDING_CHANNEL_EQUALIZATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/optimize/samples/sample_reader.h"
#include "engine/transforms/folding/scale_channels.h"

namespace optfarm::optimize {

// The factors that let each channel of the graph's scalable layers use nearly
// all quantized values (formula 28 of docs/quantization.md). Empty when no
// layer is scalable. THREADS: runs up to `threads` samples at once; the result
// does not depend on how many. ERRORS: those of running the graph.
absl::StatusOr<transforms::ChannelFactors> FindChannelFactors(
    const graph::Graph& graph, absl::Span<const graph::TensorName> inputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_ROUNDING_CHANNEL_EQUALIZATION_H_
