// The web page: files that were bundled when the server was built, and the
// login that gives a browser its cookie. Everything else that the page does, it
// does through the REST API.

#ifndef OPTFARM_SERVER_SERVICES_WEB_PAGE_H_
#define OPTFARM_SERVER_SERVICES_WEB_PAGE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "http/backend.h"
#include "http/service_map.h"
#include "server/access/browser_sessions.h"

namespace optfarm::server {

// One file of the bundle, plain and packed by gzip.
struct WebFile {
  // "/" for the page itself; others have a digest of the bundle in their path.
  absl::string_view path;
  absl::string_view content_type;
  absl::string_view bytes;
  absl::string_view gzip;
};

// Empty when the server was built without the page (OPTFARM_WEB=OFF). Generated
// by web/build.mjs.
absl::Span<const WebFile> WebFiles();

// A call of a method by whoever sent the request. ERRORS: Unauthenticated for
// an Authorization that cannot be a token.
absl::StatusOr<http::BackendCall> CallAs(const http::RequestHead& head,
                                         absl::string_view method);

// Adds the page at "/", its files, and "POST /session" and "DELETE /session".
// Without a bundle "/" leads to the description of the API.
// REQUIRES: the backend is there. OWNERSHIP: the sessions outlive the services.
void AddWebPage(BrowserSessions& sessions, http::ServiceMap& services);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_WEB_PAGE_H_
