#include "storage/sql/tag_sets.h"

namespace optfarm::storage::sql {

TagSets::Id TagSets::With(Id set, absl::string_view tag) {
  auto known = tags_.find(tag);
  if (known == tags_.end()) {
    known = tags_.emplace(tag, static_cast<uint32_t>(tags_.size())).first;
    // A hash table is half empty.
    bytes_ += static_cast<int64_t>(2 * sizeof(*known) + tag.size());
  }
  const Step step(set, known->second);
  const auto [larger, is_new] =
      sets_.emplace(step, static_cast<Id>(steps_.size()) + 1);
  if (is_new) {
    steps_.push_back(step);
    bytes_ += static_cast<int64_t>(2 * (sizeof(*larger) + sizeof(step)));
  }
  return larger->second;
}

std::vector<char> TagSets::Having(absl::string_view tag) const {
  const auto known = tags_.find(tag);
  if (known == tags_.end()) return {};
  std::vector<char> has(steps_.size() + 1, 0);
  // A set comes after the one that it was made from.
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto& [smaller, added] = steps_[i];
    has[i + 1] = static_cast<char>(added == known->second || has[smaller] != 0);
  }
  return has;
}

}  // namespace optfarm::storage::sql
