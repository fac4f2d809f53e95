// Whether a completion that a worker or agent sent may be taken as the outcome
// of its task. Its contents are somebody else's words: a wrong one costs an
// attempt of its own task and nothing else.

#ifndef OPTFARM_SERVER_SCHEDULING_COMPLETION_CHECK_H_
#define OPTFARM_SERVER_SCHEDULING_COMPLETION_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optfarm/v1/work.pb.h"
#include "storage/blob_id.h"
#include "storage/records.h"

namespace optfarm::server {

// The digests of all blobs the completion names, each checked for form.
// ERRORS: InvalidArgument when the completion does not fit its task: wrong kind
// of outcome, malformed digest or file name, a report without the optimized
// graph, a measurement of another device or variant or with impossible numbers.
absl::StatusOr<std::vector<storage::BlobId>> CheckCompletion(
    const v1::Completion& completion, const storage::TaskRecord& task,
    const v1::JobSpec& spec);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_COMPLETION_CHECK_H_
