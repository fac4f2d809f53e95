// Sessions of the web page. A browser shows its token once and gets a cookie
// instead that scripts cannot read; requests with the cookie are calls with
// that token, and pass the same checks each time.

#ifndef OPTFARM_SERVER_ACCESS_BROWSER_SESSIONS_H_
#define OPTFARM_SERVER_ACCESS_BROWSER_SESSIONS_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "http/message.h"

namespace optfarm::server {

// Kept in memory: a restart of the server ends all sessions.
// THREADS: all methods are safe.
class BrowserSessions {
 public:
  struct Options {
    // Browsers get cookies that they send over TLS alone.
    bool secure = false;
    // From login to end.
    absl::Duration lifetime = absl::Hours(24 * 7);
    // UNITS: sessions. One more ends the oldest.
    size_t max_sessions = 1000;
  };

  // OWNERSHIP: the clock outlives it.
  BrowserSessions(Options options, Clock& clock)
      : options_(options), clock_(clock) {}

  // Begins a session for the request's Authorization, which the caller has
  // checked, and returns the value of Set-Cookie.
  // ERRORS: Unavailable without random bytes.
  absl::StatusOr<std::string> Begin(const http::RequestHead& head);

  // Ends the session that the request's cookie names, if there is one, and
  // returns the value of Set-Cookie that removes the cookie.
  std::string End(const http::RequestHead& head);

  // Gives a request with a session's cookie the session's Authorization.
  // Requests that bring their own, that another site's page makes, or whose
  // session has ended are left as they are.
  // ERRORS: PermissionDenied for a request that changes something and lacks the
  // page's header, which forms and other sites cannot send.
  absl::Status Admit(http::RequestHead& head);

 private:
  struct Session {
    std::string authorization;
    absl::Time begin;
  };

  std::string SetCookie(const http::RequestHead& head, const std::string& value,
                        absl::Duration lifetime) const;
  // SHA-256 of the cookie's value; "" without a cookie.
  std::string KeyOf(const http::RequestHead& head) const;

  const Options options_;
  Clock& clock_;
  absl::Mutex mutex_;
  // By SHA-256 of the cookie's value.
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);
};

// ERRORS: PermissionDenied unless the request has the page's header.
absl::Status CheckPageHeader(const http::RequestHead& head);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_BROWSER_SESSIONS_H_
