// The description of the door that other programs read: OpenAPI 3, made from
// the same routes and descriptors as the door itself.

#ifndef OPTFARM_HTTP_OPEN_API_H_
#define OPTFARM_HTTP_OPEN_API_H_

#include <string>

#include "absl/strings/string_view.h"
#include "http/route_table.h"

namespace optfarm::http {

// JSON. The same table gives the same bytes.
std::string MakeOpenApi(const RouteTable& routes, absl::string_view version);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_OPEN_API_H_
