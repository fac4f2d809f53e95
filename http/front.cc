#include "http/front.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <system_error>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "http/connection_table.h"
#include "http/peer_address.h"

namespace optfarm::http {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Why there may be no connection now, and how long nobody else is tried.
constexpr absl::Duration kPauseWithoutFiles = absl::Milliseconds(50);

// What the connections' threads share; lives as long as the last of them.
struct Shared {
  std::unique_ptr<ServiceMap> services;
  // Empty: no TLS.
  TlsFiles tls_files;
  // Replaced as a whole; each connection keeps the one it began with.
  std::shared_ptr<TlsContext> tls ABSL_GUARDED_BY(mutex);
  // Of connections that live.
  std::unique_ptr<ConnectionTable> table;
  absl::Mutex mutex;
  int threads ABSL_GUARDED_BY(mutex) = 0;
  bool draining ABSL_GUARDED_BY(mutex) = false;

  bool Draining() {
    absl::MutexLock lock(&mutex);
    return draining;
  }
  std::shared_ptr<TlsContext> Tls() {
    absl::MutexLock lock(&mutex);
    return tls;
  }
  absl::Status LoadTls() {
    OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> loaded,
                             TlsContext::Make(tls_files));
    absl::MutexLock lock(&mutex);
    tls = std::move(loaded);
    return absl::OkStatus();
  }
  void ShutSockets(int how) {
    table->ForEach([how](int socket) { ::shutdown(socket, how); });
  }
};

// From accept to close; runs in a thread of its own.
void ServeSocket(const std::shared_ptr<Shared>& shared, int socket,
                 bool health_only) {
  // It may have come between the last look and now.
  if (shared->Draining()) ::shutdown(socket, SHUT_RD);
  ConnectionHooks hooks;
  hooks.stop = [&shared] { return shared->Draining(); };
  hooks.note_busy = [&shared, socket](bool busy) {
    shared->table->SetBusy(socket, busy);
  };
  hooks.health_only = health_only;
  const std::shared_ptr<TlsContext> tls = shared->Tls();
  std::unique_ptr<ByteStream> stream =
      tls == nullptr ? MakeSocketStream(socket) : tls->Accept(socket);
  ServeConnection(*stream, *shared->services, hooks);
  // Before it is closed and its number becomes somebody else's.
  shared->table->Leave(socket);
  stream = nullptr;
  absl::MutexLock lock(&shared->mutex);
  --shared->threads;
}

absl::Status Unavailable(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("listening on ", address, ": ",
                                             why, "; give another --http"));
}

class FrontImpl final : public Front {
 public:
  explicit FrontImpl(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), wake_(::eventfd(0, EFD_CLOEXEC)) {}
  ~FrontImpl() override {
    Stop(absl::ZeroDuration());
    ::close(wake_);
  }

