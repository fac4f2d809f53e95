// Which system calls a process in the sandbox may make (base/sandbox.h).

#ifndef OPTFARM_BASE_SECCOMP_FILTER_H_
#define OPTFARM_BASE_SECCOMP_FILTER_H_

namespace optfarm {

// True: filters are known for this processor.
bool HasSeccompFilter();

// From here on this thread, and those that it starts, may only make the calls
// of the list in seccomp_filter.cc. Others fail, and end nothing: with ENOSYS
// where they are newer than Linux 5.1, because libraries that try such a call
// expect that kernels lack it; with EPERM otherwise.
// REQUIRES: no_new_privs is set. Returns false when the kernel has no filters.
bool EnterSeccompFilter();

}  // namespace optfarm

#endif  // OPTFARM_BASE_SECCOMP_FILTER_H_
