// Checks for deadlocks that absl::Mutex makes where absl was built for
// debugging, as Debian's packages are: each lock that is taken while another is
// held searches for a cycle, under a lock of the whole process.

#ifndef OPTFARM_BASE_DEADLOCK_CHECKS_H_
#define OPTFARM_BASE_DEADLOCK_CHECKS_H_

namespace optfarm {

// Turns them off for the whole process, in a release build: for programs, not
// for tests.
// REQUIRES: no other thread runs yet.
void TurnOffDeadlockChecks();

}  // namespace optfarm

#endif  // OPTFARM_BASE_DEADLOCK_CHECKS_H_
