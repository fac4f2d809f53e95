#include "server/scheduling/away_time.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optfarm::server {
namespace {

// More gaps than a job lives through.
constexpr size_t kMaxGaps = 1000;
constexpr absl::string_view kHere = "here";
constexpr absl::string_view kAway = "away";

}  // namespace

void AwayTime::Note(absl::Time from, absl::Time to) {
  last_here_ = to;
  if (to < from) {
    for (Gap& gap : gaps_) {
      gap.from = std::min(gap.from, to - absl::Nanoseconds(1));
      gap.until = std::min(gap.until, to);
    }
    return;
  }
  gaps_.push_back({from, to - from, to});
  if (gaps_.size() > kMaxGaps) gaps_.erase(gaps_.begin());
}

absl::Duration AwayTime::Since(absl::Time begin) const {
  absl::Duration away;
  for (const Gap& gap : gaps_) {
    if (gap.from >= begin) {
      away += gap.length;
    } else if (begin < gap.until) {
      // It was noted from the last sign of life on, and this came after that.
      away += std::min(gap.length, gap.until - begin);
    }
  }
  return away;
}

std::string AwayTime::ToText() const {
  std::string text =
      absl::StrCat(kHere, " ", absl::ToUnixMicros(last_here_), " 0\n");
  for (const Gap& gap : gaps_) {
    absl::StrAppend(&text, kAway, " ", absl::ToUnixMicros(gap.from), " ",
                    absl::ToInt64Microseconds(gap.length));
    if (gap.until < gap.from + gap.length) {
      absl::StrAppend(&text, " ", absl::ToUnixMicros(gap.until));
    }
    text += '\n';
  }
  return text;
}

absl::StatusOr<AwayTime> AwayTime::FromText(absl::string_view text) {
  AwayTime away;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int64_t from = 0;
    int64_t length = 0;
    int64_t until = 0;
    const bool shortened = words.size() == 4 && words[0] == kAway &&
                           absl::SimpleAtoi(words[3], &until);
    if ((words.size() != 3 && !shortened) ||
        (words[0] != kHere && words[0] != kAway) ||
        !absl::SimpleAtoi(words[1], &from) ||
        !absl::SimpleAtoi(words[2], &length) || length < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", line.substr(0, 100),
          "' is not 'here' or 'away' and two numbers of microseconds"));
    }
    const absl::Time time = absl::FromUnixMicros(from);
    if (words[0] == kHere) {
      away.last_here_ = time;
    } else if (away.gaps_.size() < kMaxGaps) {
      const absl::Duration gap = absl::Microseconds(length);
      away.gaps_.push_back(
          {time, gap, shortened ? absl::FromUnixMicros(until) : time + gap});
    }
  }
  return away;
}

}  // namespace optfarm::server
