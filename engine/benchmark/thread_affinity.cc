#include "engine/benchmark/thread_affinity.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optfarm::benchmark {

ThreadAffinity::ThreadAffinity(absl::Span<const int> processors) {
  if (processors.empty()) return;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (int processor : processors) {
    if (processor < 0 || processor >= CPU_SETSIZE) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("there is no processor ", processor));
      return;
    }
    CPU_SET(processor, &wanted);
  }
  is_bound_ = sched_getaffinity(0, sizeof(before_), &before_) == 0 &&
              sched_setaffinity(0, sizeof(wanted), &wanted) == 0;
  if (is_bound_) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("the system does not let this process run on processors ",
                   absl::StrJoin(processors, ",")));
}

ThreadAffinity::~ThreadAffinity() {
  if (is_bound_) sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace optfarm::benchmark
