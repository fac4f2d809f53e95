// Runs a graph on many samples, several at a time. Results come in the order of
// the samples, so that nothing depends on the number of threads.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_RUNS_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_RUNS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/optimize/samples/sample_reader.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/session/session.h"

namespace optfarm::optimize {

// Calls `run` for the samples that can be used, up to `threads` at once, with
// the sample's place in `samples`, and then `take` for one after the other on
// the calling thread. A session that `run` uses should have one thread.
// ERRORS: the first error of `run` or `take` in the samples' order.
absl::Status RunSamples(
    absl::Span<const int64_t> samples, int threads, SampleReader* reader,
    absl::FunctionRef<absl::StatusOr<std::vector<runtime::Tensor>>(
        size_t place, const std::vector<runtime::Tensor>& inputs)>
        run,
    absl::FunctionRef<absl::Status(size_t place,
                                   std::vector<runtime::Tensor> outputs)>
        take);

// The same for a session's Run.
absl::Status RunSamples(const runtime::Session& session,
                        absl::Span<const int64_t> samples, int threads,
                        SampleReader* reader,
                        absl::FunctionRef<absl::Status(
                            size_t place, std::vector<runtime::Tensor> outputs)>
                            take);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_RUNS_H_
