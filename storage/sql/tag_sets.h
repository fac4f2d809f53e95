// Sets of tags, each kept once and known by a number: all results of a job have
// the same tags, and so have most jobs of a pipeline's commit.

#ifndef OPTFARM_STORAGE_SQL_TAG_SETS_H_
#define OPTFARM_STORAGE_SQL_TAG_SETS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace optfarm::storage::sql {

// THREADS: one thread at a time.
class TagSets {
 public:
  using Id = uint32_t;
  static constexpr Id kEmpty = 0;

  // The set with one more tag. Tags that are always added in the same order
  // make the same set.
  Id With(Id set, absl::string_view tag);

  // For each set whether the tag is in it; empty when it is in none.
  std::vector<char> Having(absl::string_view tag) const;

  // UNITS: bytes, roughly.
  int64_t bytes() const { return bytes_; }

 private:
  // A set is an older one and a tag, as numbers.
  using Step = std::pair<Id, uint32_t>;

  // Of the sets from 1 on.
  std::vector<Step> steps_;
  absl::flat_hash_map<Step, Id> sets_;
  absl::flat_hash_map<std::string, uint32_t> tags_;
  int64_t bytes_ = 0;
};

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_TAG_SETS_H_
