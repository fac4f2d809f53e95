// Messages as JSON and back, by protobuf's own mapping. Field names are the
// contracts' (snake_case), as everywhere in Optfarm; both forms are read.

#ifndef OPTFARM_HTTP_JSON_H_
#define OPTFARM_HTTP_JSON_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rpc/message_bounds.h"

namespace optfarm::http {

// Compact, with every field that is not a message, so that a reader need not
// know defaults. ERRORS: Internal.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message);

// Makes `*message` what `json` says, of which only the memory is bounded here.
// ERRORS: InvalidArgument that says where it is wrong; unknown fields are an
// error. ResourceExhausted for what would take more memory.
absl::Status FromJson(absl::string_view json, const rpc::MessageBounds& bounds,
                      google::protobuf::Message* message);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_JSON_H_
