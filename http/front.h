// The HTTP door as an object: a listening socket and a thread for each
// connection, of which there are only so many.

#ifndef OPTFARM_HTTP_FRONT_H_
#define OPTFARM_HTTP_FRONT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/byte_stream.h"
#include "http/service_map.h"

namespace optfarm::http {

struct FrontOptions {
  // HOST:PORT or [IPV6]:PORT; port 0 takes a free one.
  std::string address;
  // Both doors speak TLS or neither does. Empty files: no TLS.
  TlsFiles tls;
};

// THREADS: all methods are safe.
class Front {
 public:
  // Listens. ERRORS: InvalidArgument for the address or the certificates;
  // Unavailable when the address cannot be had.
  static absl::StatusOr<std::unique_ptr<Front>> Start(
      const FrontOptions& options, std::unique_ptr<ServiceMap> services);
  // Breaks off what still runs.
  virtual ~Front() = default;

  // HOST:PORT with the port that was really taken.
  virtual std::string address() const = 0;

  // From now on new connections speak TLS with what the files hold; those that
  // are open go on with what they have.
  // ERRORS: those of TlsContext::Make, and nothing changes; FailedPrecondition
  // when the door speaks no TLS.
  virtual absl::Status ReloadTls() = 0;

  // Takes no more connections or requests; those under way go on.
  virtual void Drain() = 0;
  // Drains, waits at most so long for answers under way, breaks off the rest.
  virtual void Stop(absl::Duration grace) = 0;

 protected:
  Front() = default;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_FRONT_H_
