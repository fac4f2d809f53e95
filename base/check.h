// OPTFARM_CHECK: stops the process on a violated invariant of our own code.
// Never for facts that come from a user, a file or a peer: those get a Status.

#ifndef OPTFARM_BASE_CHECK_H_
#define OPTFARM_BASE_CHECK_H_

namespace optfarm {

// Prints FILE:LINE and the condition to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line,
                              const char* condition);

}  // namespace optfarm

#define OPTFARM_CHECK(condition)                                \
  (__builtin_expect(!(condition), 0)                            \
       ? ::optfarm::CheckFailed(__FILE__, __LINE__, #condition) \
       : static_cast<void>(0))

#endif  // OPTFARM_BASE_CHECK_H_
