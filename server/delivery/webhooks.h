// Tells whoever asked for it that a job has ended: a signed POST to an address
// that the operator allowed, tried again until it is taken or a day has passed.
//
// A receiver that is slow delays nobody else: a few threads send, and each
// receiver has one of them at a time.
//
// What is to be told is on disk before the submit is answered, so that a
// restart loses nothing; a message may come twice, with the same id.

#ifndef OPTFARM_SERVER_DELIVERY_WEBHOOKS_H_
#define OPTFARM_SERVER_DELIVERY_WEBHOOKS_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "http/cancellation.h"
#include "http/post.h"
#include "server/delivery/ticker.h"
#include "storage/metadata_store.h"
#include "storage/webhook_store.h"

namespace optfarm::server {

struct WebhookOptions {
  // HOST or HOST:PORT, exactly as addresses have them. Nothing else is ever
  // asked for; empty: there are no webhooks.
  std::vector<std::string> allowed;
  // Key of the signatures. Required where something is allowed.
  std::string secret;
  // Sends one message and returns the status of the answer.
  std::function<absl::StatusOr<int>(const http::PostRequest&)> post =
      http::Post;
};

// THREADS: all methods are safe.
class Webhooks {
 public:
  // OWNERSHIP: all outlive it.
  Webhooks(WebhookOptions options, storage::WebhookStore& webhooks,
           storage::MetadataStore& store, Clock& clock);

  ~Webhooks() { Stop(); }

  // Takes up what an earlier server left, and begins to send.
  absl::Status Start();
  // Breaks off what is being sent; a later server sends it again.
  void Stop();

  // ERRORS: InvalidArgument for what is no address; PermissionDenied for one
  // that is not allowed.
  absl::Status Check(const std::string& url) const;

  // From now on the end of this job is told. ENSURES: on OK that is durable.
  absl::Status Expect(const std::string& job_id, const std::string& url);

  // These jobs changed.
  void Notify(const std::vector<std::string>& job_ids);

  // Looks for what is due now.
  void Wake() { ticker_.Wake(); }

 private:
  // Puts what is due into the queues of its receivers.
  absl::Time Step(absl::Time now);
  // What each sending thread does.
  void SendAll();
  // Waits for a receiver that is free and takes the first of its queue; false:
  // it is time to end.
  bool TakeNext(std::string& receiver, storage::WebhookRecord& record);
  // Tells the end of a job, if it has come.
  void Serve(storage::WebhookRecord record, absl::Time now);
  absl::Status Deliver(const storage::WebhookRecord& record,
                       const storage::StoredJob& job, absl::Time now);
  void Close(const storage::WebhookRecord& record, absl::string_view outcome,
             absl::Time now);

  const WebhookOptions options_;
  storage::WebhookStore& webhooks_;
  storage::MetadataStore& store_;
  Clock& clock_;
  absl::Mutex mutex_;
  std::map<std::string, storage::WebhookRecord> open_ ABSL_GUARDED_BY(mutex_);
  // Jobs of open_ that may have ended or whose next try may be due, by when.
  std::map<std::string, absl::Time> due_ ABSL_GUARDED_BY(mutex_);
  // By receiver, what is to be sent; and the receivers that are being served.
  std::map<std::string, std::deque<storage::WebhookRecord>> queues_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::string> busy_ ABSL_GUARDED_BY(mutex_);
  // Who was served last; the next one has its turn.
  std::string last_receiver_ ABSL_GUARDED_BY(mutex_);
  // Jobs in queues or being sent.
  std::set<std::string> in_hand_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  const std::shared_ptr<http::Cancellation> cancellation_ =
      std::make_shared<http::Cancellation>();
  std::vector<std::thread> senders_;
  Ticker ticker_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_WEBHOOKS_H_
