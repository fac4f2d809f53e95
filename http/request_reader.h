// One connection's requests, read within limits: heads and bodies, one after
// the other, whether they come in one packet or byte by byte.

#ifndef OPTFARM_HTTP_REQUEST_READER_H_
#define OPTFARM_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/byte_stream.h"
#include "http/message.h"

namespace optfarm::http {

struct Limits {
  // UNITS: connections at once, all together.
  int max_connections = 512;
  // UNITS: connections at once of one address, of one IPv6 network of 64 bits.
  int max_peer_connections = 256;
  // UNITS: bytes of a request's line and headers, and of a JSON body.
  size_t max_head_bytes = 16 << 10;
  size_t max_json_bytes = 16 << 20;
  // UNITS: bytes of a file, all its parts together.
  int64_t max_file_bytes = std::numeric_limits<int64_t>::max();
  // From a request's first byte to the end of its head; also the handshake.
  absl::Duration head_time = absl::Seconds(10);
  // Waiting for a request on a connection that has had one.
  absl::Duration idle_time = absl::Seconds(60);
  // A whole JSON body; a mebibyte of a file.
  absl::Duration body_time = absl::Seconds(60);
  // Nothing can be sent because the client does not read.
  absl::Duration write_time = absl::Seconds(60);
  // A call that answers with one message.
  absl::Duration call_time = absl::Seconds(60);
  // A stream of events says at least this often that it is alive.
  absl::Duration ping_interval = absl::Seconds(15);
};

// Why there is no request, and the HTTP status to say so; 0: say nothing, the
// client has gone.
struct ReadFailure {
  int http_status = 0;
  absl::Status status;
};

// THREADS: one at a time.
class RequestReader {
 public:
  // OWNERSHIP: the stream outlives the reader.
  RequestReader(ByteStream& stream, const Limits& limits);
  ~RequestReader();

  // Reads the next request's head. REQUIRES: the body before was read whole.
  // False: there is none; see failure().
  bool ReadHead(RequestHead* head);

  // The client waits for "100 Continue" before it sends the body.
  bool ExpectsContinue() const;
  // The connection may stay open after this request.
  bool KeepAlive() const;
  // HTTP/1.0: no chunks may be sent.
  bool IsOldVersion() const;

  // Reads the body whole. False: failure() says why.
  bool ReadBody(size_t max_bytes, std::string* body);

  // Reads up to `max_bytes` more of the body; an empty piece is its end.
  // False: failure() says why.
  bool ReadPiece(size_t max_bytes, std::string* piece);

  bool BodyDone() const;
  const ReadFailure& failure() const { return failure_; }

 private:
  struct Parsers;

  bool Fill(absl::Time deadline);
  bool Fail(int http_status, const absl::Status& status);
  bool FailBody(size_t max_bytes);

  ByteStream& stream_;
  const Limits& limits_;
  const std::unique_ptr<Parsers> parsers_;
  ReadFailure failure_;
  bool first_ = true;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_REQUEST_READER_H_
