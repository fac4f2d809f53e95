#include "engine/transforms/freezing/range_log.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace optfarm::transforms {
namespace {

constexpr char kPrintSuffix[] = "__print__";

// Takes "[number]" off the front of `text`.
bool TakeNumber(absl::string_view* text, float* number) {
  if (!absl::ConsumePrefix(text, "[")) return false;
  const size_t end = text->find(']');
  if (end == absl::string_view::npos ||
      !absl::SimpleAtof(text->substr(0, end), number)) {
    return false;
  }
  text->remove_prefix(end + 1);
  return true;
}

}  // namespace

std::optional<RangeRecord> ParseRangeRecord(absl::string_view line) {
  // The shared part of records is sought first: most lines of a log are others.
  if (!absl::StrContains(line,
                         absl::StrCat(kPrintSuffix, ";", kRangeMessage))) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> pieces = absl::StrSplit(line, ';');
  for (size_t i = pieces.size(); i-- > 1;) {
    absl::string_view numbers = pieces[i];
    if (!absl::ConsumePrefix(&numbers, kRangeMessage)) continue;
    absl::string_view node = pieces[i - 1];
    RangeRecord record;
    if (!absl::ConsumeSuffix(&node, kPrintSuffix) || node.empty() ||
        !TakeNumber(&numbers, &record.range.min) ||
        !TakeNumber(&numbers, &record.range.max) ||
        absl::StrContains(numbers, "[") || absl::StrContains(numbers, "]")) {
      return std::nullopt;
    }
    record.node = std::string(node);
    return record;
  }
  return std::nullopt;
}

RangeLog ParseRangeLog(absl::string_view text) {
  RangeLog log;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::optional<RangeRecord> record = ParseRangeRecord(line);
    if (record.has_value()) log[record->node].push_back(record->range);
  }
  return log;
}

std::string PrintRangeRecord(const RangeRecord& record) {
  return absl::StrFormat(";%s%s;%s[%.9g][%.9g]", record.node, kPrintSuffix,
                         kRangeMessage, record.range.min, record.range.max);
}

std::string PrintRangeLog(const RangeLog& log) {
  std::string text;
  for (const auto& [node, ranges] : log) {
    for (const ObservedRange& range : ranges) {
      absl::StrAppend(&text, PrintRangeRecord({node, range}), "\n");
    }
  }
  return text;
}

}  // namespace optfarm::transforms
