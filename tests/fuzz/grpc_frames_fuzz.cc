// The gRPC door: frames of HTTP/2 as anybody on the network may send them, over
// TCP to a real server that asks for a token. messages_fuzz has what is in
// them. An input begins with a byte whose bits say
//
//   1   the connection's preface and first settings are left out
//   2   the connection is reset in the end, and not closed
//
// and goes on with a row of frames, whose headers get the right length:
//
//   type, flags, stream   one byte each; type 255 stands for bytes that are
//                         sent as they are
//   length                two bytes, little endian
//   payload               as many bytes
//
// Whatever came, the server answers others, gives back each connection, and
// ends.

#include <arpa/inet.h>
#include <dirent.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/files.h"
#include "base/log.h"
#include "optfarm/v1/jobs.grpc.pb.h"
#include "server/server.h"
#include "tests/fuzz/server_fuzzer.h"

namespace optfarm {
namespace {

constexpr size_t kMostFrames = 64;
constexpr uint8_t kRaw = 255;
constexpr char kMemory[] = "/dev/shm";
constexpr char kToken[] = "fuzz";
// Every call is done long before, also where everything is instrumented.
constexpr std::chrono::seconds kPatience(10);
// How long the server may have nothing to say to frames that it has read.
constexpr int kSilenceMilliseconds = 5;
// The same where it may wait for the rest of a frame.
constexpr int kUnansweredMilliseconds = 30;
constexpr int kInputsBetweenChecks = 64;
constexpr int kMostOpenFiles = 64;

std::string Frame(uint8_t type, uint8_t flags, uint8_t stream,
                  absl::string_view payload) {
  const auto byte = [](size_t value) { return static_cast<char>(value & 255); };
  const size_t size = payload.size();
  return absl::StrCat(
      std::string{byte(size >> 16), byte(size >> 8), byte(size), byte(type),
                  byte(flags), 0, 0, 0, byte(stream)},
      payload);
}

// Frames in the order in which they come, then a ping, whose answer says that
// all before were read.
constexpr absl::string_view kLastPing = "the end.";

std::string BytesOf(absl::string_view input, uint8_t mode) {
  std::string bytes;
  if ((mode & 1) == 0) {
    bytes =
        absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(4, 0, 0, ""));
  }
  for (size_t i = 0; i < kMostFrames && input.size() >= 5; ++i) {
    const auto byte = [&](size_t at) {
      return static_cast<uint8_t>(input[at]);
    };
    const size_t length = byte(3) + size_t{256} * byte(4);
    const absl::string_view payload = input.substr(5, length);
    absl::StrAppend(&bytes, byte(0) == kRaw
                                ? std::string(payload)
                                : Frame(byte(0), byte(1), byte(2), payload));
    input.remove_prefix(5 + payload.size());
  }
  return absl::StrCat(bytes, Frame(6, 0, 0, kLastPing));
}

int OpenFiles() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  OPTFARM_CHECK(folder != nullptr);
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

struct Farm {
  Farm() {
    SetUpLog("fuzz", LogLevel::kError);
    // As the server does; gRPC would tell of each wrong frame.
    ::setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
    auto made = MakeTemporaryFolder("grpc_frames_fuzz",
                                    IsFolder(kMemory) ? kMemory : "");
    OPTFARM_CHECK(made.ok());
    folder = std::make_unique<ScopedFolder>(*made);
    server::ServerOptions options;
    options.data_dir = JoinPath(*made, "data");
    options.grpc_address = "127.0.0.1:0";
    options.token = kToken;
    options.reserved_free_bytes = 0;
    options.max_blob_bytes = 1 << 20;
    options.grace = absl::ZeroDuration();
    options.scheduling.max_long_poll = absl::Milliseconds(50);
    auto started = server::Server::Start(options);
    OPTFARM_CHECK(started.ok());
    server = *std::move(started);
    const std::string address = server->address();
    uint32_t port = 0;
    OPTFARM_CHECK(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    door.sin_family = AF_INET;
    door.sin_port = htons(static_cast<uint16_t>(port));
    door.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    jobs = v1::JobService::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    CheckOthersAreServed();
    files_at_first = OpenFiles();
  }

  grpc::StatusCode List(absl::string_view token) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    v1::ListJobsResponse answer;
    return jobs->ListJobs(&context, v1::ListJobsRequest(), &answer)
        .error_code();
  }

  void CheckOthersAreServed() {
    OPTFARM_CHECK(List(kToken) == grpc::StatusCode::OK);
    OPTFARM_CHECK(List("another") == grpc::StatusCode::UNAUTHENTICATED);
  }

  // The server hears of a connection's end a little later than we bring it
  // about.
  void CheckConnectionsAreGivenBack() const {
    const absl::Time latest = absl::Now() + absl::FromChrono(kPatience);
    while (OpenFiles() > files_at_first + kMostOpenFiles) {
      OPTFARM_CHECK(absl::Now() < latest);
      absl::SleepFor(absl::Milliseconds(5));
    }
  }

  std::unique_ptr<ScopedFolder> folder;
  std::unique_ptr<server::Server> server;
  std::unique_ptr<v1::JobService::Stub> jobs;
  sockaddr_in door = {};
  int files_at_first = 0;
};

// Sends it all and takes what comes back, until the server has read the last
// frame and done what it does at once, or has closed the connection.
void Talk(int socket, absl::string_view bytes) {
  std::string answer;
  bool read_all = false;
  pollfd wait = {};
  wait.fd = socket;
  while (true) {
    wait.events = bytes.empty() ? POLLIN : POLLIN | POLLOUT;
    const int patience = !bytes.empty() ? 10000
                         : read_all     ? kSilenceMilliseconds
                                        : kUnansweredMilliseconds;
    if (::poll(&wait, 1, patience) <= 0) return;
    if ((wait.revents & POLLIN) != 0) {
      char piece[4096];
      const ssize_t count = ::recv(socket, piece, sizeof(piece), MSG_DONTWAIT);
      if (count <= 0) return;
      answer.append(piece, static_cast<size_t>(count));
      read_all = read_all || absl::StrContains(answer, kLastPing);
    } else if ((wait.revents & POLLOUT) != 0 && !bytes.empty()) {
      const ssize_t count = ::send(socket, bytes.data(), bytes.size(),
                                   MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(count));
    } else {
      return;
    }
  }
}

}  // namespace
}  // namespace optfarm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<optfarm::Farm> farm =
      std::make_unique<optfarm::Farm>();
  static int inputs = 0;
  if (size == 0) return 0;
  const uint8_t mode = data[0];
  const std::string bytes = optfarm::BytesOf(
      absl::string_view(reinterpret_cast<const char*>(data + 1), size - 1),
      mode);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  OPTFARM_CHECK(socket >= 0);
  OPTFARM_CHECK(::connect(socket,
                          reinterpret_cast<const sockaddr*>(&farm->door),
                          sizeof(farm->door)) == 0);
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  optfarm::Talk(socket, bytes);
  if ((mode & 2) != 0) {
    const linger at_once = {1, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  ::close(socket);
  if (++inputs % optfarm::kInputsBetweenChecks == 0) {
    farm->CheckOthersAreServed();
    farm->CheckConnectionsAreGivenBack();
  }
  return 0;
}
