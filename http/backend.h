// Where requests go: the services themselves, called as gRPC calls them, so
// that there is one implementation and one access check.

#ifndef OPTFARM_HTTP_BACKEND_H_
#define OPTFARM_HTTP_BACKEND_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace optfarm::http {

// Metadata that tells the services where a request came from.
inline constexpr char kPeerKey[] = "optfarm-peer";
// Metadata of requests whose sender has shown a certificate.
inline constexpr char kCertifiedKey[] = "optfarm-certified";

struct BackendCall {
  // "/optfarm.v1.JobService/GetJob".
  std::string rpc;
  // Metadata: lower-case names, values of visible ASCII.
  std::vector<std::pair<std::string, std::string>> metadata;
  // Longest time the call may take.
  absl::Duration limit = absl::InfiniteDuration();
};

// A call with several messages. Messages are serialized.
// THREADS: one at a time. OWNERSHIP: the destructor cancels what still runs.
class BackendStream {
 public:
  enum class ReadResult { kMessage, kEnd, kNothingYet };

  virtual ~BackendStream() = default;
  // Waits until there is room. False: the call has ended; see Finish.
  virtual bool Write(const std::string& message) = 0;
  // Nothing more will be written.
  virtual void WritesDone() = 0;
  // Waits at most `wait` for the next message.
  virtual ReadResult Read(absl::Duration wait, std::string* message) = 0;
  // The call's outcome. REQUIRES: WritesDone, and Read said kEnd or Write was
  // false.
  virtual absl::Status Finish() = 0;
};

// THREADS: safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual absl::StatusOr<std::string> Unary(const BackendCall& call,
                                            const std::string& request) = 0;
  virtual std::unique_ptr<BackendStream> Open(const BackendCall& call) = 0;
};

std::unique_ptr<Backend> MakeGrpcBackend(
    std::shared_ptr<grpc::Channel> channel);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_BACKEND_H_
