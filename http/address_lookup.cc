#include "http/address_lookup.h"

#include <netdb.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace optfarm::http {
namespace {

using Answer = absl::StatusOr<std::vector<HostAddress>>;

constexpr int kMaxLookups = 16;
// How soon a cancellation is noticed.
constexpr absl::Duration kLookEvery = absl::Milliseconds(50);

std::atomic<int> lookups{0};

// What the thread that asks and the one that waits share; the last one of them
// lets it go.
struct Question {
  absl::Mutex mutex;
  std::optional<Answer> answer ABSL_GUARDED_BY(mutex);
};

absl::Status Ask(std::shared_ptr<Question> question, const std::string& host,
                 int port, AskForAddresses ask) {
  if (lookups.fetch_add(1) >= kMaxLookups) {
    --lookups;
    return absl::UnavailableError(
        absl::StrCat("looking up '", host, "': ", kMaxLookups,
                     " lookups hang; see to the system's resolver"));
  }
  try {
    std::thread([question = std::move(question), host, port,
                 ask = std::move(ask)] {
      Answer answer = ask(host, port);
      {
        absl::MutexLock lock(&question->mutex);
        question->answer = std::move(answer);
      }
      --lookups;
    }).detach();
  } catch (const std::system_error& error) {
    --lookups;
    return absl::UnavailableError(
        absl::StrCat("looking up '", host, "': ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace

Answer AskSystemForAddresses(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error =
      ::getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("looking up '", host, "': ", ::gai_strerror(error)));
  }
  std::vector<HostAddress> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    HostAddress address;
    if (one->ai_addrlen > sizeof(address.address)) continue;
    address.family = one->ai_family;
    address.type = one->ai_socktype;
    address.protocol = one->ai_protocol;
    std::memcpy(&address.address, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  return addresses;
}

Answer LookUpAddresses(const std::string& host, int port, absl::Time deadline,
                       const Cancellation* cancellation, AskForAddresses ask) {
  const auto question = std::make_shared<Question>();
  const absl::Status asked = Ask(question, host, port, std::move(ask));
  if (!asked.ok()) return asked;
  absl::MutexLock lock(&question->mutex);
  const auto answered = [&question]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return question->answer.has_value();
  };
  while (!question->mutex.AwaitWithDeadline(
      absl::Condition(&answered),
      std::min(deadline, absl::Now() + kLookEvery))) {
    if (cancellation != nullptr && cancellation->cancelled()) {
      return absl::CancelledError(
          absl::StrCat("looking up '", host, "' was broken off"));
    }
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "looking up '", host, "': the system's resolver does not answer"));
    }
  }
  return *std::move(question->answer);
}

}  // namespace optfarm::http
