#include "engine/benchmark/measurement.h"

#include <cstdint>
#include <utility>

#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/benchmark/noise.h"
#include "engine/benchmark/statistics.h"
#include "google/protobuf/util/time_util.h"

namespace optfarm::benchmark {
namespace {

constexpr int kMaxSamples = 10'000;

}  // namespace

absl::Status FillModelFile(const std::string& path,
                           v1::Measurement* measurement) {
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  OPTFARM_ASSIGN_OR_RETURN(const std::string digest, Sha256OfFile(path));
  measurement->set_file_size_bytes(static_cast<int64_t>(size));
  measurement->mutable_model()->set_sha256(digest);
  measurement->mutable_model()->set_size_bytes(static_cast<int64_t>(size));
  return absl::OkStatus();
}

void FillTimes(absl::Span<const double> micros, absl::Time taken_at,
               const v1::Environment& before, const v1::Environment& after,
               v1::Measurement* measurement) {
  const Summary summary = Summarize(micros);
  v1::Measurement& m = *measurement;
  *m.mutable_taken_at() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
          absl::ToUnixNanos(taken_at));
  m.set_min_us(summary.min);
  m.set_median_us(summary.median);
  m.set_mean_us(summary.mean);
  m.set_mad_us(summary.mad);
  m.set_p90_us(summary.p90);
  m.set_p99_us(summary.p99);
  m.set_max_us(summary.max);
  m.set_median_low_us(summary.median_low);
  m.set_median_high_us(summary.median_high);
  m.set_outlier_runs(summary.outliers);
  m.set_runs(static_cast<int>(micros.size()));
  for (const double value : micros) {
    if (m.samples_us_size() == kMaxSamples) break;
    m.add_samples_us(static_cast<float>(value));
  }
  *m.mutable_before() = before;
  *m.mutable_after() = after;
  for (std::string& reason :
       NoiseReasons(summary, m.threads(), before, after)) {
    m.add_noise_reasons(std::move(reason));
  }
  m.set_noisy(m.noise_reasons_size() > 0);
}

}  // namespace optfarm::benchmark
