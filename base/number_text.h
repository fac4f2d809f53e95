// Numbers and times as text, appended: output of hundreds of thousands of
// values takes as long as these do.

#ifndef OPTFARM_BASE_NUMBER_TEXT_H_
#define OPTFARM_BASE_NUMBER_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace optfarm {

// As printf's "%.*g" writes it where the decimal point is a point. REQUIRES:
// 1 <= digits <= 17.
void AppendNumber(double value, int digits, std::string& out);

// As printf's "%.*f". REQUIRES: finite and below 1e15, 0 <= decimals <= 6.
void AppendFixed(double value, int decimals, std::string& out);

// The fewest of 15 or 17 digits, or for a float of 6 or 9, that read as the
// same number again. REQUIRES: finite.
void AppendExactNumber(double value, std::string& out);
void AppendExactNumber(float value, std::string& out);

// "2026-01-31T12:00:00", UTC; parts of a second are dropped.
void AppendUtcTime(absl::Time time, std::string& out);

}  // namespace optfarm

#endif  // OPTFARM_BASE_NUMBER_TEXT_H_
