// A call that never ends, for a connection that must not be taken for idle:
// servers close connections without calls, and one made of a pair of sockets
// cannot be made again by its channel.

#ifndef OPTFARM_RPC_HELD_CONNECTION_H_
#define OPTFARM_RPC_HELD_CONNECTION_H_

#include <grpcpp/channel.h>

#include <memory>

namespace optfarm::rpc {

// THREADS: made and ended on any thread.
class HeldConnection {
 public:
  // Watches the health of the server at the other end, whose default health
  // service must be enabled.
  explicit HeldConnection(std::shared_ptr<grpc::Channel> channel);

  // Ends the call: a server that shuts down would wait for it.
  ~HeldConnection();

  HeldConnection(const HeldConnection&) = delete;
  HeldConnection& operator=(const HeldConnection&) = delete;

 private:
  class Call;
  std::unique_ptr<Call> call_;
};

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_HELD_CONNECTION_H_
