// A connection whose client is a string, and a backend that answers without a
// server: what the parts of http/ are tested with.

#ifndef OPTFARM_TESTS_HTTP_MEMORY_STREAM_H_
#define OPTFARM_TESTS_HTTP_MEMORY_STREAM_H_

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/backend.h"
#include "http/byte_stream.h"

namespace optfarm::http {

// Gives the client's bytes in pieces of `piece` bytes and then an end, or, with
// `quiet`, nothing until the deadline, which it does not wait for.
class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::string in, size_t piece = 1 << 20,
                        bool quiet = false)
      : in_(std::move(in)), piece_(piece), quiet_(quiet) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size,
                              absl::Time deadline) override {
    const size_t count = std::min({size, piece_, in_.size() - at_});
    if (count == 0 && quiet_) {
      return absl::DeadlineExceededError("the test's client is quiet");
    }
    std::memcpy(buffer, in_.data() + at_, count);
    at_ += count;
    return count;
  }
  absl::Status Write(absl::string_view bytes, absl::Time deadline) override {
    out_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  bool PeerGone() override { return at_ == in_.size(); }
  void CloseWrite() override {}

  const std::string& out() const { return out_; }

 private:
  const std::string in_;
  const size_t piece_;
  const bool quiet_;
  size_t at_ = 0;
  std::string out_;
};

// Answers every call with the same messages and status, and keeps what was
// asked.
class FakeBackend final : public Backend {
 public:
  struct Call {
    BackendCall call;
    std::vector<std::string> messages;
  };

  absl::StatusOr<std::string> Unary(const BackendCall& call,
                                    const std::string& request) override {
    calls.push_back({call, {request}});
    if (!status.ok()) return status;
    return answers.empty() ? std::string() : answers.front();
  }
  std::unique_ptr<BackendStream> Open(const BackendCall& call) override {
    calls.push_back({call, {}});
    return std::make_unique<Stream>(*this, calls.size() - 1);
  }

  std::vector<std::string> answers;
  absl::Status status;
  std::deque<Call> calls;

 private:
  class Stream final : public BackendStream {
   public:
    Stream(FakeBackend& backend, size_t call)
        : backend_(backend), call_(call) {}
    bool Write(const std::string& message) override {
      backend_.calls[call_].messages.push_back(message);
      return true;
    }
    void WritesDone() override {}
    ReadResult Read(absl::Duration wait, std::string* message) override {
      if (next_ == backend_.answers.size()) return ReadResult::kEnd;
      *message = backend_.answers[next_++];
      return ReadResult::kMessage;
    }
    absl::Status Finish() override { return backend_.status; }

   private:
    FakeBackend& backend_;
    const size_t call_;
    size_t next_ = 0;
  };
};

}  // namespace optfarm::http

#endif  // OPTFARM_TESTS_HTTP_MEMORY_STREAM_H_