  absl::Status Listen(const std::string& address) {
    const size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    const std::string port = address.substr(colon + 1);
    if (host.size() > 2 && host.front() == '[') {
      host = host.substr(1, host.size() - 2);
    }
    error_code error;
    tcp::resolver resolver(context_);
    const auto found = resolver.resolve(
        host, port, tcp::resolver::passive | tcp::resolver::numeric_service,
        error);
    if (error || found.empty()) return Unavailable(address, error.message());
    const tcp::endpoint endpoint = *found.begin();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(1024, error);
    if (!error) acceptor_.non_blocking(true, error);
    if (error) return Unavailable(address, error.message());
    const int port_taken = acceptor_.local_endpoint(error).port();
    if (error || wake_ < 0) return Unavailable(address, "out of resources");
    address_ = absl::StrCat(address.substr(0, colon), ":", port_taken);
    thread_ = std::thread([this] { AcceptAll(); });
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  absl::Status ReloadTls() override {
    if (!shared_->tls_files.certificate.empty()) return shared_->LoadTls();
    return absl::FailedPreconditionError("the HTTP door speaks no TLS");
  }

  void Drain() override {
    {
      absl::MutexLock lock(&shared_->mutex);
      shared_->draining = true;
    }
    const uint64_t one = 1;
    if (::write(wake_, &one, sizeof(one)) < 0) LogError("waking the HTTP door");
    absl::MutexLock lock(&join_mutex_);
    if (thread_.joinable()) thread_.join();
    error_code ignored;
    acceptor_.close(ignored);
    // Who waits for a request sees the end of all requests.
    shared_->ShutSockets(SHUT_RD);
  }

  void Stop(absl::Duration grace) override {
    Drain();
    const auto none = +[](int* threads) { return *threads == 0; };
    {
      absl::MutexLock lock(&shared_->mutex);
      shared_->mutex.AwaitWithTimeout(absl::Condition(none, &shared_->threads),
                                      grace);
    }
    shared_->ShutSockets(SHUT_RDWR);
    absl::MutexLock lock(&shared_->mutex);
    shared_->mutex.Await(absl::Condition(none, &shared_->threads));
  }

 private:
  void AcceptAll() {
    while (true) {
      pollfd waited[2] = {{acceptor_.native_handle(), POLLIN, 0},
                          {wake_, POLLIN, 0}};
      ::poll(waited, 2, -1);
      if (shared_->Draining()) return;
      sockaddr_storage address = {};
      socklen_t length = sizeof(address);
      const int socket = ::accept4(acceptor_.native_handle(),
                                   reinterpret_cast<sockaddr*>(&address),
                                   &length, SOCK_CLOEXEC);
      if (socket >= 0) {
        Begin(socket, PeerOf(address));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        // Asking again at once would only burn the processor.
        absl::SleepFor(kPauseWithoutFiles);
      }
    }
  }

  void Begin(int socket, const std::string& peer) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const ConnectionTable::Place place = shared_->table->Enter(socket, peer);
    if (place == ConnectionTable::Place::kNone) return TurnAway(socket);
    {
      absl::MutexLock lock(&shared_->mutex);
      ++shared_->threads;
    }
    try {
      std::thread(ServeSocket, shared_, socket,
                  place == ConnectionTable::Place::kHealthOnly)
          .detach();
    } catch (const std::system_error&) {
      shared_->table->Leave(socket);
      absl::MutexLock lock(&shared_->mutex);
      --shared_->threads;
      ::close(socket);
    }
  }

  // Says so as far as it can be said without waiting.
  void TurnAway(int socket) {
    if (shared_->tls_files.certificate.empty()) {
      static constexpr absl::string_view kFull =
          "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
          "Content-Length: 0\r\nConnection: close\r\n\r\n";
      if (::send(socket, kFull.data(), kFull.size(),
                 MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        LogDebug("a connection over the limit was gone");
      }
    }
    ::close(socket);
  }

  const std::shared_ptr<Shared> shared_;
  boost::asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  std::string address_;
  const int wake_;
  absl::Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Front>> Front::Start(
    const FrontOptions& options, std::unique_ptr<ServiceMap> services) {
  auto shared = std::make_shared<Shared>();
  shared->services = std::move(services);
  const Limits& limits = shared->services->limits;
  ConnectionTable::Options table;
  table.max_connections = limits.max_connections;
  table.max_per_peer = limits.max_peer_connections;
  // Who waits there sees the end of all requests.
  shared->table = std::make_unique<ConnectionTable>(
      table, [](int socket) { ::shutdown(socket, SHUT_RDWR); });
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    return absl::InvalidArgumentError(
        "TLS needs a certificate and its key; only one of the two was given");
  }
  if (!options.tls.certificate.empty()) {
    shared->tls_files = options.tls;
    OPTFARM_RETURN_IF_ERROR(shared->LoadTls());
  }
  auto front = std::make_unique<FrontImpl>(std::move(shared));
  OPTFARM_RETURN_IF_ERROR(front->Listen(options.address));
  return front;
}

}  // namespace optfarm::http
