// What the streams that tell a client of changes have in common: they read one
// request, and then write events at the client's pace.

#ifndef OPTFARM_SERVER_DELIVERY_WATCH_STREAM_H_
#define OPTFARM_SERVER_DELIVERY_WATCH_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/access/call_room.h"
#include "server/access/open_calls.h"

namespace optfarm::server {

// Who may watch.
struct AdmittedWatch {
  std::string project;
  // Ends the watch with the caller's token; may be null.
  std::unique_ptr<OpenCalls::Open> open;
};

// One stream. Between two events it costs no thread.
//
// At any time at most one thread "drives": it asks Next() and starts the next
// write or finishes the call. A write under way counts as driving; OnWriteDone
// goes on with it.
//
// OWNERSHIP: a stream owns itself from Start() until gRPC is done with it.
// Signal() and Close() may be called from any thread; whatever calls them holds
// the stream meanwhile.
template <typename Request, typename Event>
class WatchStream
    : public grpc::ServerBidiReactor<BoundedRequest<Request>, Event> {
 public:
  // Hands the stream to gRPC. The request is read if the call `entered`; else
  // the client gets that status.
  void Start(std::shared_ptr<WatchStream> self,
             absl::StatusOr<std::unique_ptr<CallRoom::Stay>> entered) {
    self_ = std::move(self);
    if (!entered.ok()) return EndUnlocked(entered.status());
    stay_ = *std::move(entered);
    incoming_.stay = stay_.get();
    this->StartRead(&incoming_);
  }

  void OnReadDone(bool ok) final {
    // After Finish another thread may run OnDone before this one has returned.
    const std::shared_ptr<WatchStream> keep = self_;
    stay_ = nullptr;
    const absl::Status status =
        ok ? Prepare() : absl::CancelledError("no request came");
    if (!status.ok()) return EndUnlocked(status);
    Drive();
  }

  void OnWriteDone(bool ok) final {
    if (!ok) {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    Drive();
  }

  void OnCancel() final { Signal(&WatchStream::cancelled_); }

  void OnDone() final {
    Unsubscribe();
    // The context, which it would cancel, goes now.
    admitted_.open = nullptr;
    self_.reset();
  }

 protected:
  enum class Turn {
    kWrite,  // The event is to be written.
    kWait,   // There is nothing to write before the next Signal().
    kEnd,    // The stream ends well.
  };

  // `method` is the full name of the call that the stream answers.
  explicit WatchStream(const char* method) : incoming_(method) {}

  // Lets the call in. Called once, before anything below.
  virtual absl::StatusOr<AdmittedWatch> Admit() = 0;
  // Asks for news, for `project` and `self`. Called once; from then on Signal()
  // may come.
  virtual absl::Status Subscribe(const std::string& project,
                                 const std::shared_ptr<WatchStream>& self) = 0;
  virtual void Unsubscribe() = 0;
  // What to do now; fills `event`, which is empty, for kWrite. Called by one
  // thread at a time, after Subscribe() and after each Signal() and write.
  virtual absl::StatusOr<Turn> Next(Event* event) = 0;
  // What to do after the server has stopped, for the client.
  virtual std::string Advice() const = 0;

  const Request& request() const { return incoming_.message; }

  // Says that Next() has something new to see.
  void Signal() { Signal(&WatchStream::changed_); }
  // Ends the stream as soon as there is nothing to write: the server stops.
  void Close() { Signal(&WatchStream::closed_); }

 private:
  absl::Status Prepare() {
    OPTFARM_RETURN_IF_ERROR(incoming_.status);
    OPTFARM_ASSIGN_OR_RETURN(admitted_, Admit());
    return Subscribe(admitted_.project, self_);
  }

  // Sets a flag and drives, unless somebody does already.
  void Signal(bool WatchStream::*flag) {
    {
      absl::MutexLock lock(&mutex_);
      this->*flag = true;
      if (driving_) return;
      driving_ = true;
    }
    Drive();
  }

  // REQUIRES: the caller drives.
  void Drive() {
    // After Finish another thread may run OnDone before this one has returned.
    const std::shared_ptr<WatchStream> keep = self_;
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        if (finished_) return;
        if (cancelled_) return End(absl::CancelledError("the client left"));
        changed_ = false;
      }
      current_.Clear();
      const absl::StatusOr<Turn> turn = Next(&current_);
      if (!turn.ok()) return EndUnlocked(turn.status());
      if (*turn == Turn::kWrite) return this->StartWrite(&current_);
      if (*turn == Turn::kEnd) return EndUnlocked(absl::OkStatus());
      absl::MutexLock lock(&mutex_);
      if (changed_ || cancelled_) continue;
      if (closed_) {
        return End(absl::UnavailableError("the server stops; " + Advice()));
      }
      driving_ = false;
      return;
    }
  }

  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    this->Finish(CallDoor::Answer(status));
  }
  void EndUnlocked(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    End(status);
  }

  BoundedRequest<Request> incoming_;
  std::unique_ptr<CallRoom::Stay> stay_;
  AdmittedWatch admitted_;
  std::shared_ptr<WatchStream> self_;
  // Of the thread that drives.
  Event current_;

  absl::Mutex mutex_;
  bool driving_ ABSL_GUARDED_BY(mutex_) = true;
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_WATCH_STREAM_H_
