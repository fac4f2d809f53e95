// Answers on their way out: whole ones, and streams of pieces.

#ifndef OPTFARM_HTTP_REPLY_WRITER_H_
#define OPTFARM_HTTP_REPLY_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "http/byte_stream.h"
#include "http/message.h"

namespace optfarm::http {

// Of one request. THREADS: one at a time. OWNERSHIP: the stream outlives it.
// ERRORS: of all methods: those of ByteStream::Write.
class ReplyWriter {
 public:
  struct Options {
    absl::Duration write_time = absl::Seconds(60);
    // The request was a HEAD: bodies are left out.
    bool head_only = false;
    // The connection stays open.
    bool keep_alive = true;
    // The client cannot read chunks.
    bool old_version = false;
  };

  ReplyWriter(ByteStream& stream, Options options)
      : stream_(stream), options_(options) {}

  // "100 Continue".
  absl::Status Continue();

  absl::Status Send(const Reply& reply);

  // Begins an answer whose body follows by SendPiece; its length is
  // `body_bytes`, or chunked when that is negative. `head.body` is ignored.
  absl::Status Begin(const Reply& head, int64_t body_bytes);
  absl::Status SendPiece(absl::string_view piece);
  absl::Status End();

  // The next answer says that the connection ends, and it must.
  void DoNotKeepAlive() { options_.keep_alive = false; }
  bool keep_alive() const { return options_.keep_alive; }
  bool head_only() const { return options_.head_only; }
  // Something was sent; an error can no longer be an answer of its own.
  bool begun() const { return begun_; }

 private:
  absl::Status Write(absl::string_view bytes);
  std::string Head(const Reply& reply, int64_t body_bytes);

  ByteStream& stream_;
  Options options_;
  bool begun_ = false;
  bool chunked_ = false;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_REPLY_WRITER_H_
