// Which method of which service a request is for: a table made at start-up
// from the services' http options (proto/optfarm/v1/options.proto). Start here
// for the room: nothing about a single method is written by hand.

#ifndef OPTFARM_HTTP_ROUTE_TABLE_H_
#define OPTFARM_HTTP_ROUTE_TABLE_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::http {

// One way to call one method.
struct Route {
  // A literal, or a field to capture a segment in.
  struct Segment {
    std::string literal;
    std::string field;
  };

  // "GET", "POST", ...
  std::string verb;
  // As written: "/v1/jobs/{job_id}:cancel".
  std::string pattern;
  std::vector<Segment> segments;
  // What follows ':' in the last segment; may be empty.
  std::string action;
  // The body is the request as JSON.
  bool json_body = false;
  // See HttpRule.raw_bytes.
  bool raw_bytes = false;
  // (field, value) that this way implies.
  std::vector<std::pair<std::string, std::string>> preset;
  const google::protobuf::MethodDescriptor* method = nullptr;

  // "/optfarm.v1.JobService/GetJob".
  std::string rpc() const;
};

struct RouteMatch {
  const Route* route = nullptr;
  // (field, decoded value), one for each captured segment.
  std::vector<std::pair<std::string, std::string>> captured;
};

// THREADS: safe once made.
class RouteTable {
 public:
  // ERRORS: InvalidArgument for an option that makes no sense: a malformed
  // path, a field that does not exist, two methods with one path.
  static absl::StatusOr<RouteTable> Make(
      absl::Span<const google::protobuf::ServiceDescriptor* const> services);

  // `path` is as it came, still escaped, without the query. HEAD is answered
  // as GET.
  // ERRORS: NotFound when no method has the path; Unimplemented when methods
  // have it, but not with this verb (see VerbsOf); InvalidArgument for a path
  // that cannot be decoded.
  absl::StatusOr<RouteMatch> Find(absl::string_view verb,
                                  absl::string_view path) const;

  // "GET, HEAD, PUT": for a header Allow. Empty when nothing has the path.
  std::string VerbsOf(absl::string_view path) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_ROUTE_TABLE_H_
