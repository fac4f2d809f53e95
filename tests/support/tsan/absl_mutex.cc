// Tells ThreadSanitizer what abseil's mutexes order. The system's abseil is
// built without it, so that it sees neither a lock nor an unlock, and would
// report everything that a mutex guards. These definitions stand before the
// library's and call them. Part of every test program of preset tsan.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

#define OPTFARM_TEXT_OF(x) #x
#define OPTFARM_TEXT(x) OPTFARM_TEXT_OF(x)
// The inline namespace that Debian's abseil has, with its length.
#define OPTFARM_ABSL "4absl7" OPTFARM_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME)

namespace {

// The library's own function. `name` is what follows "_ZN4absl7debian3", or
// "_ZNK4absl7debian3" for a const one.
template <typename Function>
Function Library(const char* prefix, const char* name) {
  char symbol[256];
  std::snprintf(symbol, sizeof(symbol), "%s" OPTFARM_ABSL "%s", prefix, name);
  void* const found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "absl_mutex: abseil has no symbol %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

template <typename Object, typename... Arguments>
using Method = void (*)(Object*, Arguments...);
template <typename Object, typename... Arguments>
using Question = bool (*)(Object*, Arguments...);

// Abseil's own search for deadlocks keeps a graph of mutexes under a lock that
// is not seen either.
[[maybe_unused]] const bool searches_no_deadlocks = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

// What others wrote before they let go of the mutex is seen from here on.
void Took(void* mutex) { __tsan_acquire(mutex); }
void WillGive(void* mutex) { __tsan_release(mutex); }

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

#define OPTFARM_MUTEX_LOCK(method, name)                                      \
  void Mutex::method() {                                                      \
    static const auto library = Library<Method<Mutex>>("_ZN", "5Mutex" name); \
    library(this);                                                            \
    Took(this);                                                               \
  }
#define OPTFARM_MUTEX_UNLOCK(method, name)                                    \
  void Mutex::method() {                                                      \
    static const auto library = Library<Method<Mutex>>("_ZN", "5Mutex" name); \
    WillGive(this);                                                           \
    library(this);                                                            \
  }
#define OPTFARM_MUTEX_TRY(method, name)                 \
  bool Mutex::method() {                                \
    static const auto library =                         \
        Library<Question<Mutex>>("_ZN", "5Mutex" name); \
    const bool is_taken = library(this);                \
    if (is_taken) Took(this);                           \
    return is_taken;                                    \
  }
OPTFARM_MUTEX_LOCK(Lock, "4LockEv")
OPTFARM_MUTEX_LOCK(ReaderLock, "10ReaderLockEv")
OPTFARM_MUTEX_UNLOCK(Unlock, "6UnlockEv")
OPTFARM_MUTEX_UNLOCK(ReaderUnlock, "12ReaderUnlockEv")
OPTFARM_MUTEX_TRY(TryLock, "7TryLockEv")
OPTFARM_MUTEX_TRY(ReaderTryLock, "13ReaderTryLockEv")

void Mutex::Await(const Condition& condition) {
  static const auto library = Library<Method<Mutex, const Condition&>>(
      "_ZN", "5Mutex5AwaitERKNS0_9ConditionE");
  WillGive(this);
  library(this, condition);
  Took(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const auto library =
      Library<Question<Mutex, const Condition&, Duration>>(
          "_ZN", "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  WillGive(this);
  const bool is_met = library(this, condition, timeout);
  Took(this);
  return is_met;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const auto library = Library<Question<Mutex, const Condition&, Time>>(
      "_ZN", "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  WillGive(this);
  const bool is_met = library(this, condition, deadline);
  Took(this);
  return is_met;
}

void CondVar::Wait(Mutex* mutex) {
  static const auto library =
      Library<Method<CondVar, Mutex*>>("_ZN", "7CondVar4WaitEPNS0_5MutexE");
  WillGive(mutex);
  library(this, mutex);
  Took(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const auto library = Library<Question<CondVar, Mutex*, Duration>>(
      "_ZN", "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  WillGive(mutex);
  const bool timed_out = library(this, mutex, timeout);
  Took(mutex);
  return timed_out;
}

void Notification::Notify() {
  static const auto library =
      Library<Method<Notification>>("_ZN", "12Notification6NotifyEv");
  WillGive(this);
  library(this);
}

void Notification::WaitForNotification() const {
  static const auto library = Library<Method<const Notification>>(
      "_ZNK", "12Notification19WaitForNotificationEv");
  library(this);
  Took(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const auto library = Library<Question<const Notification, Duration>>(
      "_ZNK", "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool is_notified = library(this, timeout);
  if (is_notified) Took(const_cast<Notification*>(this));
  return is_notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
