// How much the median latency of one and the same thing varies from one
// measurement to the next: what the intervals within a measurement cannot show.

#ifndef OPTFARM_SERVER_SERVICES_RUN_SPREAD_H_
#define OPTFARM_SERVER_SERVICES_RUN_SPREAD_H_

#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "storage/records.h"

namespace optfarm::server {

// Assumed where there are too few results to tell.
inline constexpr double kAssumedSpread = 0.03;

struct RunSpread {
  // UNITS: fraction of the median, one standard deviation.
  double deviation = kAssumedSpread;
  // UNITS: pairs of successive results that it is from; 0: it is assumed.
  int pairs = 0;
};

// The histories of some devices.
class RunSpreads {
 public:
  // Points newest first.
  void Add(const storage::SeriesKey& series,
           absl::Span<const storage::PointNumbers> points);

  // From the series of both records where they have five pairs or more, else
  // from all series of their device with as many threads. A lone change of the
  // model or of the program hardly counts: medians of differences are taken.
  // REQUIRES: both are of one device and thread count.
  RunSpread Of(const storage::MeasurementRecord& a,
               const storage::MeasurementRecord& b) const;

 private:
  struct History {
    storage::SeriesKey series;
    // Absolute differences of successive medians' logarithms.
    std::vector<double> differences;
  };

  std::map<std::string, std::vector<History>> by_device_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_RUN_SPREAD_H_
