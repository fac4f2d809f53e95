// Fields of a request message set from text, as they come in paths and
// queries.

#ifndef OPTFARM_HTTP_FIELD_BINDING_H_
#define OPTFARM_HTTP_FIELD_BINDING_H_

#include <google/protobuf/message.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::http {

// ERRORS: InvalidArgument unless `path` ("digest.sha256") leads through
// messages to a field that has a text form.
absl::Status CheckField(const google::protobuf::Descriptor& type,
                        absl::string_view path);

// Sets or, when the field is repeated, adds to the field at `path`. Values are
// as in protobuf's JSON without quotation marks: enums by name, times as
// RFC 3339, durations as "1.5s". Names in lowerCamelCase are taken too.
// ERRORS: InvalidArgument that names the field and the value.
absl::Status SetField(absl::string_view path, absl::string_view value,
                      google::protobuf::Message* message);

// "a=1&b.c=x" in its parts, decoded.
// ERRORS: InvalidArgument; also for more than 200 parameters.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseQuery(
    absl::string_view query);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_FIELD_BINDING_H_
