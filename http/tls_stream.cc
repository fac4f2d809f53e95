#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "http/byte_stream.h"

namespace optfarm::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr uint64_t kMaxPemBytes = 1 << 20;

// A ByteStream as Asio's TLS wants what is below it.
class LowerLayer {
 public:
  using lowest_layer_type = LowerLayer;
  using executor_type = asio::io_context::executor_type;

  LowerLayer(std::unique_ptr<ByteStream> stream, asio::io_context& context)
      : stream_(std::move(stream)), context_(context) {}

  executor_type get_executor() { return context_.get_executor(); }
  lowest_layer_type& lowest_layer() { return *this; }
  ByteStream& stream() const { return *stream_; }
  void SetDeadline(absl::Time deadline) { deadline_ = deadline; }
  // Of the last call that failed.
  const absl::Status& status() const { return status_; }

  template <typename Buffers>
  size_t read_some(const Buffers& buffers, error_code& error) {
    const asio::mutable_buffer buffer = *asio::buffer_sequence_begin(buffers);
    const absl::StatusOr<size_t> read = stream_->Read(
        static_cast<char*>(buffer.data()), buffer.size(), deadline_);
    if (read.ok() && *read > 0) {
      error = {};
      return *read;
    }
    if (!read.ok()) status_ = read.status();
    error = asio::error::eof;
    return 0;
  }

  template <typename Buffers>
  size_t write_some(const Buffers& buffers, error_code& error) {
    const asio::const_buffer buffer = *asio::buffer_sequence_begin(buffers);
    status_ = stream_->Write(
        {static_cast<const char*>(buffer.data()), buffer.size()}, deadline_);
    error = status_.ok() ? error_code() : asio::error::broken_pipe;
    return status_.ok() ? buffer.size() : 0;
  }

 private:
  std::unique_ptr<ByteStream> stream_;
  asio::io_context& context_;
  absl::Time deadline_ = absl::InfiniteFuture();
  absl::Status status_;
};

class TlsStream final : public ByteStream {
 public:
  using Side = asio::ssl::stream_base::handshake_type;

  TlsStream(int fd, asio::ssl::context& context, Side side)
      : side_(side), tls_(LowerLayer(MakeSocketStream(fd), io_), context) {}

  // As a client: the name that the certificate must be for.
  void Expect(const std::string& host) {
    SSL_set_tlsext_host_name(tls_.native_handle(), host.c_str());
    error_code ignored;
    tls_.set_verify_mode(asio::ssl::verify_peer, ignored);
    tls_.set_verify_callback(asio::ssl::host_name_verification(host), ignored);
  }

  absl::StatusOr<size_t> Read(char* buffer, size_t size,
                              absl::Time deadline) override {
    OPTFARM_RETURN_IF_ERROR(Prepare(deadline));
    error_code error;
    const size_t read = tls_.read_some(asio::buffer(buffer, size), error);
    if (read > 0) return read;
    // An end that TLS did not announce may be an attacker's.
    if (error == asio::error::eof && lower().status().ok()) return size_t{0};
    return ToStatus(error, "reading from a TLS connection");
  }

  absl::Status Write(absl::string_view bytes, absl::Time deadline) override {
    OPTFARM_RETURN_IF_ERROR(Prepare(deadline));
    error_code error;
    while (!bytes.empty()) {
      const size_t written =
          tls_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
      if (error) return ToStatus(error, "writing to a TLS connection");
      bytes.remove_prefix(written);
    }
    return absl::OkStatus();
  }

  bool PeerGone() override { return lower().stream().PeerGone(); }
  std::string Peer() const override {
    return tls_.next_layer().stream().Peer();
  }
  bool PeerCertified() const override {
    // As OpenSSL's own handle, which is never const.
    SSL* const ssl = const_cast<TlsStream*>(this)->tls_.native_handle();
    return shaken_ && SSL_get0_peer_certificate(ssl) != nullptr &&
           SSL_get_verify_result(ssl) == X509_V_OK;
  }
  void CloseWrite() override { lower().stream().CloseWrite(); }

