#include "client_cli/jobs/absent_server.h"

#include <limits>

#include "base/human_units.h"
#include "rpc/retry.h"

namespace optfarm::client_cli {

absl::Status CallThroughAbsence(const CommandContext& context,
                                absl::Duration retry_for,
                                absl::FunctionRef<absl::Status()> call) {
  const absl::Status first = call();
  if (!rpc::IsTransient(first) || retry_for <= absl::ZeroDuration()) {
    return first;
  }
  *context.err << first.message() << "; trying again for "
               << HumanDuration(retry_for) << std::endl;
  rpc::RetryOptions options;
  options.backoff.longest = absl::Seconds(5);
  options.max_attempts = std::numeric_limits<int>::max();
  options.give_up_after = retry_for;
  options.clock = context.clock;
  return rpc::Retry(options, [&] { return rpc::Attempt{call()}; });
}

}  // namespace optfarm::client_cli
