// Pages that every front has: the description of the door, and something for
// people to read it with.

#ifndef OPTFARM_HTTP_PAGES_H_
#define OPTFARM_HTTP_PAGES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "http/service_map.h"

namespace optfarm::http {

// Adds "/docs", "/docs.js" and "/openapi.json". REQUIRES: the routes are there.
void AddDescriptionPages(absl::string_view version, ServiceMap* services);

// An answer of plain text.
Reply TextReply(int status, absl::string_view text);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_PAGES_H_
