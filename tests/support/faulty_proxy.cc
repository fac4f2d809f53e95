#include "tests/support/faulty_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"

namespace optfarm::testing {
namespace {

constexpr char kHeadEnd[] = "\r\n\r\n";

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Adds what comes; false at the end.
bool Receive(int fd, std::string& bytes) {
  char buffer[64 << 10];
  const ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
  if (got <= 0) return false;
  bytes.append(buffer, static_cast<size_t>(got));
  return true;
}

void SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// The value of a header in lower case, empty where there is none.
std::string HeaderOf(absl::string_view head, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(head, "\r\n")) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    if (absl::EqualsIgnoreCase(line.substr(0, colon), name)) {
      return absl::AsciiStrToLower(
          absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
  }
  return "";
}

// The head without a header, and with one that ends the connection.
std::string ForwardedHead(absl::string_view head) {
  std::string forwarded;
  for (const absl::string_view line : absl::StrSplit(head, "\r\n")) {
    if (absl::StartsWithIgnoreCase(line, "expect:") || line.empty()) continue;
    absl::StrAppend(&forwarded, line, "\r\n");
  }
  return absl::StrCat(forwarded, "Connection: close\r\n\r\n");
}

std::string Refusal(absl::string_view status, absl::string_view code) {
  const std::string body =
      absl::StrCat("<?xml version=\"1.0\"?><Error><Code>", code,
                   "</Code><Message>a fault of the test</Message></Error>");
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Length: ", body.size(),
                      "\r\nConnection: close\r\n\r\n", body);
}

// The answer with another digit in its ETag.
std::string WithWrongEtag(std::string answer) {
  const size_t end = answer.find(kHeadEnd);
  const size_t etag =
      absl::AsciiStrToLower(answer.substr(0, end)).find("\r\netag:");
  if (etag == std::string::npos) return answer;
  const size_t quote = answer.find('"', etag);
  if (quote > end) return answer;
  char& digit = answer[quote + 1];
  digit = digit == '0' ? '1' : '0';
  return answer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FaultyProxy>> FaultyProxy::Start(
    int server_port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (listener < 0 ||
      bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 64) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) !=
          0) {
    return ErrnoToStatus(errno, "listening");
  }
  return std::unique_ptr<FaultyProxy>(
      new FaultyProxy(listener, ntohs(address.sin_port), server_port));
}

FaultyProxy::FaultyProxy(int listener, int port, int server_port)
    : listener_(listener),
      port_(port),
      server_port_(server_port),
      acceptor_([this] { Accept(); }) {}

FaultyProxy::~FaultyProxy() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  std::vector<std::thread> handlers;
  {
    absl::MutexLock lock(&mutex_);
    handlers = std::move(handlers_);
  }
  for (std::thread& handler : handlers) handler.join();
}

std::string FaultyProxy::endpoint() const {
  return absl::StrCat("http://127.0.0.1:", port_);
}

void FaultyProxy::Break(Fault fault, int first, int count) {
  absl::MutexLock lock(&mutex_);
  fault_ = fault;
  first_ = first;
  count_ = count;
  requests_ = 0;
}

int FaultyProxy::requests() {
  absl::MutexLock lock(&mutex_);
  return requests_;
}

Fault FaultyProxy::NextFault() {
  absl::MutexLock lock(&mutex_);
  const int number = requests_++;
  return number >= first_ && number - first_ < count_ ? fault_ : Fault::kNone;
}

void FaultyProxy::Accept() {
  while (!stopping_) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    absl::MutexLock lock(&mutex_);
    handlers_.emplace_back([this, client] {
      Handle(client);
      close(client);
    });
  }
}

std::string FaultyProxy::Ask(const std::string& head, const std::string& body) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(server_port_);
  std::string answer;
  if (connect(server, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0) {
    SendAll(server, head);
    SendAll(server, body);
    while (Receive(server, answer)) {
    }
  }
  close(server);
  return answer;
}

void FaultyProxy::Handle(int client) {
  std::string received;
  size_t end = std::string::npos;
  while ((end = received.find(kHeadEnd)) == std::string::npos) {
    if (!Receive(client, received)) return;
  }
  const std::string head = received.substr(0, end);
  std::string body = received.substr(end + sizeof(kHeadEnd) - 1);
  const Fault fault = NextFault();
  if (fault == Fault::kCutAtHead) return;
  if (HeaderOf(head, "expect") == "100-continue") {
    SendAll(client, "HTTP/1.1 100 Continue\r\n\r\n");
  }
  size_t length = 0;
  if (!absl::SimpleAtoi(HeaderOf(head, "content-length"), &length)) length = 0;
  if (fault == Fault::kCutInBody) length /= 2;
  while (body.size() < length) {
    if (!Receive(client, body)) return;
  }
  if (fault == Fault::kCutInBody) return;
  if (fault == Fault::kStatus500) {
    return SendAll(client,
                   Refusal("500 Internal Server Error", "InternalError"));
  }
  if (fault == Fault::kSlowDown) {
    return SendAll(client, Refusal("503 Slow Down", "SlowDown"));
  }
  if (fault == Fault::kStall) {
    // Until the client gives up.
    pollfd waiting = {client, POLLIN | POLLRDHUP, 0};
    while (!stopping_ && poll(&waiting, 1, 100) == 0) {
    }
    return;
  }
  std::string answer = Ask(ForwardedHead(head), body);
  if (fault == Fault::kCutBeforeAnswer) return;
  if (fault == Fault::kCutInAnswer) answer.resize(answer.size() / 2);
  if (fault == Fault::kWrongEtag) answer = WithWrongEtag(std::move(answer));
  SendAll(client, answer);
}

}  // namespace optfarm::testing
