#include "server/project_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "optfarm/v1/options.pb.h"
#include "rpc/status.h"
#include "server/proto_time.h"

namespace optfarm::server {

absl::Status ExhaustedFor(absl::string_view message, absl::Duration wait) {
  wait = absl::Ceil(wait, absl::Seconds(1));
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat(message, "; try again in ", absl::FormatDuration(wait)));
  v1::RetryHint hint;
  *hint.mutable_retry_after() = ToProtoDuration(wait);
  rpc::AddDetail(hint, &status);
  return status;
}

absl::Status CallRate::Take(const std::string& project, absl::Time now) {
  if (limits_.calls_per_second <= 0) return absl::OkStatus();
  const double most = std::max(1, limits_.call_burst);
  absl::MutexLock lock(&mutex_);
  const auto [entry, added] = buckets_.try_emplace(project, Bucket{most, now});
  Bucket& bucket = entry->second;
  // A clock that was set back fills nothing.
  const double seconds =
      std::max(0.0, absl::ToDoubleSeconds(now - bucket.filled));
  bucket.calls =
      std::min(most, bucket.calls + seconds * limits_.calls_per_second);
  bucket.filled = now;
  if (bucket.calls >= 1) {
    bucket.calls -= 1;
    return absl::OkStatus();
  }
  return ExhaustedFor(
      absl::StrCat("the project '", project, "' makes more than ",
                   limits_.calls_per_second, " calls a second"),
      absl::Seconds((1 - bucket.calls) / limits_.calls_per_second));
}

}  // namespace optfarm::server
