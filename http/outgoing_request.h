// One request to somebody else's server over a connection of its own.

#ifndef OPTFARM_HTTP_OUTGOING_REQUEST_H_
#define OPTFARM_HTTP_OUTGOING_REQUEST_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "http/byte_stream.h"
#include "http/cancellation.h"
#include "http/url.h"

namespace optfarm::http {

// THREADS: one at a time.
class OutgoingRequest {
 public:
  // Connects and sends `bytes`, a whole request. Certificates are checked
  // against the system's authorities.
  // OWNERSHIP: `cancellation` breaks it off and outlives the object; may be
  // null. ERRORS: Unavailable, DeadlineExceeded, Cancelled.
  absl::Status Send(const Url& url, absl::string_view bytes,
                    absl::Time deadline, Cancellation* cancellation);

  // What the other side answers. REQUIRES: Send was OK.
  ByteStream& stream() { return *stream_; }

 private:
  std::unique_ptr<ByteStream> stream_;
  // Goes before the socket that it watches.
  std::optional<Cancellation::Watch> watch_;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_OUTGOING_REQUEST_H_
