#include "rpc/held_connection.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/slice.h>

#include <utility>

#include "absl/synchronization/notification.h"

namespace optfarm::rpc {
namespace {

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

}  // namespace

class HeldConnection::Call final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Call(std::shared_ptr<grpc::Channel> channel)
      : stub_(std::move(channel)) {
    stub_.PrepareBidiStreamingCall(&context_, kWatch, grpc::StubOptions(),
                                   this);
    // A message without fields asks for the server as a whole.
    StartWriteLast(&question_, grpc::WriteOptions());
    StartRead(&answer_);
    StartCall();
  }

  ~Call() override {
    context_.TryCancel();
    done_.WaitForNotification();
  }

  void OnReadDone(bool ok) override {
    if (ok) StartRead(&answer_);
  }
  void OnDone(const grpc::Status& /*status*/) override { done_.Notify(); }

 private:
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  grpc::Slice nothing_;
  grpc::ByteBuffer question_{&nothing_, 1};
  grpc::ByteBuffer answer_;
  absl::Notification done_;
};

HeldConnection::HeldConnection(std::shared_ptr<grpc::Channel> channel)
    : call_(std::make_unique<Call>(std::move(channel))) {}

HeldConnection::~HeldConnection() = default;

}  // namespace optfarm::rpc
