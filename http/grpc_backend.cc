#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "http/backend.h"
#include "rpc/status.h"

namespace optfarm::http {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string FromBuffer(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

void Prepare(const BackendCall& call, grpc::ClientContext& context) {
  for (const auto& [name, value] : call.metadata) {
    context.AddMetadata(name, value);
  }
  if (call.limit < absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + call.limit));
  }
}

class GrpcStream final
    : public BackendStream,
      public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  GrpcStream(grpc::GenericStub& stub, const BackendCall& call) {
    Prepare(call, context_);
    stub.PrepareBidiStreamingCall(&context_, call.rpc, grpc::StubOptions(),
                                  this);
    // Without it the call may be over, and gone, between two operations.
    AddHold();
    StartCall();
  }
  ~GrpcStream() override {
    context_.TryCancel();
    Release();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&done_));
  }

  bool Write(const std::string& message) override {
    out_ = ToBuffer(message);
    {
      absl::MutexLock lock(&mutex_);
      writing_ = true;
    }
    StartWrite(&out_);
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](GrpcStream* self)
             ABSL_NO_THREAD_SAFETY_ANALYSIS { return !self->writing_; },
        this));
    return write_ok_;
  }

  void WritesDone() override { StartWritesDone(); }

  ReadResult Read(absl::Duration wait, std::string* message) override {
    bool start;
    {
      absl::MutexLock lock(&mutex_);
      if (read_ended_) return ReadResult::kEnd;
      start = !std::exchange(reading_, true);
      if (start) read_done_ = false;
    }
    if (start) StartRead(&in_);
    absl::MutexLock lock(&mutex_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(&read_done_), wait)) {
      return ReadResult::kNothingYet;
    }
    reading_ = false;
    if (read_ended_) return ReadResult::kEnd;
    *message = FromBuffer(in_);
    return ReadResult::kMessage;
  }

  absl::Status Finish() override {
    // The end is seen by reading to it.
    std::string ignored;
    while (Read(absl::InfiniteDuration(), &ignored) == ReadResult::kMessage) {
    }
    Release();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&done_));
    return rpc::FromGrpc(status_);
  }

  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    read_done_ = true;
    if (!ok) read_ended_ = true;
  }
  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    write_ok_ = ok;
  }
  void OnDone(const grpc::Status& status) override {
    absl::MutexLock lock(&mutex_);
    status_ = status;
    done_ = true;
  }

 private:
  // Nothing more will be started.
  void Release() {
    if (std::exchange(held_, false)) RemoveHold();
  }

  grpc::ClientContext context_;
  bool held_ = true;
  // Of the reader's and the writer's operation under way.
  grpc::ByteBuffer in_, out_;
  absl::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_done_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool write_ok_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

class GrpcBackend final : public Backend {
 public:
  explicit GrpcBackend(std::shared_ptr<grpc::Channel> channel)
      : stub_(std::move(channel)) {}

  absl::StatusOr<std::string> Unary(const BackendCall& call,
                                    const std::string& request) override {
    grpc::ClientContext context;
    Prepare(call, context);
    const grpc::ByteBuffer out = ToBuffer(request);
    grpc::ByteBuffer in;
    grpc::Status status;
    absl::Notification done;
    stub_.UnaryCall(&context, call.rpc, grpc::StubOptions(), &out, &in,
                    [&](grpc::Status outcome) {
                      status = std::move(outcome);
                      done.Notify();
                    });
    done.WaitForNotification();
    if (!status.ok()) return rpc::FromGrpc(status);
    return FromBuffer(in);
  }

  std::unique_ptr<BackendStream> Open(const BackendCall& call) override {
    return std::make_unique<GrpcStream>(stub_, call);
  }

 private:
  grpc::GenericStub stub_;
};

}  // namespace

std::unique_ptr<Backend> MakeGrpcBackend(
    std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<GrpcBackend>(std::move(channel));
}

}  // namespace optfarm::http
