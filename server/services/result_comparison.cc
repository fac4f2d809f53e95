#include "server/services/result_comparison.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "server/delivery/job_view.h"
#include "server/services/interval.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::MeasurementRecord;

using Key = std::tuple<std::string, std::string, int>;
struct Pair {
  const MeasurementRecord* a = nullptr;
  const MeasurementRecord* b = nullptr;
};

Key KeyOf(const MeasurementRecord& record) {
  const v1::Measurement& measurement = record.measurement;
  return {measurement.device(), measurement.variant(), measurement.threads()};
}

double Ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : 0;
}

void FillRatios(const v1::Measurement& a, const v1::Measurement& b,
                const RunSpread& spread, v1::CompareResultsResponse::Row& row) {
  row.set_speedup(Ratio(a.median_us(), b.median_us()));
  if (a.median_us() > 0 && b.median_us() > 0) {
    const Interval interval = MedianRatio(a, b, spread);
    row.set_speedup_low(interval.low);
    row.set_speedup_high(interval.high);
    row.set_run_to_run_spread(spread.deviation);
    row.set_spread_results(spread.pairs);
    row.set_significant(!a.noisy() && !b.noisy() &&
                        (interval.low > 1 || interval.high < 1));
  }
  row.set_memory_ratio(Ratio(static_cast<double>(b.peak_memory_bytes()),
                             static_cast<double>(a.peak_memory_bytes())));
  row.set_file_size_ratio(Ratio(static_cast<double>(b.file_size_bytes()),
                                static_cast<double>(a.file_size_bytes())));
}

void AddMean(v1::CompareResultsResponse& response) {
  std::vector<double> speedups;
  for (const v1::CompareResultsResponse::Row& row : response.rows()) {
    if (row.speedup() > 0 && !row.a().measurement().noisy() &&
        !row.b().measurement().noisy()) {
      speedups.push_back(row.speedup());
    }
  }
  const Interval mean = GeometricMean(speedups);
  response.set_mean_speedup(mean.value);
  response.set_mean_speedup_low(mean.low);
  response.set_mean_speedup_high(mean.high);
  response.set_pairs(static_cast<int>(speedups.size()));
}

}  // namespace

v1::CompareResultsResponse Compare(absl::Span<const MeasurementRecord> a,
                                   absl::Span<const MeasurementRecord> b,
                                   const RunSpreads& spreads) {
  std::map<Key, Pair> pairs;
  for (const MeasurementRecord& record : a) {
    const MeasurementRecord*& newest = pairs[KeyOf(record)].a;
    if (newest == nullptr) newest = &record;
  }
  for (const MeasurementRecord& record : b) {
    const MeasurementRecord*& newest = pairs[KeyOf(record)].b;
    if (newest == nullptr) newest = &record;
  }
  v1::CompareResultsResponse response;
  for (const bool complete : {true, false}) {
    for (const auto& [key, pair] : pairs) {
      if ((pair.a != nullptr && pair.b != nullptr) != complete) continue;
      v1::CompareResultsResponse::Row& row = *response.add_rows();
      row.set_device(std::get<0>(key));
      row.set_variant(std::get<1>(key));
      row.set_threads(std::get<2>(key));
      if (pair.a != nullptr) *row.mutable_a() = ToProto(*pair.a);
      if (pair.b != nullptr) *row.mutable_b() = ToProto(*pair.b);
      if (!complete) continue;
      FillRatios(pair.a->measurement, pair.b->measurement,
                 spreads.Of(*pair.a, *pair.b), row);
    }
  }
  AddMean(response);
  return response;
}

}  // namespace optfarm::server
