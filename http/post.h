// A POST to somebody else's server, once, without redirects.

#ifndef OPTFARM_HTTP_POST_H_
#define OPTFARM_HTTP_POST_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/cancellation.h"
#include "http/url.h"

namespace optfarm::http {

struct PostRequest {
  Url url;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  absl::Duration limit = absl::Seconds(30);
  // Breaks it off; may be null.
  std::shared_ptr<Cancellation> cancellation = nullptr;
};

// Sends it and returns the status of the answer, whose body is not read.
// Certificates are checked against the system's authorities.
// ERRORS: Unavailable, DeadlineExceeded, Cancelled.
absl::StatusOr<int> Post(const PostRequest& request);

struct PostReply {
  int status = 0;
  // Its header Retry-After, from now on; at least 0.
  std::optional<absl::Duration> retry_after;
  // Empty when it is longer than was asked for, or broke off.
  std::string body;
};

// The same, with more of the answer: a body of up to `max_body_bytes`.
absl::StatusOr<PostReply> PostForReply(const PostRequest& request,
                                       size_t max_body_bytes);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_POST_H_
