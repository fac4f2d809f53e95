// The leader's word that this server may send a blob: asked for once, heard
// again twice a second while bytes are sent, and taken back at any time.

#ifndef OPTFARM_SERVER_FORWARDING_DOWNLOAD_GRANT_H_
#define OPTFARM_SERVER_FORWARDING_DOWNLOAD_GRANT_H_

#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "optfarm/servers/v1/leader.grpc.pb.h"
#include "server/forwarding/leader_lanes.h"

namespace optfarm::server {

// THREADS: one at a time.
class DownloadGrant {
 public:
  // Asks, and waits for the answer. `cancel` makes the caller's call end; it is
  // called on another thread when the grant ends and whoever has it does not
  // find out soon. ERRORS: those of ModelService.Download; Unavailable when the
  // leader is gone; Unimplemented when it sends all bytes itself.
  static absl::StatusOr<std::unique_ptr<DownloadGrant>> Ask(
      std::unique_ptr<LeaderLanes::Place> place,
      const v1::DownloadRequest& request, std::function<void()> cancel);
  // Tells the leader that nothing more is sent.
  ~DownloadGrant();
  DownloadGrant(const DownloadGrant&) = delete;
  DownloadGrant& operator=(const DownloadGrant&) = delete;

  // What the leader said: where else the blob is, or how large.
  const v1::DownloadResponse& answer() const { return answer_; }

  // False: no byte may be sent any more, and Finish says why. True for a
  // second after the leader was heard; waits for its word where that has
  // passed.
  bool Holds();
  // So many bytes were sent.
  void NoteMoved(size_t bytes) { unsaid_bytes_ += static_cast<int64_t>(bytes); }
  // Tells what is still to be told, and waits for the leader's verdict on the
  // whole. Once.
  absl::Status Finish();

 private:
  using Clock = std::chrono::steady_clock;
  using Stream = grpc::ClientReaderWriter<servers::v1::GrantDownloadRequest,
                                          v1::DownloadResponse>;

  DownloadGrant(std::unique_ptr<LeaderLanes::Place> place,
                std::function<void()> cancel);
  // Hears the leader's words until there are no more.
  void Listen();
  // Says what was moved. REQUIRES: the last word was answered.
  void Say() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<LeaderLanes::Place> place_;
  const std::function<void()> cancel_;
  const std::unique_ptr<servers::v1::LeaderService::Stub> stub_;
  std::unique_ptr<Stream> stream_;
  v1::DownloadResponse answer_;
  int64_t unsaid_bytes_ = 0;
  bool finished_ = false;
  absl::Mutex mutex_;
  // A word that was answered was said then.
  Clock::time_point heard_ ABSL_GUARDED_BY(mutex_);
  // When the word was said that is not answered yet.
  Clock::time_point said_ ABSL_GUARDED_BY(mutex_);
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;
  // The leader has ended it; and whoever has the grant knows.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool known_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread listener_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_DOWNLOAD_GRANT_H_
