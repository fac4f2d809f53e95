// What a task that was taken over by its model would try.

#ifndef OPTFARM_TESTS_SUPPORT_BREAK_OUT_H_
#define OPTFARM_TESTS_SUPPORT_BREAK_OUT_H_

#include <string>
#include <vector>

namespace optfarm::testing {

// Of the environment: what a child should not be given, and the process id of
// who starts it.
inline constexpr char kForeignVariable[] = "FOREIGN_PASSWORD";
inline constexpr char kStarterVariable[] = "OPTFARM_TEST_STARTER";

// Tries to leave the sandbox that this process is in; returns what worked. `in`
// has a file model.pb that may not change, `out` is the task's own, `secret` is
// a file that is none of its business.
std::vector<std::string> BreakOut(const std::string& in, const std::string& out,
                                  const std::string& secret);

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_BREAK_OUT_H_
