#include "base/deadlock_checks.h"

#include "absl/synchronization/mutex.h"

namespace optfarm {

void TurnOffDeadlockChecks() {
#ifdef NDEBUG
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
}

}  // namespace optfarm