 private:
  LowerLayer& lower() { return tls_.next_layer(); }

  // Sets the deadline, and shakes hands before anything else.
  absl::Status Prepare(absl::Time deadline) {
    lower().SetDeadline(deadline);
    if (shaken_) return absl::OkStatus();
    error_code error;
    tls_.handshake(side_, error);
    OPTFARM_RETURN_IF_ERROR(ToStatus(error, "shaking hands for TLS"));
    shaken_ = true;
    return absl::OkStatus();
  }

  absl::Status ToStatus(const error_code& error, absl::string_view doing) {
    if (!error) return absl::OkStatus();
    if (!lower().status().ok()) return lower().status();
    return absl::UnavailableError(absl::StrCat(doing, ": ", error.message()));
  }

  const Side side_;
  // Never runs: everything here is synchronous.
  asio::io_context io_{1};
  asio::ssl::stream<LowerLayer> tls_;
  bool shaken_ = false;
};

absl::StatusOr<std::string> ReadPem(const std::string& path,
                                    absl::string_view what) {
  absl::StatusOr<std::string> pem = ReadFile(path, kMaxPemBytes);
  if (!pem.ok()) {
    return Annotate(pem.status(), absl::StrCat("reading ", what));
  }
  return pem;
}

absl::Status Check(const error_code& error, absl::string_view what,
                   const std::string& path) {
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("using ", what, " '", path, "': ", error.message()));
}

class AsioTlsContext final : public TlsContext {
 public:
  absl::Status Load(const TlsFiles& files) {
    error_code error;
    context_.set_options(
        asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
            asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
            asio::ssl::context::no_tlsv1_1,
        error);
    OPTFARM_RETURN_IF_ERROR(Check(error, "TLS options", ""));
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string certificate,
        ReadPem(files.certificate, "the server's certificate"));
    OPTFARM_ASSIGN_OR_RETURN(const std::string key,
                             ReadPem(files.key, "the server's key"));
    context_.use_certificate_chain(asio::buffer(certificate), error);
    OPTFARM_RETURN_IF_ERROR(Check(error, "the certificate", files.certificate));
    context_.use_private_key(asio::buffer(key), asio::ssl::context::pem, error);
    OPTFARM_RETURN_IF_ERROR(Check(error, "the key", files.key));
    // Without it OpenSSL refuses clients that take an earlier session up again
    // where certificates are asked for.
    constexpr unsigned char kSessions[] = "optfarm";
    SSL_CTX_set_session_id_context(context_.native_handle(), kSessions,
                                   sizeof(kSessions) - 1);
    if (files.client_ca.empty()) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string ca,
        ReadPem(files.client_ca, "the authority of client certificates"));
    context_.add_certificate_authority(asio::buffer(ca), error);
    OPTFARM_RETURN_IF_ERROR(Check(error, "the authority", files.client_ca));
    // Who brings a certificate brings a good one; nobody has to.
    context_.set_verify_mode(asio::ssl::verify_peer, error);
    return Check(error, "the authority", files.client_ca);
  }

  std::unique_ptr<ByteStream> Accept(int fd) override {
    return std::make_unique<TlsStream>(fd, context_,
                                       asio::ssl::stream_base::server);
  }

 private:
  asio::ssl::context context_{asio::ssl::context::tls_server};
};

// With the authorities that the system trusts.
asio::ssl::context& ClientContext() {
  static auto& context = *[] {
    auto* made = new asio::ssl::context(asio::ssl::context::tls_client);
    error_code ignored;
    made->set_default_verify_paths(ignored);
    return made;
  }();
  return context;
}

}  // namespace

std::unique_ptr<ByteStream> MakeTlsClientStream(int fd,
                                                const std::string& host) {
  auto stream = std::make_unique<TlsStream>(fd, ClientContext(),
                                            asio::ssl::stream_base::client);
  stream->Expect(host);
  return stream;
}

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Make(
    const TlsFiles& files) {
  auto context = std::make_unique<AsioTlsContext>();
  OPTFARM_RETURN_IF_ERROR(context->Load(files));
  return context;
}

}  // namespace optfarm::http
