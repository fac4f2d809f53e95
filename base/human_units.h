// Numbers as people read them: at most three digits that matter and a unit.

#ifndef OPTFARM_BASE_HUMAN_UNITS_H_
#define OPTFARM_BASE_HUMAN_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace optfarm {

// "812 B", "1.91 MB". Decimal: 1 kB is 1000 bytes.
std::string HumanBytes(int64_t bytes);

// "0.45 us", "812 us", "4.21 ms", "1.25 s". UNITS: microseconds.
std::string HumanMicroseconds(double microseconds);

// "1.80x", "0.26x", "12.5x".
std::string HumanRatio(double ratio);

// "47.7%". UNITS: percent.
std::string HumanPercent(double percent);

// "850 ms", "12 s", "3 min 20 s", "2 h 05 min".
std::string HumanDuration(absl::Duration duration);

// "2026-01-31 12:00:00", UTC; "" for a time that was never set.
std::string HumanTime(absl::Time time);

}  // namespace optfarm

#endif  // OPTFARM_BASE_HUMAN_UNITS_H_
