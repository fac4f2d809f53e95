// The flags that say which results are meant; several commands have them.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_RESULT_FILTER_FLAGS_H_
#define OPTFARM_CLIENT_CLI_COMMAND_RESULT_FILTER_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/flags/flags.h"
#include "optfarm/v1/results.pb.h"

namespace optfarm::client_cli {

// Names of metrics as flags take and tables show them.
std::vector<std::string> MetricNames();
// REQUIRES: one of MetricNames().
v1::Metric MetricOf(absl::string_view name);
double ValueOf(const v1::SeriesPoint& point, v1::Metric metric);

// Reads "median_us<5000": a metric, one of < <= > >=, a number.
// ERRORS: InvalidArgument.
absl::StatusOr<v1::MetricRange> ParseMetricRange(absl::string_view text);

class ResultFilterFlags {
 public:
  void Declare(FlagSet* flags);
  // Replaces what --job abbreviates by the job's id. ERRORS: FindJobId's.
  absl::Status CompleteJob(FarmClient& client);
  // ERRORS: UsageError.
  absl::StatusOr<v1::ResultFilter> Build(absl::Time now) const;

  // For when nothing was found: whether the farm has the job, the device, the
  // model, the recipe and the variant that were named, so that a slip of the
  // pen is not taken for good news. ERRORS: NotFound, marked kNotFound; what
  // the server answered.
  absl::Status CheckNames(FarmClient& client) const;

 private:
  std::string model_, recipe_, device_, job_, variant_, tag_;
  int64_t threads_ = 0;
  absl::Duration since_;
  absl::Duration until_;
  std::vector<std::string> where_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_RESULT_FILTER_FLAGS_H_
