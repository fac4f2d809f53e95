// The log of observed ranges, in the format TensorFlow's Print op gives it when
// insert_logging was run with show_name and the message "__requant_min_max:":
//
//   ;NODE__print__;__requant_min_max:[MIN][MAX]
//
// Anything may stand before and after on a line (time stamps, process tags).
// Lines of another form are not records and are passed over.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FREEZING_RANGE_LOG_H_
#define OPTFARM_ENGINE_TRANSFORMS_FREEZING_RANGE_LOG_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optfarm::transforms {

// The message that marks a record.
inline constexpr char kRangeMessage[] = "__requant_min_max:";

// Least and greatest value of a tensor in one run.
struct ObservedRange {
  float min = 0;
  float max = 0;

  friend bool operator==(const ObservedRange&, const ObservedRange&) = default;
};

// By name of the RequantizationRange node, in the order of observation.
using RangeLog = std::map<std::string, std::vector<ObservedRange>>;

struct RangeRecord {
  std::string node;
  ObservedRange range;
};

// nullopt when the line is not a record.
std::optional<RangeRecord> ParseRangeRecord(absl::string_view line);

// All records of a text; empty when there are none.
RangeLog ParseRangeLog(absl::string_view text);

// One record as a line, without newline. The numbers read back exactly.
std::string PrintRangeRecord(const RangeRecord& record);

// All records, node by node, a line each.
std::string PrintRangeLog(const RangeLog& log);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FREEZING_RANGE_LOG_H_
