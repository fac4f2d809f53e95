// When what tests store was made.

#ifndef OPTFARM_TESTS_STORAGE_SAMPLE_TIME_H_
#define OPTFARM_TESTS_STORAGE_SAMPLE_TIME_H_

#include "absl/time/time.h"

namespace optfarm::storage {

inline const absl::Time kNow = absl::FromUnixSeconds(1700000000);

}  // namespace optfarm::storage

#endif  // OPTFARM_TESTS_STORAGE_SAMPLE_TIME_H_
