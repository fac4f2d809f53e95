#include "base/nearest_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optfarm {
namespace {

constexpr size_t kLongestName = 200;
constexpr size_t kMostNames = 20'000;

// Levenshtein's distance, one row at a time.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearestNames(absl::string_view wanted,
                                      absl::Span<const std::string> known,
                                      size_t most) {
  const std::string target =
      absl::AsciiStrToLower(wanted.substr(0, kLongestName));
  std::vector<std::pair<size_t, size_t>> ranked;
  for (size_t i = 0; i < std::min(known.size(), kMostNames); ++i) {
    const std::string name = absl::AsciiStrToLower(
        absl::string_view(known[i]).substr(0, kLongestName));
    size_t distance = EditDistance(target, name);
    if (!target.empty() && absl::StrContains(name, target)) distance = 1;
    if (distance <= std::max(target.size(), name.size()) / 2) {
      ranked.emplace_back(distance, i);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> result;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i) {
    result.push_back(known[ranked[i].second]);
  }
  return result;
}

std::string NearestNamesHint(absl::string_view wanted,
                             absl::Span<const std::string> known, size_t most) {
  const std::vector<std::string> near = NearestNames(wanted, known, most);
  if (near.empty()) return "";
  return absl::StrCat(
      near.size() == 1 ? "; the nearest is '" : "; the nearest are '",
      absl::StrJoin(near, "', '"), "'");
}

}  // namespace optfarm
