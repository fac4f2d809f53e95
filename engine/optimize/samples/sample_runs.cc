#include "engine/optimize/samples/sample_runs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/core/thread_pool.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;
using Values = std::vector<Tensor>;

// Samples held in memory, for each thread.
constexpr size_t kSamplesPerThread = 4;

}  // namespace

absl::Status RunSamples(
    absl::Span<const int64_t> samples, int threads, SampleReader* reader,
    absl::FunctionRef<absl::StatusOr<Values>(size_t place,
                                             const Values& inputs)>
        run,
    absl::FunctionRef<absl::Status(size_t place, Values outputs)> take) {
  threads = std::max(1, threads);
  runtime::ThreadPool pool(threads);
  const size_t block = kSamplesPerThread * static_cast<size_t>(threads);
  for (size_t begin = 0; begin < samples.size(); begin += block) {
    const auto part = samples.subspan(begin, block);
    std::vector<std::optional<absl::StatusOr<Values>>> results(part.size());
    const std::vector<std::optional<Values>> inputs =
        reader->ReadMany(part, &pool);
    pool.ParallelFor(static_cast<int64_t>(part.size()), 1,
                     [&](int64_t first, int64_t last) {
                       for (int64_t i = first; i < last; ++i) {
                         if (!inputs[i].has_value()) continue;
                         results[i] = run(begin + i, *inputs[i]);
                       }
                     });
    for (size_t i = 0; i < part.size(); ++i) {
      if (!results[i].has_value()) continue;
      OPTFARM_RETURN_IF_ERROR(results[i]->status());
      OPTFARM_RETURN_IF_ERROR(take(begin + i, **std::move(results[i])));
    }
  }
  return absl::OkStatus();
}

absl::Status RunSamples(
    const runtime::Session& session, absl::Span<const int64_t> samples,
    int threads, SampleReader* reader,
    absl::FunctionRef<absl::Status(size_t place, Values outputs)> take) {
  return RunSamples(
      samples, threads, reader,
      [&](size_t, const Values& inputs) { return session.Run(inputs); }, take);
}

}  // namespace optfarm::optimize
