// Reads samples of a dataset for a job, and keeps account of those that cannot
// be used: a corrupt picture costs itself, many cost the job.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_READER_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_READER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/optimize/samples/dataset.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// THREADS: one at a time. OWNERSHIP: the dataset outlives the reader.
class SampleReader {
 public:
  explicit SampleReader(const Dataset& dataset) : dataset_(dataset) {}

  // The sample, or nullopt when it cannot be used.
  std::optional<std::vector<runtime::Tensor>> Read(int64_t index);

  // The samples at once, in their order.
  std::vector<std::optional<std::vector<runtime::Tensor>>> ReadMany(
      absl::Span<const int64_t> indices, runtime::ThreadPool* pool);

  // ERRORS: InvalidArgument naming the first bad sample when none could be
  // read, or when at least two and more than a fifth could not.
  absl::Status CheckBad() const;

  int64_t bad_count() const { return static_cast<int64_t>(bad_.size()); }
  // At most 100, in order.
  std::vector<v1::SkippedMatch> Bad() const;

 private:
  // Keeps account of one sample.
  std::optional<std::vector<runtime::Tensor>> Admit(
      int64_t index, absl::StatusOr<std::vector<runtime::Tensor>> sample);

  const Dataset& dataset_;
  std::set<int64_t> tried_;
  std::map<int64_t, std::string> bad_;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_READER_H_
