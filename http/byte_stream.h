// A connection as this room sees it: bytes with deadlines. A socket, a socket
// with TLS, or in tests a string.

#ifndef OPTFARM_HTTP_BYTE_STREAM_H_
#define OPTFARM_HTTP_BYTE_STREAM_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optfarm::http {

// THREADS: one at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Waits for bytes and returns how many came; 0: the peer sends no more.
  // ERRORS: DeadlineExceeded; Unavailable when the connection broke.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size,
                                      absl::Time deadline) = 0;
  // Sends all of it. ERRORS: as Read.
  virtual absl::Status Write(absl::string_view bytes, absl::Time deadline) = 0;
  // The peer has closed its side or the connection, as far as is known.
  virtual bool PeerGone() = 0;
  // Says that nothing more will be sent.
  virtual void CloseWrite() = 0;
  // Address of the other side, for people; empty when there is none.
  virtual std::string Peer() const { return ""; }
  // The other side has shown a certificate, and it was accepted.
  virtual bool PeerCertified() const { return false; }
};

// OWNERSHIP: takes over the connected socket.
std::unique_ptr<ByteStream> MakeSocketStream(int fd);

// The other side of TLS: a connection to `host`, whose certificate must be for
// that name and signed by an authority that this system trusts.
// OWNERSHIP: takes over the connected socket.
std::unique_ptr<ByteStream> MakeTlsClientStream(int fd,
                                                const std::string& host);

// Waits until a socket is connected or can be written to. ERRORS: as Read.
absl::Status AwaitWritable(int fd, absl::Time deadline);

// Certificates of the server, and of the clients if they are asked for one.
struct TlsFiles {
  // PEM: the certificate with its chain, and its key. Both or neither.
  std::string certificate;
  std::string key;
  // PEM: who signs the certificates of clients; empty: none is asked for.
  std::string client_ca;
};

// What connections with TLS have in common. THREADS: safe.
class TlsContext {
 public:
  // ERRORS: those of reading; InvalidArgument for what is no PEM, or a key that
  // does not belong to the certificate.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(
      const TlsFiles& files);
  virtual ~TlsContext() = default;

  // A stream that shakes hands when it is first used, within the deadline of
  // that use. OWNERSHIP: takes over the socket; outlives the stream.
  virtual std::unique_ptr<ByteStream> Accept(int fd) = 0;

 protected:
  TlsContext() = default;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_BYTE_STREAM_H_
