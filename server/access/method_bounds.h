// How large each method's request may be.

#ifndef OPTFARM_SERVER_ACCESS_METHOD_BOUNDS_H_
#define OPTFARM_SERVER_ACCESS_METHOD_BOUNDS_H_

#include "absl/strings/string_view.h"
#include "rpc/message_bounds.h"

namespace optfarm::server {

// Of requests to `method`, "optfarm.v1.JobService.GetJob".
rpc::MessageBounds BoundsOf(absl::string_view method);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_METHOD_BOUNDS_H_
