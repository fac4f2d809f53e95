// What a server that is built without the web page has in its place.

#include "server/services/web_page.h"

namespace optfarm::server {

absl::Span<const WebFile> WebFiles() { return {}; }

}  // namespace optfarm::server
